//! Credentials for registries: looked up where docker and podman keep them.
//!
//! In this order, the first that knows the registry wins: what was given on the command line; podman's `auth.json`;
//! docker's `config.json`, and in each of these first the credential helpers, then what is written there. A file that is
//! named (`--authfile`, `REGISTRY_AUTH_FILE`) replaces both. Keys may name a host or a part of its repositories
//! (`quay.io/team`): the longest that fits counts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde::Deserialize;
use tokio::io::AsyncWriteExt as _;

use crate::program::CommandLine;

/// Docker Hub's name in references, and the key under which docker keeps its credentials.
const DOCKER_HUB: &str = "docker.io";
const DOCKER_HUB_KEY: &str = "https://index.docker.io/v1/";
/// A helper's user name that says: the secret is an identity token.
const TOKEN_USER: &str = "<token>";
/// How long a helper may take; some ask a person.
const HELPER_PATIENCE: Duration = Duration::from_secs(60);
/// The largest file with credentials that is read, in bytes.
const MAX_FILE: u64 = 4 << 20;

/// Text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(String);

impl Secret {
    /// The text, for the one place that needs it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Credentials for a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Credentials {
    /// A user and a password.
    Password {
        /// The user.
        user: String,
        /// The password.
        password: Secret,
    },
    /// A token that an authorization server exchanges for others.
    Identity {
        /// The token.
        token: Secret,
    },
}

impl Credentials {
    /// The user's name, or what stands for it.
    pub(super) fn user(&self) -> &str {
        match self {
            Self::Password { user, .. } => user,
            Self::Identity { .. } => TOKEN_USER,
        }
    }

    /// The value of an `Authorization` header for user and password.
    pub(super) fn basic(&self) -> Option<Secret> {
        let Self::Password { user, password } = self else { return None };
        Some(Secret(format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.0)))))
    }
}

/// Credentials for one registry or some of its repositories, as `HOST[/PATH]=USER:PASSWORD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenCredentials {
    key: String,
    credentials: Credentials,
}

/// Text that is not `HOST=USER:PASSWORD`. It is not shown, for it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid credentials: expected `HOST=USER:PASSWORD`")]
pub struct GivenCredentialsError;

impl FromStr for GivenCredentials {
    type Err = GivenCredentialsError;

    fn from_str(text: &str) -> Result<Self, GivenCredentialsError> {
        let (key, rest) = text.split_once('=').ok_or(GivenCredentialsError)?;
        let (user, password) = rest.split_once(':').ok_or(GivenCredentialsError)?;
        if key.is_empty() || user.is_empty() {
            return Err(GivenCredentialsError);
        }
        let credentials = Credentials::Password { user: user.into(), password: Secret(password.to_owned()) };
        Ok(Self { key: normal(key), credentials })
    }
}

impl GivenCredentials {
    /// The same with the password that `find` makes of what was given, which may only say where the password is.
    ///
    /// # Errors
    /// Whatever `find` fails with.
    pub fn try_map_password<E>(mut self, find: impl FnOnce(String) -> Result<String, E>) -> Result<Self, E> {
        if let Credentials::Password { password, .. } = &mut self.credentials {
            *password = Secret(find(std::mem::take(&mut password.0))?);
        }
        Ok(self)
    }
}

/// Why credentials cannot be had. What the files hold is never repeated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// The file cannot be read.
    #[error("cannot read `{}`", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not what docker or podman write.
    #[error("`{}` is not a file of credentials: fault at line {line}, column {column}", .path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// An entry cannot be decoded.
    #[error("`{}` has an entry `{}` that is not `USER:PASSWORD` in base64", .path.display(), .key.escape_debug())]
    Entry {
        /// The file.
        path: PathBuf,
        /// The entry's key.
        key: String,
    },
    /// A credential helper failed.
    #[error("`docker-credential-{}` {problem}", .name.escape_debug())]
    Helper {
        /// The helper's name, after `docker-credential-`.
        name: String,
        /// What it did.
        problem: String,
    },
}

impl CredentialsError {
    /// The way out, where there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Helper { .. } => {
                Some("install the helper, log in again, or remove it from docker's `config.json`".into())
            }
            Self::Json { .. } | Self::Entry { .. } => Some("log in again to rewrite it".into()),
            Self::Read { .. } => None,
        }
    }
}

/// Where credentials are looked up.
#[derive(Debug, Clone, Default)]
pub(super) struct CredentialStore {
    given: Vec<GivenCredentials>,
    files: Vec<PathBuf>,
    /// Whether a missing file is an error: it was asked for by name.
    named: bool,
}

#[derive(Deserialize, Default)]
struct AuthFile {
    #[serde(default)]
    auths: BTreeMap<String, AuthEntry>,
    #[serde(default, rename = "credHelpers")]
    helpers: BTreeMap<String, String>,
    #[serde(default, rename = "credsStore")]
    store: Option<String>,
}

#[derive(Deserialize, Default)]
struct AuthEntry {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default, rename = "identitytoken")]
    identity_token: String,
}

#[derive(Deserialize)]
struct HelperAnswer {
    #[serde(rename = "Username")]
    user: String,
    #[serde(rename = "Secret")]
    secret: String,
}

impl CredentialStore {
    /// A store of what was given, and of a named file or those that `variable` leads to.
    pub(super) fn new(
        given: Vec<GivenCredentials>,
        file: Option<PathBuf>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(file) = file.or_else(|| path("REGISTRY_AUTH_FILE")) {
            return Self { given, files: vec![file], named: true };
        }
        let home = path("HOME");
        let below = |dir: Option<PathBuf>, rest: &str| dir.map(|dir| dir.join(rest));
        let config = path("XDG_CONFIG_HOME").or_else(|| below(home.clone(), ".config"));
        let docker = path("DOCKER_CONFIG").or_else(|| below(home, ".docker"));
        let files = [
            below(path("XDG_RUNTIME_DIR"), "containers/auth.json"),
            below(config, "containers/auth.json"),
            below(docker, "config.json"),
        ];
        Self { given, files: files.into_iter().flatten().collect(), named: false }
    }

    /// The credentials for a repository such as `quay.io/team/app`; `None` when nobody knows any.
    ///
    /// # Errors
    /// A file or a helper that should know them cannot be used.
    pub(super) async fn find(&self, repository: &str) -> Result<Option<Credentials>, CredentialsError> {
        let given = self.given.iter().filter(|given| covers(&given.key, repository));
        if let Some(given) = given.max_by_key(|given| given.key.len()) {
            return Ok(Some(given.credentials.clone()));
        }
        for path in &self.files {
            let Some(file) = self.read(path)? else { continue };
            if let Some(found) = file.find(path, repository).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn read(&self, path: &Path) -> Result<Option<AuthFile>, CredentialsError> {
        let failed = |source| CredentialsError::Read { path: path.to_owned(), source };
        let missing = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        };
        let text = match read_plain(path) {
            Err(error) if missing(&error) && !self.named => return Ok(None),
            read => read.map_err(failed)?,
        };
        if text.is_empty() {
            return Ok(None);
        }
        // Not serde's own message: it repeats the value that it did not expect.
        serde_json::from_slice(&text).map(Some).map_err(|error| CredentialsError::Json {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
        })
    }
}

impl AuthFile {
    async fn find(&self, path: &Path, repository: &str) -> Result<Option<Credentials>, CredentialsError> {
        let helper = longest(self.helpers.iter(), repository).map(|(_, name)| name);
        if let Some(name) = helper.or(self.store.as_ref()).filter(|name| !name.is_empty())
            && let Some(found) = ask(name, host_of(repository)).await?
        {
            return Ok(Some(found));
        }
        // Docker leaves an empty entry where its helper has the secret.
        let known = self.auths.iter().filter(|(_, entry)| !entry.is_empty());
        let Some((key, entry)) = longest(known, repository) else { return Ok(None) };
        let malformed = || CredentialsError::Entry { path: path.to_owned(), key: key.clone() };
        entry.decode().map(Some).ok_or_else(malformed)
    }
}

impl AuthEntry {
    fn is_empty(&self) -> bool {
        [&self.auth, &self.username, &self.identity_token].iter().all(|text| text.is_empty())
    }

    fn decode(&self) -> Option<Credentials> {
        if !self.identity_token.is_empty() {
            return Some(Credentials::Identity { token: Secret(self.identity_token.clone()) });
        }
        if self.auth.is_empty() {
            let password = Secret(self.password.clone());
            return Some(Credentials::Password { user: self.username.clone(), password });
        }
        let bytes = STANDARD_NO_PAD.decode(self.auth.trim().trim_end_matches('=')).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (user, password) = text.split_once(':')?;
        // Old dockers filled up with zeros.
        let password = Secret(password.trim_end_matches('\0').to_owned());
        Some(Credentials::Password { user: user.to_owned(), password })
    }
}

/// Asks a credential helper, as docker does: <https://github.com/docker/docker-credential-helpers>.
async fn ask(name: &str, host: &str) -> Result<Option<Credentials>, CredentialsError> {
    let failed = |problem: &str| CredentialsError::Helper { name: name.into(), problem: problem.into() };
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        return Err(failed("is not the name of a program"));
    }
    let line = CommandLine::new(format!("docker-credential-{name}")).words(&["get"]);
    let command = line.command().map_err(|error| failed(&error.to_string()))?;
    let mut helper = tokio::process::Command::from(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(&format!("cannot be run: {error}")))?;
    let server = if host == DOCKER_HUB { DOCKER_HUB_KEY } else { host };
    let talk = async {
        if let Some(mut input) = helper.stdin.take() {
            // A helper that does not read its input says so by how it ends.
            let _ = input.write_all(server.as_bytes()).await;
        }
        helper.wait_with_output().await
    };
    let output = match tokio::time::timeout(HELPER_PATIENCE, talk).await {
        Ok(output) => output.map_err(|error| failed(&format!("failed: {error}")))?,
        Err(_) => return Err(failed("does not answer")),
    };
    if !output.status.success() {
        // Helpers say on standard output why they fail; only this one is no failure.
        let unknown = String::from_utf8_lossy(&output.stdout).contains("credentials not found");
        return if unknown { Ok(None) } else { Err(failed(&format!("failed with {}", output.status))) };
    }
    let answer: HelperAnswer =
        serde_json::from_slice(&output.stdout).map_err(|_| failed("gives an answer that is not JSON"))?;
    Ok(Some(if answer.user == TOKEN_USER {
        Credentials::Identity { token: Secret(answer.secret) }
    } else {
        Credentials::Password { user: answer.user, password: Secret(answer.secret) }
    }))
}

/// The entry whose key is the longest that covers a repository.
fn longest<'e, V>(
    entries: impl Iterator<Item = (&'e String, &'e V)>,
    repository: &str,
) -> Option<(&'e String, &'e V)> {
    entries.filter(|(key, _)| covers(&normal(key), repository)).max_by_key(|(key, _)| normal(key).len())
}

fn covers(key: &str, repository: &str) -> bool {
    repository.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A key without what docker writes around a host, and Docker Hub by its one name.
fn normal(key: &str) -> String {
    let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let key = key.trim_end_matches('/');
    let key = key.strip_suffix("/v1").or_else(|| key.strip_suffix("/v2")).unwrap_or(key);
    match key {
        "index.docker.io" | "registry-1.docker.io" => DOCKER_HUB.into(),
        key => key.into(),
    }
}

fn host_of(repository: &str) -> &str {
    repository.split_once('/').map_or(repository, |(host, _)| host)
}

/// The bytes of a small plain file: credentials, certificates. A pipe would be waited for, and a device may have no end.
pub(super) fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a plain file"));
    }
    if metadata.len() > MAX_FILE {
        return Err(io::Error::other(format!("larger than {MAX_FILE} bytes")));
    }
    fs::read(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    /// The credentials that the store has for each of these repositories.
    fn check(store: &CredentialStore, repositories: &[&str]) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let describe = |repository: &str| match runtime.block_on(store.find(repository)) {
            Ok(None) => "nobody".to_owned(),
            Ok(Some(Credentials::Password { user, password })) => format!("{user} {}", password.0),
            Ok(Some(Credentials::Identity { token })) => format!("token {}", token.0),
            Err(error) => format!("error: {error}"),
        };
        let lines: Vec<String> =
            repositories.iter().map(|repository| format!("{repository}: {}", describe(repository))).collect();
        lines.join("\n")
    }

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        fs::write(&path, text).unwrap();
        (dir, path)
    }

    fn store(path: PathBuf) -> CredentialStore {
        CredentialStore::new(vec![], Some(path), |_| None)
    }

    #[test]
    fn the_longest_key_counts() {
        let auth = |text: &str| STANDARD.encode(text);
        let (_dir, path) = file(&format!(
            r#"{{"auths": {{"quay.io": {{"auth": "{}"}}, "quay.io/team": {{"auth": "{}"}},
                "https://index.docker.io/v1/": {{"auth": "{}"}}, "old.example.com/v2/": {{"username": "e", "password": "f"}},
                "token.example.com": {{"auth": "{}", "identitytoken": "T"}}, "empty.example.com": {{}}}}}}"#,
            auth("all:1"),
            auth("team:p:q"),
            auth("hub:3"),
            auth("0:"),
        ));
        assert_snapshot!(check(&store(path), &["quay.io/other/app", "quay.io/team/app", "quay.io/teams/app", "docker.io/library/busybox",
            "old.example.com/app", "token.example.com/app", "empty.example.com/app", "quay.io.example.com/team"]), @r"
        quay.io/other/app: all 1
        quay.io/team/app: team p:q
        quay.io/teams/app: all 1
        docker.io/library/busybox: hub 3
        old.example.com/app: e f
        token.example.com/app: token T
        empty.example.com/app: nobody
        quay.io.example.com/team: nobody
        ");
    }

    #[test]
    fn the_command_line_wins() {
        let (_dir, path) = file(r#"{"auths": {"quay.io/team/app": {"username": "file", "password": "1"}}}"#);
        let given = ["quay.io=cli:2", "127.0.0.1:5000=u:p=q:r"].map(|text| text.parse().unwrap());
        let store = CredentialStore::new(given.into(), Some(path), |_| None);
        assert_snapshot!(check(&store, &["quay.io/team/app", "127.0.0.1:5000/x"]), @r"
        quay.io/team/app: cli 2
        127.0.0.1:5000/x: u p=q:r
        ");
    }

    #[test]
    fn where_files_are_looked_for() {
        let files = |variables: &[(&str, &str)]| {
            let find =
                |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
            let files = CredentialStore::new(vec![], None, find).files;
            files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_snapshot!(files(&[]), @"");
        assert_snapshot!(files(&[("HOME", "/h")]), @"/h/.config/containers/auth.json /h/.docker/config.json");
        assert_snapshot!(files(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/r"), ("XDG_CONFIG_HOME", "/c"), ("DOCKER_CONFIG", "/d")]), @"/r/containers/auth.json /c/containers/auth.json /d/config.json");
        assert_snapshot!(files(&[("HOME", "/h"), ("REGISTRY_AUTH_FILE", "/f")]), @"/f");
    }

    #[test]
    fn files_that_cannot_be_used_are_named_and_not_repeated() {
        let shown = |text: &str| {
            let (dir, path) = file(text);
            let shown = check(&store(path), &["quay.io/team/app"]);
            assert!(!shown.contains("hunter2"), "{shown}");
            shown.replace(&dir.path().display().to_string(), "DIR")
        };
        assert_snapshot!(shown(r#"{"auths": "hunter2"}"#), @"quay.io/team/app: error: `DIR/auth.json` is not a file of credentials: fault at line 1, column 19");
        assert_snapshot!(shown(r#"{"auths": {"quay.io": {"auth": "hunter2"}}}"#), @"quay.io/team/app: error: `DIR/auth.json` has an entry `quay.io` that is not `USER:PASSWORD` in base64");
        assert_snapshot!(shown(r#"{"credHelpers": {"quay.io": "no-such-helper"}}"#), @"quay.io/team/app: error: `docker-credential-no-such-helper` cannot be run: No such file or directory (os error 2)");
        assert_snapshot!(shown(r#"{"credsStore": "../../bin/sh"}"#), @"quay.io/team/app: error: `docker-credential-../../bin/sh` is not the name of a program");
        assert_snapshot!(shown(""), @"quay.io/team/app: nobody");
        let missing = check(&store("/no/such/file".into()), &["quay.io/team/app"]);
        assert_snapshot!(missing, @"quay.io/team/app: error: cannot read `/no/such/file`");
    }

    #[test]
    fn no_secret_is_printed() {
        let given: GivenCredentials = "quay.io=user:hunter2".parse().unwrap();
        assert!(!format!("{given:?}").contains("hunter2"));
        assert_snapshot!("quay.io:user:hunter2".parse::<GivenCredentials>().unwrap_err(), @"invalid credentials: expected `HOST=USER:PASSWORD`");
    }
}
