//! Why a registry did not do what it was asked, and which of that may pass.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::credentials::CredentialsError;
use super::trust::Untrusted;
use crate::image::digest::Digest;
use crate::limits::span;

/// Why a registry did not do what it was asked. No variant carries a secret, nor the address of a redirection, which may
/// be signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The credentials for it cannot be had.
    #[error("cannot get the credentials for `{host}`")]
    Credentials {
        /// The registry.
        host: String,
        /// Why.
        source: CredentialsError,
    },
    /// A file with certificates cannot be used.
    #[error("cannot use the certificates in `{}`", .path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No connection can be made, or TLS cannot be set up on this machine.
    #[error("cannot reach `{host}`")]
    Unreachable {
        /// The registry.
        host: String,
        /// Why.
        source: Fault,
    },
    /// The registry's certificate is not trusted.
    #[error("`{host}` has a certificate that is not trusted")]
    Certificate {
        /// The registry.
        host: String,
        /// Why.
        source: Untrusted,
    },
    /// The registry does not speak TLS.
    #[error("`{host}` does not speak HTTPS")]
    NotTls {
        /// The registry.
        host: String,
    },
    /// Nothing came for too long.
    #[error("`{host}` does not answer")]
    Silent {
        /// The registry.
        host: String,
    },
    /// So little comes that it would never end.
    #[error("`{host}` is too slow: {bytes} bytes in {} s", .time.as_secs_f64())]
    Slow {
        /// The registry.
        host: String,
        /// What came in that time.
        bytes: usize,
        /// The time that was waited.
        time: Duration,
    },
    /// It leads to where anybody could listen in.
    #[error("`{host}` redirects from HTTPS to plain HTTP at `{to}`")]
    Downgrade {
        /// The registry.
        host: String,
        /// The host of the address that it names.
        to: String,
    },
    /// It was tried as often as it makes sense, just now or for something else.
    #[error(transparent)]
    Known(#[from] std::sync::Arc<RegistryError>),
    /// The connection was lost on the way.
    #[error("the connection to `{host}` was lost")]
    Broken {
        /// The registry.
        host: String,
        /// How.
        source: Fault,
    },
    /// The registry wants other credentials, or some.
    #[error("`{host}` refuses {action}: not logged in{}", said(.message))]
    NotLoggedIn {
        /// The registry.
        host: String,
        /// What was tried, such as "to write to `team/app`".
        action: String,
        /// What the registry says.
        message: String,
    },
    /// The credentials do not suffice or are wrong.
    #[error("`{host}` refuses {action} to user `{}`{}", .user.escape_debug(), said(.message))]
    Denied {
        /// The registry.
        host: String,
        /// What was tried.
        action: String,
        /// The user name; never the password.
        user: String,
        /// What the registry says.
        message: String,
    },
    /// There is no such image or blob.
    #[error("`{host}` has no {what}")]
    NotFound {
        /// The registry.
        host: String,
        /// What is missing.
        what: String,
    },
    /// The registry asks to wait.
    #[error("rate limited by `{host}`{}", .wait.map(|wait| format!(": retry after {} s", wait.as_secs())).unwrap_or_default())]
    TooMany {
        /// The registry.
        host: String,
        /// How long to wait, if it says so.
        wait: Option<Duration>,
    },
    /// Another answer than those that were expected.
    #[error("`{host}` responded with status {status}{}", said(.message))]
    Status {
        /// The registry.
        host: String,
        /// The HTTP status.
        status: u16,
        /// What the registry says.
        message: String,
        /// How long to wait, if it says so.
        wait: Option<Duration>,
    },
    /// The response is invalid.
    #[error("invalid response from `{host}`: {problem}")]
    Malformed {
        /// The registry.
        host: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Something else answers in the registry's place, such as a page to log in at.
    #[error("`{host}` answers with a web page, not as a registry does")]
    WebPage {
        /// The registry.
        host: String,
    },
    /// The registry got other bytes than were sent.
    #[error("`{host}` received other bytes than were sent{}", said(.message))]
    Damaged {
        /// The registry.
        host: String,
        /// What the registry says.
        message: String,
    },
    /// The registry has lost an upload.
    #[error("`{host}` has lost an upload{}", said(.message))]
    UploadLost {
        /// The registry.
        host: String,
        /// What the registry says.
        message: String,
    },
    /// The registry said that it took a manifest, and does not have it.
    #[error("`{host}` accepted `{name}`, but does not serve it: {problem}")]
    NotStored {
        /// The registry.
        host: String,
        /// The repository and the tag.
        name: String,
        /// What is there.
        problem: String,
    },
    /// The registry said that it had a blob, and now that it does not.
    #[error("`{host}` refuses the image: it reports blobs as missing that it reported as present")]
    Incomplete {
        /// The registry.
        host: String,
    },
    /// What came is not what the digest names, though it was asked for more than once.
    #[error("digest mismatch: `{host}` {found}, expected `{expected}`")]
    Corrupted {
        /// The registry.
        host: String,
        /// What was asked for.
        expected: Digest,
        /// What the registry did instead: `sent content with digest …`.
        found: String,
    },
    /// What came cannot be kept.
    #[error("cannot write to `{}`", .path.display())]
    Keep {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The directory for the cache holds something else, which must not be removed with old blobs.
    #[error("cannot use `{}` as the cache directory: it holds other files", .path.display())]
    NotACache {
        /// The directory.
        path: PathBuf,
    },
    /// What should be sent cannot be read.
    #[error(transparent)]
    Blob(#[from] Box<crate::image::BlobError>),
    /// Somebody pressed Ctrl-C, or the system asked to end.
    #[error("interrupted")]
    Interrupted,
    /// The time for the whole is over.
    #[error("timed out after {}", span(*.limit))]
    TimedOut {
        /// The time that was given.
        limit: Duration,
    },
    /// The work cannot be started.
    #[error("cannot start a transfer")]
    Start {
        /// The system's reason.
        source: std::io::Error,
    },
}

/// What went wrong on the network: the innermost reason, for those around it only say that something did. It names no
/// address.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Fault {
    reason: String,
    /// Whether another attempt makes sense.
    is_final: bool,
}

impl Fault {
    /// A reason that another attempt does not change.
    pub(super) fn final_reason(reason: String) -> Self {
        Self { reason, is_final: true }
    }
}

impl From<reqwest::Error> for Fault {
    fn from(error: reqwest::Error) -> Self {
        let is_final = error.is_builder();
        let error = error.without_url();
        let mut innermost: &dyn std::error::Error = &error;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        Self { reason: innermost.to_string(), is_final }
    }
}

impl RegistryError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::Certificate { host, source } => source.help(host),
            Self::NotTls { host } => {
                format!("if it is a plain HTTP registry that you trust, add `--plain-http {host}`")
            }
            Self::NotLoggedIn { host, .. } => {
                format!("log in with `podman login {host}` or `docker login {host}`, or pass `--creds`")
            }
            Self::Damaged { .. } => {
                "try again later, or from another network: a proxy may modify the content".into()
            }
            Self::NotStored { .. } | Self::WebPage { .. } => {
                "check the registry's address: a proxy or a login page may answer in its place".into()
            }
            Self::Denied { .. } => "check the name of the repository and the permissions of the user".into(),
            Self::Status { status: 403, host, .. } => {
                format!(
                    "log in with `podman login {host}`, or pass `--creds`; if the registry is public, a proxy or a firewall may refuse the request"
                )
            }
            Self::Unreachable { .. } => "check the host's name and port, and the proxy settings".into(),
            Self::Silent { .. } | Self::Slow { .. } | Self::Broken { .. } | Self::TooMany { .. } => {
                "try again later".into()
            }
            Self::Downgrade { .. } => {
                "the registry does not know that it is reached over HTTPS: its proxy has to set \
                 `X-Forwarded-Proto: https`"
                    .into()
            }
            Self::Known(error) => return error.help(),
            Self::Keep { .. } => "free disk space, or use another directory with `--cache-dir DIR`".into(),
            Self::NotACache { .. } => {
                "pass a new or an empty directory with `--cache-dir DIR` or in `OLMKIT_CACHE_DIR`".into()
            }
            Self::TimedOut { .. } => {
                "run the command again (finished transfers are kept), or increase `--timeout`".into()
            }
            Self::Interrupted => "run the same command again to resume: finished transfers are kept".into(),
            Self::Credentials { source, .. } => return source.help(),
            Self::Blob(error) => return error.help(),
            _ => return None,
        })
    }

    /// Whether another attempt may succeed.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Silent { .. }
            | Self::Slow { .. }
            | Self::Broken { .. }
            | Self::TooMany { .. }
            | Self::UploadLost { .. }
            | Self::Damaged { .. }
            | Self::NotStored { .. }
            | Self::Corrupted { .. } => true,
            Self::Unreachable { source, .. } => !source.is_final,
            Self::Status { status, .. } => matches!(status, 408 | 500..),
            _ => false,
        }
    }

    /// How long the registry asks to wait.
    pub(super) fn wait(&self) -> Option<Duration> {
        match self {
            Self::TooMany { wait, .. } | Self::Status { wait, .. } => *wait,
            _ => None,
        }
    }
}

/// What a registry says, as the end of a sentence.
struct Said<'m>(&'m str);

fn said(message: &str) -> Said<'_> {
    Said(message)
}

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0.escape_debug()) }
    }
}
