//! Registries that do what a test says, request by request.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request that has arrived.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// With the query.
    pub(crate) path: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// A header's value; the name in lower case.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn read(stream: &TcpStream) -> io::Result<Option<Self>> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        // A client may open a connection to spare, and never ask.
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut request = Self { method, path, fields: Vec::new(), body: Vec::new() };
        loop {
            let mut field = String::new();
            reader.read_line(&mut field)?;
            let Some((name, value)) = field.trim().split_once(':') else { break };
            request.fields.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let length = request.field("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        request.body = vec![0; length];
        reader.read_exact(&mut request.body)?;
        Ok(Some(request))
    }
}

/// A registry that runs as long as the tests do; one request a connection.
pub(crate) struct StandIn {
    pub(crate) host: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl StandIn {
    /// A registry that answers each request like this; the greeting is answered already.
    pub(crate) fn start(
        answer: impl Fn(&Request, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::unfriendly(move |request, stream| {
            if request.path == "/v2/" { say(stream, "200 OK", &[], b"") } else { answer(request, stream) }
        })
    }

    /// A registry that answers each request like this.
    pub(crate) fn unfriendly(
        answer: impl Fn(&Request, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || {
                    let Ok(Some(request)) = Request::read(&stream) else { return };
                    seen.lock().unwrap().push(request.clone());
                    // A client that hangs up is done.
                    let _ = answer(&request, &mut stream);
                });
            }
        });
        Self { host, requests }
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// How many requests of a method there were so far.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.requests().iter().filter(|request| request.method == method).count()
    }
}

/// Answers with a status, header fields and a body.
pub(crate) fn say(
    stream: &mut TcpStream,
    status: &str,
    fields: &[(&str, &str)],
    body: &[u8],
) -> io::Result<()> {
    let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)
}
