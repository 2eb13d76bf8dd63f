//! A proxy between the tool and the API server that fails on purpose, in an order that a seed decides.
//!
//! It speaks plain HTTP to the tool, and one request a connection, so that a fault hits just one request.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use reqwest::{Client, Method};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The server has too much to do, and says when to come again.
    TooMany,
    /// The server is not there for a moment.
    Away,
    /// The connection ends before the request is passed on.
    Hangup,
    /// The request is passed on, and the connection ends before the answer.
    LostAnswer,
    /// A watch ends after some milliseconds, without a word.
    Dropped(u64),
    /// A watch is told that what it wants to go on from is forgotten.
    Gone,
    /// A list is told so.
    NoNextPage,
}

const FOR_ALL: [Fault; 4] = [Fault::TooMany, Fault::Away, Fault::Hangup, Fault::LostAnswer];
const FOR_WATCHES: [Fault; 4] = [Fault::Gone, Fault::Dropped(50), Fault::Dropped(400), Fault::Dropped(2_000)];

const FOR_NEXT_PAGES: [Fault; 4] = [Fault::NoNextPage; 4];

/// A proxy that runs until the value is gone.
pub(crate) struct Proxy {
    address: String,
    dir: TempDir,
    stop: Arc<AtomicBool>,
    faults: Arc<AtomicU64>,
}

impl Proxy {
    /// Of five requests one fails, of watches and of lists that go on every other one.
    pub(crate) fn start(server: &str, token: &str, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let dir = tempfile::tempdir().unwrap();
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
             clusters: [{{name: test, cluster: {{server: 'http://{address}'}}}}]\n\
             users: [{{name: test, user: {{token: {token}}}}}]\n\
             contexts: [{{name: test, context: {{cluster: test, user: test}}}}]\n"
        );
        std::fs::write(dir.path().join("kubeconfig"), text).unwrap();
        let (stop, faults) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let upstream = Upstream {
            server: server.to_owned(),
            client: Client::builder().danger_accept_invalid_certs(true).build().unwrap(),
            runtime: Runtime::new().unwrap(),
            random: AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            faults: Arc::clone(&faults),
        };
        let (upstream, stopped) = (Arc::new(upstream), Arc::clone(&stop));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let upstream = Arc::clone(&upstream);
                // What fails here fails for the client as well, which is the point.
                thread::spawn(move || drop(upstream.serve(client)));
            }
        });
        Self { address, dir, stop, faults }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("kubeconfig")
    }

    /// How many requests have failed.
    pub(crate) fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.address);
    }
}

struct Upstream {
    server: String,
    client: Client,
    runtime: Runtime,
    random: AtomicU64,
    faults: Arc<AtomicU64>,
}

impl Upstream {
    /// One step of xorshift64 for each request.
    fn fault(&self, path: &str) -> Fault {
        let next = |state: u64| {
            let state = state ^ (state << 13);
            let state = state ^ (state >> 7);
            Some(state ^ (state << 17))
        };
        let state = self.random.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap() >> 11;
        let (kinds, rate) = if path.contains("watch=true") || path.contains("watch=1") {
            (&FOR_WATCHES, 2)
        } else if path.contains("continue=") {
            (&FOR_NEXT_PAGES, 2)
        } else {
            (&FOR_ALL, 5)
        };
        if state.is_multiple_of(rate) { kinds[(state / rate % 4) as usize] } else { Fault::None }
    }

    fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let (head, body) = request(&mut client)?;
        let mut words = head.lines().next().unwrap_or_default().split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let fault = self.fault(path);
        if fault != Fault::None {
            self.faults.fetch_add(1, Ordering::Relaxed);
        }
        match fault {
            Fault::Hangup => return client.shutdown(Shutdown::Both),
            Fault::Away => {
                return write!(
                    client,
                    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
            }
            Fault::TooMany => {
                let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too many","reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":1}}"#;
                return whole(&mut client, "429 Too Many Requests\r\nRetry-After: 1", status);
            }
            Fault::Gone => {
                let status = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}}"#;
                return whole(&mut client, "200 OK", &format!("{status}\n"));
            }
            Fault::NoNextPage => {
                let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the continue parameter is too old","reason":"Expired","code":410}"#;
                return whole(&mut client, "410 Gone", status);
            }
            _ => {}
        }
        let mut asked = self.client.request(
            Method::from_bytes(method.as_bytes()).map_err(io::Error::other)?,
            format!("{}{path}", self.server),
        );
        for line in head.lines().skip(1) {
            let Some((name, value)) = line.split_once(": ") else { continue };
            if !["host", "connection", "content-length", "accept-encoding"]
                .contains(&name.to_lowercase().as_str())
            {
                asked = asked.header(name, value);
            }
        }
        let mut answer = self.runtime.block_on(asked.body(body).send()).map_err(io::Error::other)?;
        if fault == Fault::LostAnswer {
            return client.shutdown(Shutdown::Both);
        }
        let media = answer
            .headers()
            .get("content-type")
            .and_then(|media| media.to_str().ok())
            .unwrap_or("application/json");
        write!(client, "HTTP/1.1 {}\r\nContent-Type: {media}\r\nConnection: close\r\n\r\n", answer.status())?;
        let begun = Instant::now();
        loop {
            let left = match fault {
                Fault::Dropped(after) => Duration::from_millis(after).saturating_sub(begun.elapsed()),
                _ => Duration::from_secs(600),
            };
            let chunk = self.runtime.block_on(async { tokio::time::timeout(left, answer.chunk()).await });
            match chunk {
                Ok(Ok(Some(bytes))) => client.write_all(&bytes)?,
                _ => return client.shutdown(Shutdown::Both),
            }
        }
    }
}

/// An answer that is written at once.
fn whole(client: &mut TcpStream, status: &str, body: &str) -> io::Result<()> {
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The head of a request, and its body.
fn request(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 8192];
    let end = loop {
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..count]);
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut body = bytes.split_off(end + 4);
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    while body.len() < length.unwrap_or(0) {
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        body.extend_from_slice(&buffer[..count]);
    }
    Ok((head, body))
}
