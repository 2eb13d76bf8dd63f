//! Credentials for the API server: the token of a file, or what the credential plugin of the kubeconfig prints. kube would wait for a plugin for ever, and
//! read a file without end; here both have the time of the command.
//!
//! Nothing that a plugin prints, and none of its arguments and variables, gets into a message: any of it may be a secret.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::HeaderValue;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use serde_json::{Value, json};

use crate::files;
use crate::limits::{Limits, Over};
use crate::moment;
use crate::program::{self, CommandLine, Ended};

/// The longest answer of a plugin, in bytes.
const MAX_ANSWER: u64 = 1 << 20;
/// How often a file with a token is read again: kubelets replace them.
const REREAD: Duration = Duration::from_secs(60);
/// How long before it expires a credential is asked for again, in milliseconds.
const EARLY: i64 = 60_000;

/// The current `Authorization` header.
pub(super) type Header = Arc<RwLock<Option<HeaderValue>>>;

/// Why there are no credentials.
#[derive(Debug, thiserror::Error)]
pub(super) enum CredentialsError {
    /// The plugin has not ended yet.
    #[error("the credential plugin `{plugin}` of the kubeconfig did not finish")]
    Over { plugin: String, over: Over },
    /// It did not give any.
    #[error("the credential plugin `{plugin}` of the kubeconfig {why}")]
    Failed {
        plugin: String,
        why: String,
        /// How the kubeconfig says that it is installed.
        hint: Option<String>,
    },
    /// The file with the token cannot be read.
    #[error(transparent)]
    File(#[from] files::FileError),
    /// The token cannot be sent.
    #[error("the token in `{}` has characters that cannot be sent", .0.display())]
    Token(PathBuf),
}

/// Where credentials come from that change.
enum Source {
    /// A file with a token.
    File(PathBuf),
    /// A credential plugin.
    Plugin(Box<Plugin>),
}

struct Plugin {
    config: ExecConfig,
    /// Whether nobody is there to answer it.
    is_unattended: bool,
}

/// Credentials that change while a command works; none where kube knows all there is to know.
pub(super) struct Credentials {
    source: Option<Source>,
    /// What every request carries.
    header: Header,
    expiry: Mutex<Expiry>,
}

/// When credentials are asked for again.
#[derive(Clone, Copy)]
enum Expiry {
    /// At once: there are none yet.
    Now,
    /// At a moment, in milliseconds since 1970.
    At(i64),
    /// After a while.
    Every(Instant),
    Never,
}

impl Expiry {
    fn is_over(self) -> bool {
        match self {
            Self::Now => true,
            Self::At(moment) => now() >= moment.saturating_sub(EARLY),
            Self::Every(since) => since.elapsed() >= REREAD,
            Self::Never => false,
        }
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl Credentials {
    /// Takes over from a kubeconfig's user what kube would wait for without end. What the user has besides comes first, as for kube.
    pub(super) fn take(user: &mut AuthInfo, is_unattended: bool) -> Self {
        let has_others = user.auth_provider.is_some()
            || user.username.is_some() && user.password.is_some()
            || user.token.is_some();
        let (file, plugin) = (user.token_file.take(), user.exec.take());
        let source = match (file, plugin) {
            _ if has_others => None,
            (Some(file), _) => Some(Source::File(file.into())),
            (None, Some(config)) => Some(Source::Plugin(Box::new(Plugin { config, is_unattended }))),
            (None, None) => None,
        };
        Self { source, header: Arc::default(), expiry: Mutex::new(Expiry::Now) }
    }

    /// They, as they are put into requests.
    pub(super) fn header(&self) -> Header {
        Arc::clone(&self.header)
    }

    /// Gets them where there are none, or where they are about to expire. A certificate goes into the user: only a new client sends
    /// another one.
    ///
    /// # Errors
    /// There are none.
    pub(super) fn renew(&self, limits: Limits, user: Option<&mut AuthInfo>) -> Result<(), CredentialsError> {
        let mut expiry = self.expiry();
        let Some(source) = self.source.as_ref().filter(|_| expiry.is_over()) else { return Ok(()) };
        *expiry = match source {
            Source::File(path) => {
                let read = files::read_text_or_pipe(path, limits);
                match (read, *expiry) {
                    (Ok(token), _) => {
                        let header = bearer(token.trim());
                        self.set(header.ok_or_else(|| CredentialsError::Token(path.clone()))?);
                    }
                    // A token that was read once serves on when its file is gone, as kubectl has it.
                    (Err(_), Expiry::Every(_)) => {}
                    (Err(error), _) => return Err(error.into()),
                }
                Expiry::Every(Instant::now())
            }
            Source::Plugin(plugin) => {
                let status = plugin.run(limits)?;
                let text = |field: &str| status[field].as_str().filter(|text| !text.is_empty());
                let certificate = text("clientCertificateData").zip(text("clientKeyData"));
                match (text("token"), certificate) {
                    (None, None) => return Err(plugin.failed("printed no credentials")),
                    (Some(token), _) => {
                        let header = bearer(token);
                        self.set(header.ok_or_else(|| plugin.failed("printed a token that cannot be sent"))?);
                    }
                    (None, Some(_)) => {}
                }
                if let (Some((certificate, key)), Some(user)) = (certificate, user) {
                    with_certificate(user, certificate, key);
                }
                match text("expirationTimestamp") {
                    None => Expiry::Never,
                    Some(at) => Expiry::At(
                        moment::parse(at)
                            .ok_or_else(|| plugin.failed("printed an invalid expirationTimestamp"))?,
                    ),
                }
            }
        };
        Ok(())
    }

    fn expiry(&self) -> MutexGuard<'_, Expiry> {
        // It is set as a whole, so a panic elsewhere leaves nothing half made.
        self.expiry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, header: HeaderValue) {
        *self.header.write().unwrap_or_else(PoisonError::into_inner) = Some(header);
    }
}

/// The header of a token, which nothing shows.
fn bearer(token: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// Gives a user the certificate that a plugin has printed.
fn with_certificate(user: &mut AuthInfo, certificate: &str, key: &str) {
    let data = json!({
        "client-certificate-data": BASE64.encode(certificate), "client-key-data": BASE64.encode(key),
    });
    // Its fields are these two texts: nothing can refuse.
    let Ok(given) = serde_json::from_value::<AuthInfo>(data) else { return };
    user.client_certificate_data = given.client_certificate_data;
    user.client_key_data = given.client_key_data;
}

impl Plugin {
    fn name(&self) -> String {
        self.config.command.clone().unwrap_or_default()
    }

    fn failed(&self, why: impl Into<String>) -> CredentialsError {
        CredentialsError::Failed {
            plugin: self.name(),
            why: why.into(),
            hint: self.config.install_hint.clone(),
        }
    }

    /// Runs it, and gives back the `status` that it has printed (client-go, `plugin/pkg/client/auth/exec`).
    fn run(&self, limits: Limits) -> Result<Value, CredentialsError> {
        let config = &self.config;
        let Some(program) = &config.command else { return Err(self.failed("has no `command`")) };
        let mode = config.interactive_mode.as_ref();
        let is_interactive = mode != Some(&ExecInteractiveMode::Never)
            && !self.is_unattended
            && std::io::stdin().is_terminal();
        if mode == Some(&ExecInteractiveMode::Always) && !is_interactive {
            return Err(self.failed("needs to prompt the user, but standard input is not a terminal"));
        }
        let words = config.args.as_deref().unwrap_or_default();
        let line = CommandLine::new(program).words_of_kubeconfig(words);
        let mut command = line.command().map_err(|error| self.failed(error.to_string()))?;
        let pairs = config.env.iter().flatten();
        command.envs(pairs.filter_map(|pair| Some((pair.get("name")?, pair.get("value")?))));
        let mut spec = json!({"interactive": is_interactive});
        if let Some(cluster) = config.cluster.as_ref().filter(|_| config.provide_cluster_info) {
            spec["cluster"] = serde_json::to_value(cluster).unwrap_or_default();
        }
        let info = json!({"kind": "ExecCredential", "apiVersion": config.api_version, "spec": spec});
        command.env("KUBERNETES_EXEC_INFO", info.to_string());
        // What it has to say to the user is for the user, as kubectl has it.
        let is_told = mode != Some(&ExecInteractiveMode::Never) && !self.is_unattended;
        command.stderr(if is_told { Stdio::inherit() } else { Stdio::null() });
        let ended = match is_interactive {
            true => program::run_interactive(&mut command, limits, MAX_ANSWER),
            false => program::run(&mut command, limits, MAX_ANSWER),
        };
        let over = |over| CredentialsError::Over { plugin: self.name(), over };
        let output = match ended {
            Ok(Ended::Itself(output)) => output,
            Ok(Ended::TimedOut) => return Err(over(Over::TimedOut(limits.limit().unwrap_or_default()))),
            Ok(Ended::Interrupted) => return Err(over(Over::Interrupted)),
            Ok(Ended::TooMuch) => {
                return Err(self.failed(format!("printed more than {} MiB", MAX_ANSWER >> 20)));
            }
            Err(error) => return Err(self.failed(format!("cannot be run: {error}"))),
        };
        if !output.status.success() {
            return Err(self.failed(format!("failed: {}", output.status)));
        }
        let text = String::from_utf8(output.stdout).unwrap_or_default();
        // Some print YAML, and JSON is that too.
        let document = olmkit_bundle::yaml::first_document(&text).map(|document| document.root.to_json());
        match document {
            Ok(document) if document["status"].is_object() => Ok(document["status"].clone()),
            _ => Err(self.failed("did not print an ExecCredential with credentials")),
        }
    }
}
