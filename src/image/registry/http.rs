//! HTTP as registries need it: TLS by host, bounded answers, redirections that carry no credentials, and attempts that
//! are repeated while there is hope.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use backon::{ExponentialBuilder, Retryable as _};
use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::credentials::read_plain;
use super::error::{Fault, RegistryError};
use super::pulse::Pulse;
use super::trust;
use crate::image::progress::{Event, Progress};
use crate::requests;

/// How often and how long to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How often something is tried at most.
    pub attempts: usize,
    /// The pause after the first failure; each one after it is twice as long, up to [`Patience::longest_pause`].
    pub first_pause: Duration,
    /// The longest pause; what a registry asks for beyond that ends the attempts.
    pub longest_pause: Duration,
    /// How long a registry may be silent in the middle of an exchange.
    pub silence: Duration,
    /// How long a connection may take.
    pub connect: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(60),
            silence: Duration::from_secs(30),
            connect: Duration::from_secs(10),
        }
    }
}

/// Redirections that are followed, one after the other.
const MAX_REDIRECTS: usize = 5;
/// The least that an answer has to bring in the time that a registry may be silent, in bytes.
const LEAST: usize = 1 << 10;
/// How much of an error's text is read, and how much of its message is shown.
const MAX_ERROR_BODY: u64 = 64 << 10;
const MAX_MESSAGE: usize = 300;

/// What a connection to a host is secured by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Security {
    /// TLS and a certificate that is trusted.
    Verified,
    /// TLS, but anybody may answer.
    Unverified,
    /// Nothing.
    Plain,
}

/// What a client is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Route {
    security: Security,
    /// Whether the host is this machine, which no proxy knows: as Go's programs hold it, docker's and podman's among them.
    is_local: bool,
}

/// One client per route, made when it is needed first: reading the system's certificates takes a while.
pub(super) struct Http {
    clients: Mutex<HashMap<Route, Client>>,
    ca_files: Vec<PathBuf>,
    plain: BTreeSet<String>,
    unverified: BTreeSet<String>,
    /// Hosts that were silent as often as they were asked: that is often enough for all who ask.
    silent: Mutex<HashMap<String, Arc<RegistryError>>>,
    pub(super) patience: Patience,
    progress: Arc<dyn Progress>,
}

impl Http {
    pub(super) fn new(
        ca_files: Vec<PathBuf>,
        plain: BTreeSet<String>,
        unverified: BTreeSet<String>,
        patience: Patience,
        progress: Arc<dyn Progress>,
    ) -> Self {
        let (clients, silent) = (Mutex::default(), Mutex::default());
        Self { clients, ca_files, plain, unverified, silent, patience, progress }
    }

    /// Whether the user said that a host speaks plain HTTP.
    pub(super) fn is_plain(&self, url: &Url) -> bool {
        names(&self.plain, url)
    }

    /// A request, not yet sent.
    pub(super) fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, RegistryError> {
        let security = if url.scheme() == "http" {
            Security::Plain
        } else if names(&self.unverified, &url) {
            Security::Unverified
        } else {
            Security::Verified
        };
        let route = Route { security, is_local: is_loopback(&url) };
        Ok(self.client(route, &url)?.request(method, url))
    }

    fn client(&self, route: Route, url: &Url) -> Result<Client, RegistryError> {
        // A client is stored whole, so a panic elsewhere leaves none half made.
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&route) {
            return Ok(client.clone());
        }
        let mut builder = Client::builder()
            .user_agent(concat!("olmkit/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.patience.connect);
        if route.is_local {
            builder = builder.no_proxy();
        }
        match route.security {
            Security::Verified => {
                let unusable = |source: rustls::Error| RegistryError::Unreachable {
                    host: host_of(url),
                    source: Fault::final_reason(source.to_string()),
                };
                let config = trust::config(self.certificates()?).map_err(unusable)?;
                builder = builder.tls_backend_preconfigured(config);
            }
            Security::Unverified => {
                self.certificates()?;
                builder = builder.tls_certs_only([]).tls_danger_accept_invalid_certs(true);
            }
            Security::Plain => {
                self.certificates()?;
                builder = builder.tls_certs_only([]);
            }
        }
        let client = builder
            .build()
            .map_err(|source| RegistryError::Unreachable { host: host_of(url), source: source.into() })?;
        clients.insert(route, client.clone());
        Ok(client)
    }

    /// The certificates of the files that the user named. A file that cannot be used is an error also where none is needed.
    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, RegistryError> {
        let mut certificates = Vec::new();
        for path in &self.ca_files {
            let failed =
                |source: Box<dyn Error + Send + Sync>| RegistryError::CaFile { path: path.clone(), source };
            let text = read_plain(path).map_err(|error| failed(error.into()))?;
            let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
            let found = found.map_err(|error| failed(error.into()))?;
            if found.is_empty() {
                return Err(failed("it has no certificate in PEM form".into()));
            }
            certificates.extend(found);
        }
        Ok(certificates)
    }

    /// Sends a request and waits for the head of the answer, whatever its status.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, RegistryError> {
        let (client, request) = request.build_split();
        let mut request = request.map_err(|error| RegistryError::Malformed {
            host: "the registry".into(),
            problem: error.without_url().to_string(),
        })?;
        let host = host_of(request.url());
        if let Some(error) = self.silent().get(&host) {
            return Err(Arc::clone(error).into());
        }
        let silence = self.patience.silence;
        let pulse = Pulse::of(&mut request);
        let (method, url, begun) =
            (request.method().clone(), requests::without_secrets(request.url()), Instant::now());
        let answer = tokio::select! {
            answer = client.execute(request) => answer.map_err(|error| fault(host, error)),
            () = pulse.stops(silence) => Err(RegistryError::Silent { host }),
        };
        let status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
        requests::tell(&method, &url, status, begun.elapsed());
        let mut response = answer?;
        response.extensions_mut().insert(Pace::new(silence));
        Ok(response)
    }

    /// Repeats an attempt while it fails for reasons that may pass, with growing pauses, or those that the registry asks
    /// for.
    pub(super) async fn retry<T, F>(&self, attempt: impl FnMut() -> F) -> Result<T, RegistryError>
    where
        F: Future<Output = Result<T, RegistryError>>,
    {
        let Patience { attempts, first_pause, longest_pause, .. } = self.patience;
        let pauses = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(first_pause)
            .with_max_delay(longest_pause)
            .with_max_times(attempts.saturating_sub(1));
        attempt
            .retry(pauses)
            .when(RegistryError::is_transient)
            .adjust(|error, pause| {
                let asked = error.wait().unwrap_or_default();
                pause.filter(|_| asked <= longest_pause).map(|pause| pause.max(asked))
            })
            .notify(|error, pause| {
                let reason = error.to_string();
                self.progress.happened(&Event::Waiting { reason: &reason, pause });
            })
            .await
            .map_err(|error| match &error {
                RegistryError::Silent { host } | RegistryError::Slow { host, .. } => {
                    let host = host.clone();
                    Arc::clone(self.silent().entry(host).or_insert(Arc::new(error))).into()
                }
                _ => error,
            })
    }

    fn silent(&self) -> MutexGuard<'_, HashMap<String, Arc<RegistryError>>> {
        // Errors are inserted whole, so a panic elsewhere leaves none half made.
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is wrong when no answer came.
fn fault(host: String, error: reqwest::Error) -> RegistryError {
    let error = error.without_url();
    if error.is_timeout() {
        return RegistryError::Silent { host };
    }
    match tls_fault(&error) {
        Some(rustls::Error::InvalidMessage(_)) => RegistryError::NotTls { host },
        Some(source @ (rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)) => {
            RegistryError::Certificate { host, source: source.clone().into() }
        }
        _ if error.is_connect() || error.is_builder() => {
            RegistryError::Unreachable { host, source: error.into() }
        }
        _ => RegistryError::Broken { host, source: error.into() },
    }
}

/// TLS faults come wrapped in `io::Error`s, whose `source` skips what they wrap.
fn tls_fault<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match wrapped {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

/// The whole answer, when it is no longer than `limit` bytes.
pub(super) async fn body(mut response: Response, limit: u64) -> Result<Bytes, RegistryError> {
    let url = response.url().clone();
    let too_long = || malformed(&url, &format!("it has more than {limit} bytes"));
    if response.content_length().is_some_and(|length| length > limit) {
        return Err(too_long());
    }
    let mut bytes = BytesMut::new();
    while let Some(piece) = piece(&mut response).await? {
        if (bytes.len() + piece.len()) as u64 > limit {
            return Err(too_long());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
}

/// The next piece of an answer; `None` at its end.
pub(super) async fn piece(response: &mut Response) -> Result<Option<Bytes>, RegistryError> {
    let host = host_of(response.url());
    let mut pace =
        response.extensions().get().copied().unwrap_or_else(|| Pace::new(Patience::default().silence));
    let piece = match tokio::time::timeout_at(pace.end.into(), response.chunk()).await {
        Ok(piece) => piece.map_err(|error| fault(host, error))?,
        Err(_) if pace.bytes == 0 => return Err(RegistryError::Silent { host }),
        Err(_) => return Err(RegistryError::Slow { host, bytes: pace.bytes, time: pace.silence }),
    };
    pace.bytes += piece.as_ref().map_or(0, Bytes::len);
    if pace.bytes >= LEAST {
        pace = Pace::new(pace.silence);
    }
    response.extensions_mut().insert(pace);
    Ok(piece)
}

/// How an answer comes, beside the answer.
#[derive(Clone, Copy)]
struct Pace {
    /// How long a registry may take for [`LEAST`] bytes.
    silence: Duration,
    end: Instant,
    bytes: usize,
}

impl Pace {
    fn new(silence: Duration) -> Self {
        Self { silence, end: Instant::now() + silence, bytes: 0 }
    }
}

/// Asks at an address, and follows redirections from there.
///
/// # Errors
/// There is no answer, they do not end, or one leads from HTTPS to plain HTTP.
pub(super) async fn following<F>(url: &Url, ask: impl Fn(Url) -> F) -> Result<Response, RegistryError>
where
    F: Future<Output = Result<Response, RegistryError>>,
{
    let mut at = url.clone();
    for _ in 0..=MAX_REDIRECTS {
        let response = ask(at.clone()).await?;
        if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(response);
        }
        at = location(&response, &at)?;
    }
    Err(malformed(url, "it redirects too often"))
}

/// Where an answer points to; never from HTTPS to plain HTTP.
pub(super) fn location(response: &Response, base: &Url) -> Result<Url, RegistryError> {
    let text = response.headers().get(reqwest::header::LOCATION).and_then(|value| value.to_str().ok());
    let url =
        text.and_then(|text| base.join(text).ok()).filter(|url| matches!(url.scheme(), "http" | "https"));
    let url =
        url.ok_or_else(|| malformed(base, "its header `Location` has no address with http or https"))?;
    if base.scheme() == "https" && url.scheme() != "https" {
        return Err(RegistryError::Downgrade { host: host_of(base), to: host_of(&url) });
    }
    Ok(url)
}

/// The response is invalid.
pub(super) fn malformed(url: &Url, problem: &str) -> RegistryError {
    RegistryError::Malformed { host: host_of(url), problem: problem.into() }
}

/// How long an answer asks to wait: <https://www.rfc-editor.org/rfc/rfc9110#field.retry-after>.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

/// What an answer that says no has to say: the registry's codes, and its words on one line.
pub(super) async fn refusal(response: Response) -> Refusal {
    let (status, wait, host) = (response.status(), retry_after(response.headers()), host_of(response.url()));
    // Without its words, the status has to do.
    let text = body(response, MAX_ERROR_BODY).await.unwrap_or_default();
    let mut refusal = Refusal { status, wait, host, codes: Vec::new(), message: String::new() };
    let Ok(document) = serde_json::from_slice::<serde_json::Value>(&text) else { return refusal };
    let mut messages = Vec::new();
    for error in document["errors"].as_array().into_iter().flatten() {
        let code = error["code"].as_str().unwrap_or_default();
        refusal.codes.push(code.to_owned());
        messages.push(match error["message"].as_str().filter(|message| !message.is_empty()) {
            Some(message) => message.to_owned(),
            None => code.to_owned(),
        });
    }
    refusal.message = messages.join(", ").chars().take(MAX_MESSAGE).collect();
    refusal
}

/// Whether a web page was sent for what was asked, or instead of it.
pub(super) fn is_page(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    !response.status().is_client_error()
        && !response.status().is_server_error()
        && content_type.is_some_and(|text| text.trim_start().to_lowercase().starts_with("text/html"))
}

/// What a registry says when it says no.
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) wait: Option<Duration>,
    pub(super) host: String,
    pub(super) codes: Vec<String>,
    pub(super) message: String,
}

impl Refusal {
    /// Whether the registry gives this code: <https://github.com/opencontainers/distribution-spec/blob/main/spec.md#error-codes>.
    pub(super) fn says(&self, code: &str) -> bool {
        self.codes.iter().any(|said| said == code)
    }
}

impl From<Refusal> for RegistryError {
    fn from(refusal: Refusal) -> Self {
        let Refusal { status, wait, host, message, .. } = refusal;
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Self::TooMany { host, wait };
        }
        Self::Status { host, status: status.as_u16(), message, wait }
    }
}

/// A URL's host, with its port when it is not the scheme's own.
pub(super) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether a list of hosts, with or without ports, names a URL's.
fn names(hosts: &BTreeSet<String>, url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    hosts.contains(host) || hosts.contains(&format!("{host}:{port}"))
}

/// Whether a URL leads to this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
