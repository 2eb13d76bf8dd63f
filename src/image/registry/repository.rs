//! One repository of one registry, spoken to as the distribution specification says:
//! <https://github.com/opencontainers/distribution-spec/blob/main/spec.md>.
//!
//! Here is what both directions need: the first contact, tokens, and requests that carry them. Reading is in `pull`,
//! writing in `push`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

use super::auth::{self, Challenge, Token};
use super::credentials::{CredentialStore, Credentials};
use super::error::RegistryError;
use super::http::{Http, Refusal, following, host_of, is_loopback, malformed, refusal};
use crate::image::digest::Digest;
use crate::image::progress::Progress;
use crate::requests;

/// What the reference `docker.io` stands for.
const DOCKER_HUB: &str = "docker.io";
const DOCKER_HUB_HOST: &str = "registry-1.docker.io";

/// A registry, contacted once for all of its repositories.
pub(super) struct Registry {
    /// The host as references name it, with the port if there is one.
    pub(super) host: String,
    pub(super) http: Arc<Http>,
    pub(super) credentials: Arc<CredentialStore>,
    /// What came of the first contact. Where it failed, it was tried often enough for all who ask.
    contact: OnceCell<Result<Contact, Arc<RegistryError>>>,
}

/// What is known of a registry since the first contact.
struct Contact {
    /// `https://HOST/v2/`
    base: Url,
    /// Some show it only to those who want to write.
    challenge: Mutex<Challenge>,
}

/// A repository of a registry.
pub(in crate::image) struct Repository {
    pub(super) registry: Arc<Registry>,
    /// The name without the registry: `team/app`.
    pub(super) name: String,
    pub(super) progress: Arc<dyn Progress>,
    credentials: OnceCell<Option<Credentials>>,
    /// Held while one is fetched, so that all who wait for the same get the same.
    tokens: tokio::sync::Mutex<HashMap<Vec<String>, Token>>,
    /// Blobs that are on their way before the image is put together.
    pub(super) ahead: Mutex<HashMap<Digest, JoinHandle<Result<(), RegistryError>>>>,
}

/// What a request needs to be allowed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Right<'n> {
    /// To read.
    Pull,
    /// To read and write.
    Push,
    /// To read and write, and to read another repository of the registry.
    Mount(&'n str),
}

impl Registry {
    pub(super) fn new(host: &str, http: Arc<Http>, credentials: Arc<CredentialStore>) -> Self {
        Self { host: host.into(), http, credentials, contact: OnceCell::new() }
    }

    async fn contact(&self) -> Result<&Contact, RegistryError> {
        let made = || async { self.make_contact().await.map_err(Arc::new) };
        self.contact.get_or_init(made).await.as_ref().map_err(|error| Arc::clone(error).into())
    }

    /// Asks the registry's root what it wants. HTTPS, unless the user says otherwise; hosts of this machine may speak
    /// plain HTTP without being asked to, as docker and containerd hold it.
    async fn make_contact(&self) -> Result<Contact, RegistryError> {
        let host = if self.host == DOCKER_HUB { DOCKER_HUB_HOST } else { &self.host };
        let url = |scheme: &str| {
            Url::parse(&format!("{scheme}://{host}/v2/")).map_err(|_| RegistryError::Malformed {
                host: host.into(),
                problem: "its name is not a host name".into(),
            })
        };
        let (secure, plain) = (url("https")?, url("http")?);
        if self.http.is_plain(&secure) || self.http.is_plain(&plain) {
            return self.ping_with_retry(plain).await;
        }
        if is_loopback(&plain) {
            // A server that expects TLS refuses plain HTTP or hangs up.
            match self.ping(&plain).await {
                Ok(response) if is_greeting(response.status()) => return Contact::of(plain, &response),
                Ok(response) if is_transient(response.status()) => return self.ping_with_retry(plain).await,
                Err(RegistryError::Unreachable { .. }) => return self.ping_with_retry(plain).await,
                _ => {}
            }
        }
        match self.ping_with_retry(secure).await {
            // It answered before, and the failure was transient.
            Err(RegistryError::NotTls { .. }) if is_loopback(&plain) => self.ping_with_retry(plain).await,
            contact => contact,
        }
    }

    async fn ping(&self, base: &Url) -> Result<Response, RegistryError> {
        self.http.send(self.http.request(Method::GET, base.clone())?).await
    }

    async fn ping_with_retry(&self, base: Url) -> Result<Contact, RegistryError> {
        let attempt = || async {
            let answer = following(&base, |url| async move { self.ping(&url).await }).await;
            let response = match answer {
                // Nobody has answered at that address yet: more likely a wrong name than a bad moment.
                Err(RegistryError::Unreachable { host, source }) => return Ok(Err((host, source))),
                other => other?,
            };
            let status = response.status();
            if is_greeting(status) {
                Contact::of(base.clone(), &response).map(Ok)
            } else if is_transient(status) || status.as_u16() == 403 {
                Err(refusal(response).await.into())
            } else {
                Err(malformed(&base, &format!("it answers `/v2/` with status {}", status.as_u16())))
            }
        };
        let contact = self.http.retry(attempt).await?;
        contact.map_err(|(host, source)| RegistryError::Unreachable { host, source })
    }
}

impl Contact {
    fn of(base: Url, response: &Response) -> Result<Self, RegistryError> {
        let challenge = Challenge::of(&base, response.status(), response.headers())?;
        Ok(Self { base, challenge: Mutex::new(challenge) })
    }

    fn challenge(&self) -> MutexGuard<'_, Challenge> {
        // A challenge is written whole, so a panic elsewhere leaves none half written.
        self.challenge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a refusal is worth another attempt: with a challenge that was not `met` because it was not known, or with a
    /// new token.
    fn learns_from(&self, refusal: &Response, met: &Challenge) -> bool {
        match met {
            Challenge::Nothing => {
                let challenge = Challenge::of(refusal.url(), refusal.status(), refusal.headers());
                challenge.map(|challenge| *self.challenge() = challenge).is_ok()
            }
            Challenge::Basic => false,
            Challenge::Bearer { .. } => true,
        }
    }
}

/// Whether a registry answers `/v2/` like this.
fn is_greeting(status: StatusCode) -> bool {
    status.is_success() || status == StatusCode::UNAUTHORIZED
}

/// Whether the same request may be answered otherwise later.
fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500..)
}

impl Repository {
    pub(super) fn new(registry: Arc<Registry>, name: &str, progress: Arc<dyn Progress>) -> Self {
        Self {
            registry,
            name: name.into(),
            progress,
            credentials: OnceCell::new(),
            tokens: tokio::sync::Mutex::default(),
            ahead: Mutex::default(),
        }
    }

    pub(super) fn http(&self) -> &Http {
        &self.registry.http
    }

    pub(super) fn host(&self) -> &str {
        &self.registry.host
    }

    /// The address of something in the repository, such as `manifests/v1`.
    pub(super) async fn url(&self, rest: &str) -> Result<Url, RegistryError> {
        let base = &self.registry.contact().await?.base;
        base.join(&format!("{}/{rest}", self.name))
            .map_err(|_| malformed(base, "no address can be made for it"))
    }

    /// Asks for something, and follows redirections to where it is. Other hosts than the registry's get no credentials.
    pub(super) async fn read(
        &self,
        method: Method,
        url: &Url,
        headers: &HeaderMap,
    ) -> Result<Response, RegistryError> {
        let with = |request: RequestBuilder| request.headers(headers.clone());
        following(url, |url| {
            let method = method.clone();
            async move { self.send(Right::Pull, method, &url, with).await }
        })
        .await
    }

    /// Sends a request with what the registry wants to see; `with` adds headers and a body. A token that was refused is
    /// renewed once, and what a registry asks for only now is shown. Where the registry has named an address on another host, credentials do not go there.
    pub(super) async fn send(
        &self,
        right: Right<'_>,
        method: Method,
        url: &Url,
        with: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, RegistryError> {
        let contact = self.registry.contact().await?;
        let is_home = url.origin() == contact.base.origin();
        let mut again = false;
        loop {
            let challenge = contact.challenge().clone();
            let mut request = with(self.http().request(method.clone(), url.clone())?);
            if is_home && let Some(header) = self.authorization(contact, &challenge, right, again).await? {
                request = request.header(AUTHORIZATION, header);
            }
            let response = self.http().send(request).await?;
            let is_refused = is_home && response.status() == StatusCode::UNAUTHORIZED;
            if again || !is_refused || !contact.learns_from(&response, &challenge) {
                return Ok(response);
            }
            again = true;
        }
    }

    async fn authorization(
        &self,
        contact: &Contact,
        challenge: &Challenge,
        right: Right<'_>,
        renew: bool,
    ) -> Result<Option<HeaderValue>, RegistryError> {
        let (realm, service) = match challenge {
            Challenge::Nothing => return Ok(None),
            Challenge::Basic => {
                let basic = self.credentials().await?.and_then(Credentials::basic);
                return basic.map(|basic| auth::sensitive(&basic, &contact.base)).transpose();
            }
            Challenge::Bearer { realm, service } => (realm, service.as_deref()),
        };
        let mut scopes = match right {
            Right::Pull => vec![format!("repository:{}:pull", self.name)],
            _ => vec![format!("repository:{}:pull,push", self.name)],
        };
        if let Right::Mount(from) = right {
            scopes.push(format!("repository:{from}:pull"));
        }
        let mut tokens = self.tokens.lock().await;
        if !renew && let Some(token) = tokens.get(&scopes).and_then(Token::header) {
            return Ok(Some(token));
        }
        let credentials = self.credentials().await?;
        if credentials.is_some() {
            requests::tell_of_credentials(self.host(), &host_of(realm));
        }
        // Tried often enough here: others that wait for the same token would only try again.
        let fetch = || auth::token(self.http(), realm, service, &scopes, credentials);
        let token = self.http().retry(fetch).await.map_err(|error| match error {
            RegistryError::Status { status: 400 | 401 | 403, message, .. } => {
                no_entry(host_of(realm), self.action(right), message, credentials)
            }
            other => Arc::new(other).into(),
        })?;
        let header = token.header();
        tokens.insert(scopes, token);
        Ok(header)
    }

    async fn credentials(&self) -> Result<Option<&Credentials>, RegistryError> {
        let find = || async {
            let repository = format!("{}/{}", self.registry.host, self.name);
            let found = self.registry.credentials.find(&repository).await;
            found.map_err(|source| RegistryError::Credentials { host: self.host().into(), source })
        };
        Ok(self.credentials.get_or_try_init(find).await?.as_ref())
    }

    /// A refusal as an error; `what` is named when it is not there.
    pub(super) async fn refused(&self, right: Right<'_>, refusal: Refusal, what: &str) -> RegistryError {
        match refusal.status.as_u16() {
            401 | 403 => {
                // They were found before, or the request would not have been sent.
                let credentials = self.credentials().await.ok().flatten();
                no_entry(self.host().into(), self.action(right), refusal.message, credentials)
            }
            404 => RegistryError::NotFound { host: self.host().into(), what: what.into() },
            _ => refusal.into(),
        }
    }

    fn action(&self, right: Right<'_>) -> String {
        match right {
            Right::Pull => format!("to read `{}`", self.name),
            _ => format!("to write to `{}`", self.name),
        }
    }
}

fn no_entry(
    host: String,
    action: String,
    message: String,
    credentials: Option<&Credentials>,
) -> RegistryError {
    match credentials {
        None => RegistryError::NotLoggedIn { host, action, message },
        Some(credentials) => {
            RegistryError::Denied { host, action, user: credentials.user().to_owned(), message }
        }
    }
}
