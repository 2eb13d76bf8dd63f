//! A registry that wants tokens, and the server that gives them out, signed as docker-registry checks it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use libtest_mimic::Trial;
use olmkit::image::{GivenCredentials, Options, Root};
use rcgen::{CertifiedKey, KeyPair, SigningKey as _, generate_simple_self_signed};
use serde_json::json;

use crate::places::chain;
use crate::server::{Kind, PASSWORD, Registry, USER, access, image, quick};
use crate::support::trial;

/// What docker keeps after a login in a browser, instead of a password.
const IDENTITY: &str = "an-identity-token";

/// The key that signs tokens, and its certificate.
static ISSUER: LazyLock<CertifiedKey<KeyPair>> =
    LazyLock::new(|| generate_simple_self_signed(["issuer.test".to_owned()]).unwrap());

/// The certificate that the registry trusts.
pub(crate) fn certificate() -> String {
    ISSUER.cert.pem()
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("tokens_are_fetched_for_what_is_done", &["docker-registry"], || {
            let server = Tokens::start();
            let registry = Registry::start(Kind::Token(server.port));
            let access = access(options(&registry, PASSWORD));
            registry.place("team/app:v1").store(&root(), &access).unwrap();
            let scopes = server.scopes();
            assert_eq!(scopes.len(), 1, "one token serves a whole push: {scopes:?}");
            assert!(scopes[0].contains("repository%3Ateam%2Fapp%3Apull%2Cpush"), "{scopes:?}");

            // Between repositories, one token for both.
            let loaded = registry.place("team/app:v1").load(&access).unwrap();
            registry.place("team/other:v1").store(&loaded, &access).unwrap();
            assert_eq!(registry.tags("team/other"), ["v1"]);
            let mounting =
                server.scopes().into_iter().filter(|scope| scope.matches("scope=").count() == 2).count();
            assert_eq!(mounting, 1, "{:?}", server.scopes());
            Ok(())
        }),
        trial("a_token_that_is_refused_is_renewed", &["docker-registry"], || {
            let server = Tokens::start();
            let registry = Registry::start(Kind::Token(server.port));
            // The first token is none that the registry takes.
            server.bad.store(1, Ordering::Relaxed);
            registry.place("team/app:v1").store(&root(), &access(options(&registry, PASSWORD))).unwrap();
            assert_eq!(registry.tags("team/app"), ["v1"]);
            Ok(())
        }),
        trial("an_identity_token_is_exchanged", &["docker-registry"], || {
            let server = Tokens::start();
            let registry = Registry::start(Kind::Token(server.port));
            let file = tempfile::NamedTempFile::new().unwrap();
            let entry = json!({"auths": {&registry.host: {"auth": STANDARD.encode("0:"), "identitytoken": IDENTITY}}});
            fs::write(file.path(), entry.to_string()).unwrap();
            let options = Options { auth_file: Some(file.path().into()), ..quick() };
            registry.place("team/app:v1").store(&root(), &access(options)).unwrap();
            assert_eq!(registry.tags("team/app"), ["v1"]);
            assert!(server.scopes()[0].contains("grant_type=refresh_token"), "{:?}", server.scopes());
            Ok(())
        }),
        trial("who_gets_no_token_is_told_so", &["docker-registry"], || {
            let server = Tokens::start();
            let registry = Registry::start(Kind::Token(server.port));
            let error = registry.place("team/app:v1").store(&root(), &access(options(&registry, "hunter2")));
            let error = chain(&error.unwrap_err());
            assert!(error.contains("refuses to write to `team/app` to user `alice`"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
            Ok(())
        }),
    ]
}

fn root() -> Root {
    image("linux/amd64", &[("a", b"a".to_vec())]).into()
}

fn options(registry: &Registry, password: &str) -> Options {
    let credentials: GivenCredentials = format!("{}={USER}:{password}", registry.host).parse().unwrap();
    Options { credentials: vec![credentials], ..quick() }
}

/// A server that gives out tokens to one user.
struct Tokens {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    bad: Arc<AtomicUsize>,
}

impl Tokens {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (asked, bad) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (seen, spoiled) = (Arc::clone(&asked), Arc::clone(&bad));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, spoiled) = (Arc::clone(&seen), Arc::clone(&spoiled));
                thread::spawn(move || {
                    // A client that hangs up is done.
                    let _ = answer(stream, &seen, &spoiled);
                });
            }
        });
        Self { port, asked, bad }
    }

    /// The query of each request, or its form.
    fn scopes(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, asked: &Mutex<Vec<String>>, bad: &AtomicUsize) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    // A client may open a connection to spare, and never ask.
    if reader.read_line(&mut line)? == 0 {
        return Ok(());
    }
    let login = format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")));
    let (mut is_user, mut length) = (false, 0);
    loop {
        let mut field = String::new();
        reader.read_line(&mut field)?;
        let Some((name, value)) = field.trim().split_once(':') else { break };
        match name.to_lowercase().as_str() {
            "authorization" => is_user = value.trim() == login,
            "content-length" => length = value.trim().parse().unwrap_or(0),
            _ => {}
        }
    }
    let mut query = line.split(' ').nth(1).unwrap_or_default().to_owned();
    if line.starts_with("POST ") {
        let mut form = vec![0; length];
        reader.read_exact(&mut form)?;
        query = String::from_utf8_lossy(&form).into_owned();
        is_user = query.contains(&format!("refresh_token={IDENTITY}"));
    }
    asked.lock().unwrap().push(query.clone());
    let (status, body) = if !is_user {
        ("401 Unauthorized", json!({"errors": [{"code": "UNAUTHORIZED", "message": "wrong password"}]}))
    } else if bad.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        ("200 OK", json!({"token": "none", "expires_in": 300}))
    } else {
        ("200 OK", json!({"token": token(&query), "expires_in": 300}))
    };
    let body = body.to_string();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

/// A signed token for the scopes of a query: <https://distribution.github.io/distribution/spec/auth/jwt/>.
fn token(query: &str) -> String {
    let scopes = query.split(['?', '&']).filter_map(|pair| pair.strip_prefix("scope="));
    let access: Vec<_> = scopes
        .map(|scope| {
            let scope = scope.replace("%3A", ":").replace("%2F", "/").replace("%2C", ",");
            let parts: Vec<&str> = scope.split(':').collect();
            json!({"type": parts[0], "name": parts[1], "actions": parts[2].split(',').collect::<Vec<_>>()})
        })
        .collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let header = json!({"typ": "JWT", "alg": "ES256", "x5c": [STANDARD.encode(ISSUER.cert.der())]});
    let claims = json!({
        "iss": "test", "sub": USER, "aud": "test", "exp": now + 300, "nbf": now - 10, "iat": now, "jti": "1", "access": access,
    });
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(header), part(claims));
    let signature = ISSUER.signing_key.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(plain(&signature)))
}

/// The two numbers of a DER signature side by side, 32 bytes each, as tokens have them.
fn plain(der: &[u8]) -> Vec<u8> {
    let mut numbers = Vec::new();
    // A sequence of two integers: tag, length; then for each its tag, length and bytes.
    let mut rest = &der[2..];
    for _ in 0..2 {
        let length = usize::from(rest[1]);
        let number = &rest[2..2 + length];
        let number = &number[number.len().saturating_sub(32)..];
        numbers.extend(std::iter::repeat_n(0, 32 - number.len()));
        numbers.extend_from_slice(number);
        rest = &rest[2 + length..];
    }
    numbers
}
