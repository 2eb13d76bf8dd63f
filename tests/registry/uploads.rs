//! What real registries do not show on demand: uploads that break off and go on, waits that are asked for, endless answers.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use olmkit::image::{Access, Event, Options, Patience, Progress, Root};

use crate::places::chain;
use crate::server::{PASSWORD, USER, access, image, noise, place, quick, sha256};
use crate::support::trial;

/// Events of a transfer, to be counted.
#[derive(Default, Clone)]
pub(crate) struct Events(Arc<Mutex<String>>);

impl Events {
    pub(crate) fn shared(&self) -> Arc<dyn Progress> {
        Arc::new(self.clone())
    }

    pub(crate) fn count(&self, word: &str) -> usize {
        self.text().lines().filter(|line| line.contains(word)).count()
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl Progress for Events {
    fn happened(&self, event: &Event<'_>) {
        if !matches!(event, Event::Moved { .. }) {
            writeln!(self.0.lock().unwrap(), "{event:?}").unwrap();
        }
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("an_upload_goes_on_where_it_broke_off", &[], || {
            let registry = Scripted::start(Script { break_after: Some(20 << 20), ..Script::default() });
            let root: Root = image("linux/amd64", &[("large", noise(7, 40 << 20))]).into();
            place(&registry.host, "team/app:v1").store(&root, &access(quick())).unwrap();
            let state = registry.state.lock().unwrap();
            let sent: usize = state.received;
            let large = root.images()[0].layers()[0].size() as usize;
            assert!(state.blobs.contains(&root.images()[0].layers()[0].digest().to_string()));
            assert!(sent < large + (17 << 20), "{sent} bytes were sent of a blob of {large}");
            assert!(state.requests.iter().any(|line| line.starts_with("GET /v2/team/app/blobs/uploads/")));
            Ok(())
        }),
        trial("a_wait_that_is_asked_for_is_kept", &[], || {
            let registry = Scripted::start(Script { busy: 2, ..Script::default() });
            let patience = Patience { longest_pause: Duration::from_secs(5), ..quick().patience };
            let root: Root = image("linux/amd64", &[("a", b"a".to_vec())]).into();
            let events = Events::default();
            let started = Instant::now();
            let access = Access::new(Options { patience, ..quick() }, events.shared());
            place(&registry.host, "team/app:v1").store(&root, &access).unwrap();
            assert!(started.elapsed() >= Duration::from_secs(1), "{}", events.text());
            assert_eq!(events.count("Waiting"), 2, "{}", events.text());
            Ok(())
        }),
        trial("a_slow_line_is_not_taken_for_silence", &[], || {
            // Sixteen mebibytes in one request, which last longer than a registry may be silent.
            let registry = Scripted::start(Script { rate: Some(5 << 20), ..Script::default() });
            let patience = Patience { silence: Duration::from_millis(1500), ..quick().patience };
            let root: Root = image("linux/amd64", &[("large", noise(9, 16 << 20))]).into();
            let events = Events::default();
            let access = Access::new(Options { patience, ..quick() }, events.shared());
            let started = Instant::now();
            place(&registry.host, "team/app:v1").store(&root, &access).unwrap();
            assert!(started.elapsed() > 2 * patience.silence);
            assert_eq!(events.count("Waiting"), 0, "{}", events.text());
            Ok(())
        }),
        trial("a_login_may_be_asked_of_writers_only", &[], || {
            let registry = Scripted::start(Script { writers_only: true, ..Script::default() });
            let credentials = format!("{}={USER}:{PASSWORD}", registry.host).parse().unwrap();
            let options = Options { credentials: vec![credentials], ..quick() };
            let root: Root = image("linux/amd64", &[("a", b"a".to_vec())]).into();
            let place = place(&registry.host, "team/app:v1");
            place.store(&root, &access(options)).unwrap();
            let refused = place.store(&root, &access(quick())).unwrap_err();
            assert!(
                chain(&refused).contains("refuses to write to `team/app`: not logged in"),
                "{}",
                chain(&refused)
            );
            Ok(())
        }),
        trial("a_registry_that_takes_no_parts_gets_the_whole", &[], || {
            let registry = Scripted::start(Script { no_parts: true, ..Script::default() });
            let root: Root = image("linux/amd64", &[("large", noise(8, 18 << 20))]).into();
            place(&registry.host, "team/app:v1").store(&root, &access(quick())).unwrap();
            let state = registry.state.lock().unwrap();
            assert!(state.blobs.contains(&root.images()[0].layers()[0].digest().to_string()));
            Ok(())
        }),
        trial("no_more_blobs_move_at_once_than_are_allowed", &[], || {
            let registry = Scripted::start(Script { slow: true, ..Script::default() });
            let names: Vec<String> = (0..12).map(|number| format!("file-{number}")).collect();
            let files: Vec<_> = names.iter().map(|name| (name.as_str(), name.clone().into_bytes())).collect();
            let options = Options { parallel: ALLOWED, ..quick() };
            place(&registry.host, "team/app:v1")
                .store(&image("linux/amd64", &files).into(), &access(options))
                .unwrap();
            assert_eq!(registry.state.lock().unwrap().most, ALLOWED);
            Ok(())
        }),
        trial("an_endless_manifest_is_not_read", &[], || {
            let registry = Scripted::start(Script { endless: true, ..Script::default() });
            let error = chain(&place(&registry.host, "team/app:v1").load(&access(quick())).unwrap_err());
            assert!(error.contains("it has more than 4194304 bytes"), "{error}");
            Ok(())
        }),
        trial("an_old_manifest_is_refused_with_a_way_out", &[], || {
            let manifest = r#"{"schemaVersion":1,"name":"team/app","tag":"v1","fsLayers":[],"history":[]}"#;
            let kind = "application/vnd.docker.distribution.manifest.v1+prettyjws";
            let registry = Scripted::start(Script { manifest: Some((kind, manifest)), ..Script::default() });
            let error = place(&registry.host, "team/app:v1").load(&access(quick())).unwrap_err();
            assert!(chain(&error).contains(kind), "{}", chain(&error));
            assert!(error.help().unwrap().contains("schema 1"));
            Ok(())
        }),
        trial("what_a_registry_says_cannot_drive_a_terminal", &[], || {
            let registry = Scripted::start(Script { rude: true, ..Script::default() });
            let error = chain(&place(&registry.host, "team/app:v1").load(&access(quick())).unwrap_err());
            assert!(error.contains("no entry") && !error.contains('\u{1b}'), "{error:?}");
            assert!(error.len() < 1000, "{error}");
            Ok(())
        }),
    ]
}

/// How many blobs may move at once where that is counted, and a request that waits for others to come.
const ALLOWED: usize = 3;
static ARRIVED: Condvar = Condvar::new();

/// What a made-up registry does out of the ordinary.
#[derive(Default, Clone)]
struct Script {
    /// The connection breaks once, after this many bytes of an upload.
    break_after: Option<usize>,
    /// How many requests are answered with "too many", and to wait a second.
    busy: usize,
    /// Manifests never end.
    endless: bool,
    /// The manifest of every tag, with its media type.
    manifest: Option<(&'static str, &'static str)>,
    /// Errors hold escapes, and much text.
    rude: bool,
    /// Who writes has to log in, which the greeting does not say.
    writers_only: bool,
    /// Parts of blobs are refused.
    no_parts: bool,
    /// How many bytes of a body are read in a second.
    rate: Option<u64>,
    /// Whether blobs are there is answered when more wait for it than are allowed to, or after a while.
    slow: bool,
}

#[derive(Default)]
struct State {
    requests: Vec<String>,
    /// Bytes of bodies that came for blobs.
    received: usize,
    upload: Vec<u8>,
    blobs: Vec<String>,
    /// How many requests wait for an answer, and the most that ever did.
    waiting: usize,
    most: usize,
}

/// A registry of as many lines as are needed to show one thing.
struct Scripted {
    host: String,
    state: Arc<Mutex<State>>,
}

impl Scripted {
    fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let (state, script) = (Arc::new(Mutex::new(State::default())), Arc::new(Mutex::new(script)));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (state, script) = (Arc::clone(&shared), Arc::clone(&script));
                thread::spawn(move || {
                    // A client that hangs up is done.
                    let _ = answer(stream, &state, &script);
                });
            }
        });
        Self { host, state }
    }
}

fn answer(stream: TcpStream, state: &Mutex<State>, script: &Mutex<Script>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let mut line = String::new();
    // A client may open a connection to spare, and never ask.
    if reader.read_line(&mut line)? == 0 {
        return Ok(());
    }
    let (mut length, mut is_logged_in, mut is_part) = (0, false, false);
    loop {
        let mut field = String::new();
        reader.read_line(&mut field)?;
        let Some((name, value)) = field.trim().split_once(':') else { break };
        match name.to_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "content-range" => is_part = true,
            "authorization" => is_logged_in = value.trim().starts_with("Basic "),
            _ => {}
        }
    }
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default().to_owned());
    let is_upload = path.contains("/blobs/uploads/");
    let mut body = Vec::new();
    let limit = script.lock().unwrap().break_after.filter(|_| is_upload && method == "PATCH");
    let mut broke = false;
    let (rate, started) = (script.lock().unwrap().rate, Instant::now());
    while body.len() < length {
        if let Some(rate) = rate {
            let due = started + Duration::from_secs_f64(body.len() as f64 / rate as f64);
            // A slow line is made, not waited for.
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let mut piece = vec![0; (length - body.len()).min(1 << 16)];
        let read = reader.read(&mut piece)?;
        if read == 0 {
            break;
        }
        body.extend_from_slice(&piece[..read]);
        if limit.is_some_and(|limit| state.lock().unwrap().upload.len() + body.len() >= limit) {
            broke = true;
            break;
        }
    }
    if method == "HEAD" && script.lock().unwrap().slow {
        let mut state = state.lock().unwrap();
        state.waiting += 1;
        state.most = state.most.max(state.waiting);
        ARRIVED.notify_all();
        let too_few = |state: &mut State| state.waiting <= ALLOWED;
        let (mut state, _) = ARRIVED.wait_timeout_while(state, Duration::from_millis(100), too_few).unwrap();
        state.waiting -= 1;
    }
    let mut state = state.lock().unwrap();
    state.requests.push(line.clone());
    if is_upload {
        state.received += body.len();
        state.upload.extend_from_slice(&body);
    }
    if broke {
        script.lock().unwrap().break_after = None;
        return stream.shutdown(std::net::Shutdown::Both);
    }
    let script = &mut *script.lock().unwrap();
    let mut say = |status: &str, fields: &str, body: &str| {
        write!(
            stream,
            "HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    if path != "/v2/" && script.busy > 0 {
        script.busy -= 1;
        return say("429 Busy", "Retry-After: 1\r\n", "");
    }
    if script.writers_only && !is_logged_in && matches!(method, "POST" | "PUT" | "PATCH") {
        return say("401 Login", "WWW-Authenticate: Basic realm=\"writers\"\r\n", "");
    }
    if path != "/v2/" && script.rude {
        let text = format!("no entry\u{1b}[2J{}", "x".repeat(10_000)).replace('\u{1b}', "\\u001b");
        return say("418 Rude", "", &format!(r#"{{"errors":[{{"code":"DENIED","message":"{text}"}}]}}"#));
    }
    let location = "Location: /v2/team/app/blobs/uploads/1\r\n";
    let range = format!("Range: 0-{}\r\n", state.upload.len().saturating_sub(1));
    match method {
        "GET" if path == "/v2/" => say("200 OK", "", ""),
        "GET" if is_upload => say("204 Here", &format!("{location}{range}"), ""),
        "GET" if script.endless => {
            write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
            loop {
                stream.write_all(&[b' '; 1 << 16])?;
            }
        }
        "GET" => match script.manifest {
            Some((kind, text)) => say("200 OK", &format!("Content-Type: {kind}\r\n"), text),
            None => say("404 Nothing", "", ""),
        },
        "HEAD" => match state.blobs.iter().any(|digest| path.ends_with(digest.as_str())) {
            true => say("200 OK", "", ""),
            false => say("404 Nothing", "", ""),
        },
        "POST" => {
            state.upload.clear();
            say("202 Accepted", location, "")
        }
        "PATCH" if script.no_parts && is_part => say("416 No parts", "", ""),
        "PATCH" => say("202 Accepted", &format!("{location}{range}"), ""),
        "PUT" if is_upload => {
            let digest = sha256(&state.upload);
            let named = path.replace("%3A", ":").ends_with(&format!("digest={digest}"));
            state.upload.clear();
            if !named {
                return say("400 Other", "", r#"{"errors":[{"code":"DIGEST_INVALID"}]}"#);
            }
            state.blobs.push(digest);
            say("201 Created", "", "")
        }
        "PUT" => {
            // The name of a manifest.
            state.blobs.push(path.rsplit('/').next().unwrap_or_default().to_owned());
            say("201 Created", "", "")
        }
        _ => say("202 Accepted", "", ""),
    }
}
