//! A proxy between us and a registry that fails on purpose, in an order that a seed decides.
//!
//! One request a connection: the proxy asks both sides to close, so that a fault hits just one request.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing out of the ordinary.
    None,
    /// The connection ends before anything is passed on.
    Hangup,
    /// The connection ends in the middle of the request's body.
    HalfRequest,
    /// The request is passed on, and the connection ends before the answer.
    LostAnswer,
    /// The connection ends in the middle of the answer.
    HalfAnswer,
    /// A status instead of the registry's answer, with what retry after.
    Status(u16, Option<u64>),
    /// The answer's headers speak of another digest.
    OtherDigest,
    /// One byte of the answer's body is another.
    OtherBody,
    /// It is said that a blob is there.
    FalseHead,
    /// Nothing is answered for longer than anybody waits.
    Silence,
}

impl Fault {
    /// The only one of a seed's faults after which no other attempt makes sense.
    pub(crate) const FOR_GOOD: Self = Self::Status(429, Some(3600));
}

const FAULTS: [Fault; 12] = [
    Fault::Hangup,
    Fault::HalfRequest,
    Fault::LostAnswer,
    Fault::HalfAnswer,
    Fault::Status(500, None),
    Fault::Status(503, Some(0)),
    Fault::Status(429, Some(0)),
    Fault::FOR_GOOD,
    Fault::OtherDigest,
    Fault::OtherBody,
    Fault::FalseHead,
    Fault::Silence,
];

/// A proxy that runs until the value is gone.
pub(crate) struct Proxy {
    pub(crate) host: String,
    seen: Arc<Mutex<Vec<Fault>>>,
    stop: Arc<AtomicBool>,
}

impl Proxy {
    /// A proxy before a registry. Of a hundred requests, `rate` fail, in an order of their own for each seed. With a limit,
    /// no more than so many fail, and none in a way that is for good.
    pub(crate) fn start(
        registry: &str,
        seed: u64,
        rate: u64,
        limit: Option<usize>,
        silence: Duration,
    ) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (met, state) = (Arc::clone(&seen), Mutex::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1));
        let decide = move |_: &str| {
            let (mut met, mut state) = (met.lock().unwrap(), state.lock().unwrap());
            // One step of xorshift64 for each request.
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            let number = *state >> 11;
            let fault = FAULTS[(number / 100 % FAULTS.len() as u64) as usize];
            let is_allowed = limit.is_none_or(|limit| met.len() < limit && fault != Fault::FOR_GOOD);
            if number % 100 >= rate || !is_allowed {
                return Fault::None;
            }
            met.push(fault);
            fault
        };
        let mut proxy = Self::with(registry, silence, decide);
        proxy.seen = seen;
        proxy
    }

    /// The faults that requests have met so far.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        self.seen.lock().unwrap().clone()
    }

    /// A proxy that asks `decide` with each request's first line.
    pub(crate) fn with(
        registry: &str,
        silence: Duration,
        decide: impl Fn(&str) -> Fault + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, registry, decide) = (Arc::clone(&stop), registry.to_owned(), Arc::new(decide));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (registry, decide) = (registry.clone(), Arc::clone(&decide));
                thread::spawn(move || {
                    // What fails here fails for the client as well, which is the point.
                    let _ = serve(client, &registry, silence, &*decide);
                });
            }
        });
        Self { host, seen: Arc::default(), stop }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.host);
    }
}

fn serve(
    mut client: TcpStream,
    registry: &str,
    silence: Duration,
    decide: &dyn Fn(&str) -> Fault,
) -> io::Result<()> {
    let (head, body) = read_head(&mut client)?;
    let fault = decide(head.lines().next().unwrap_or_default());
    let length: usize = header(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let is_head = head.starts_with("HEAD ");
    match fault {
        Fault::Hangup => return client.shutdown(Shutdown::Both),
        Fault::Silence => {
            // As long as the client is there; it gives up first.
            client.set_read_timeout(Some(silence * 5))?;
            let _ = client.read(&mut [0; 1]);
            return Ok(());
        }
        Fault::Status(status, wait) => {
            let wait = wait.map(|wait| format!("Retry-After: {wait}\r\n")).unwrap_or_default();
            drain(&mut client, length - body.len())?;
            write!(
                client,
                "HTTP/1.1 {status} Fault\r\n{wait}Content-Length: 0\r\nConnection: close\r\n\r\n"
            )?;
            return Ok(());
        }
        Fault::FalseHead if is_head && head.contains("/blobs/") => {
            write!(client, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
            return Ok(());
        }
        _ => {}
    }
    let mut server = TcpStream::connect(registry)?;
    let closing = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    server.write_all(closing.as_bytes())?;
    let wanted = if fault == Fault::HalfRequest { length / 2 } else { length };
    server.write_all(&body[..body.len().min(wanted)])?;
    pass(&mut client, &mut server, wanted.saturating_sub(body.len()))?;
    if fault == Fault::HalfRequest && length > 0 {
        server.shutdown(Shutdown::Both)?;
        return client.shutdown(Shutdown::Both);
    }
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    if fault == Fault::LostAnswer {
        return client.shutdown(Shutdown::Both);
    }
    let split = answer.windows(4).position(|window| window == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
    let (head, body) = answer.split_at_mut(split);
    let mut head = String::from_utf8_lossy(head).into_owned();
    if fault == Fault::OtherDigest {
        head = match header(&head, "docker-content-digest").map(str::to_owned) {
            Some(digest) => head.replace(&digest, &format!("sha256:{}", "0".repeat(64))),
            None => head,
        };
    }
    if fault == Fault::OtherBody
        && let Some(byte) = body.get_mut(0)
    {
        *byte ^= 1;
    }
    client.write_all(head.as_bytes())?;
    let end = if fault == Fault::HalfAnswer { body.len() / 2 } else { body.len() };
    client.write_all(&body[..end])
}

/// A message's head, and what has come of its body.
fn read_head(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&piece[..read]);
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let body = bytes.split_off(at + 4);
            return Ok((String::from_utf8_lossy(&bytes).into_owned(), body));
        }
    }
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn pass(from: &mut TcpStream, to: &mut TcpStream, count: usize) -> io::Result<()> {
    io::copy(&mut from.take(count as u64), to).map(drop)
}

fn drain(from: &mut TcpStream, count: usize) -> io::Result<()> {
    io::copy(&mut from.take(count as u64), &mut io::sink()).map(drop)
}
