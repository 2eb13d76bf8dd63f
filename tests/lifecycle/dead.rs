//! API servers that are not there, say nothing, say half of it or say no: the program tells soon, and in time.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::signal;

/// How long a command that was given two seconds may take on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(40);

/// What a stand-in does with a request.
pub(crate) enum Answer {
    Json(Value),
    /// 200, and nothing.
    Empty,
    Status(u16),
    Silence,
    Half,
    Closed,
    /// An answer that goes on for ever.
    Endless,
}

/// A server on this machine that plays an API server or a registry.
pub(crate) struct StandIn {
    pub(crate) port: u16,
    /// The paths that were asked for, as they come.
    asked: Receiver<String>,
    /// The heads of the requests.
    heads: Arc<Mutex<Vec<String>>>,
}

impl StandIn {
    pub(crate) fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_by_verb(move |_, path| answer(path))
    }

    /// A server that is told the method too.
    pub(crate) fn start_by_verb(answer: impl Fn(&str, &str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, asked) = mpsc::channel();
        let answer: Arc<Answering> = Arc::new(answer);
        let kept: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let all = Arc::clone(&heads);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, tell, kept) = (Arc::clone(&answer), tell.clone(), Arc::clone(&kept));
                let heads = Arc::clone(&heads);
                std::thread::spawn(move || serve(stream, answer.as_ref(), &tell, &heads, &kept));
            }
        });
        Self { port, asked, heads: all }
    }

    /// The heads of the requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// The paths that were asked for so far.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked.try_iter().collect()
    }

    /// Waits until something is asked for whose path ends so.
    pub(crate) fn until(&self, end: &str) {
        let begun = Instant::now();
        loop {
            let path = self.asked.recv_timeout(Duration::from_secs(60)).unwrap();
            if path.split('?').next().unwrap().ends_with(end) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody asks for {end}");
        }
    }
}

/// What is answered to a method and a path.
type Answering = dyn Fn(&str, &str) -> Answer + Send + Sync;

fn serve(
    mut stream: TcpStream,
    answer: &Answering,
    tell: &mpsc::Sender<String>,
    heads: &Mutex<Vec<String>>,
    kept: &Mutex<Vec<TcpStream>>,
) {
    loop {
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") {
            match stream.read(&mut byte) {
                // What begins otherwise is no HTTP: a client that tries TLS first is hung up on, as a plain server does.
                Ok(1) if !request.is_empty() || byte[0].is_ascii_uppercase() => request.push(byte[0]),
                _ => return,
            }
        }
        let request = String::from_utf8_lossy(&request).into_owned();
        let lower = request.to_lowercase();
        let length = lower.split("content-length:").nth(1).and_then(|rest| rest.lines().next());
        let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
        if stream.read_exact(&mut vec![0; length]).is_err() {
            return;
        }
        let mut words = request.split_whitespace();
        let verb = words.next().unwrap_or("").to_owned();
        let path = words.next().unwrap_or("").to_owned();
        heads.lock().unwrap().push(request);
        let _ = tell.send(path.clone());
        let sent = match answer(&verb, &path) {
            Answer::Json(value) => respond(&mut stream, "200 OK", &value.to_string()),
            Answer::Empty => respond(&mut stream, "200 OK", ""),
            Answer::Status(code) => {
                let reason = match code {
                    401 => "Unauthorized",
                    403 => "Forbidden",
                    404 => "NotFound",
                    500 => "InternalError",
                    _ => "TooManyRequests",
                };
                let body = json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "no",
                    "reason": reason,
                });
                respond(&mut stream, &format!("{code} No"), &body.to_string())
            }
            Answer::Endless => {
                let head =
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
                let _ = stream.write_all(head.as_bytes());
                let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20));
                while stream.write_all(chunk.as_bytes()).is_ok() {}
                return;
            }
            Answer::Half => {
                let _ = stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
                );
                kept.lock().unwrap().push(stream);
                return;
            }
            Answer::Silence => {
                kept.lock().unwrap().push(stream);
                return;
            }
            Answer::Closed => return,
        };
        if sent.is_err() {
            return;
        }
    }
}

fn respond(stream: &mut TcpStream, status: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// A kubeconfig with two contexts: `plain`, which is the current one, and `team`, which has a namespace.
pub(crate) fn kubeconfig(port: u16) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "plain",
        "clusters": [
            {"name": "c", "cluster": {"server": format!("http://127.0.0.1:{port}")}},
        ],
        "users": [{"name": "u", "user": {}}],
        "contexts": [
            {"name": "plain", "context": {"cluster": "c", "user": "u"}},
            {"name": "team", "context": {"cluster": "c", "user": "u", "namespace": "team-a"}},
        ],
    });
    std::fs::write(&path, text.to_string()).unwrap();
    (dir, path)
}

pub(crate) fn spawn(port: u16, words: &[&str]) -> (TempDir, Child) {
    let (dir, path) = kubeconfig(port);
    let child = Command::new(env!("CARGO_BIN_EXE_olmkit"))
        .arg("operator")
        .args(words)
        .arg("--kubeconfig")
        .arg(path)
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (dir, child)
}

pub(crate) fn run(port: u16, words: &[&str]) -> Output {
    let (_dir, child) = spawn(port, words);
    child.wait_with_output().unwrap()
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Does something with every verb at once.
fn each(work: impl Fn(&'static [&'static str]) + Sync) {
    std::thread::scope(|scope| {
        let work = &work;
        VERBS.iter().for_each(|verb| drop(scope.spawn(move || work(verb))));
    });
}

/// Every verb that asks a cluster.
const VERBS: [&[&str]; 8] = [
    &["list"],
    &["status", "demo"],
    &["describe", "demo"],
    &["install", "demo", "-n", "ns"],
    &["upgrade", "demo"],
    &["approve", "demo"],
    &["rollback", "demo", "--to", "0.1.0"],
    &["uninstall", "demo"],
];

#[test]
fn a_refused_connection_is_said_at_once() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    each(|verb| {
        let begun = Instant::now();
        let output = run(port, verb);
        assert!(begun.elapsed() < SOON, "{verb:?}: {:?}", begun.elapsed());
        let said = said(&output);
        assert_eq!(output.status.code(), Some(3), "{verb:?}: {said}");
        let first = format!("error: cannot reach the cluster at `http://127.0.0.1:{port}`");
        assert!(said.starts_with(&first) && said.contains("refused"), "{verb:?}: {said}");
    });
}

#[test]
fn a_server_that_does_not_answer_takes_no_longer_than_the_timeout() {
    let silent = "did not answer within 1 s";
    for (answer, expected) in [
        ((|_: &str| Answer::Silence) as fn(&str) -> Answer, silent),
        (|_: &str| Answer::Half, silent),
        (|_: &str| Answer::Status(429), "answers: rate limited (429): no"),
    ] {
        let server = StandIn::start(answer);
        each(|verb| {
            let begun = Instant::now();
            let output = run(server.port, &[verb, &["--timeout", "1s"][..]].concat());
            assert!(begun.elapsed() < SOON, "{verb:?}: {:?}", begun.elapsed());
            let said = said(&output);
            assert_eq!(output.status.code(), Some(4), "{verb:?}: {said}");
            assert!(said.contains(expected), "{verb:?}: {said}");
        });
    }
}

#[test]
fn a_server_that_hangs_up_is_asked_again_until_the_timeout_and_no_longer() {
    let server = StandIn::start(|_| Answer::Closed);
    let begun = Instant::now();
    let output = run(server.port, &["list", "--timeout", "2s"]);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(matches!(output.status.code(), Some(3 | 4)), "{}", said(&output));
}

#[test]
fn wrong_credentials_are_no_network_problem() {
    let server = StandIn::start(|_| Answer::Status(401));
    let output = run(server.port, &["list", "--context", "team"]);
    assert_eq!(output.status.code(), Some(3));
    let port = server.port;
    let expected = format!(
        "error: the cluster at `http://127.0.0.1:{port}` rejected the credentials of the context `team`\n  \
         caused by: 401 Unauthorized: no\n  help: log in again, or choose another context with --context\n"
    );
    assert_eq!(said(&output), expected);
}

#[test]
fn a_server_error_that_passes_is_tried_again() {
    let first = std::sync::atomic::AtomicU32::new(0);
    let server =
        StandIn::start(move |_| match first.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 2 {
            0 => Answer::Status(500),
            _ => Answer::Json(json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": []})),
        });
    let output = run(server.port, &["list"]);
    assert!(output.status.success(), "{}", said(&output));
    // One that stays is told, in time.
    let server = StandIn::start(|_| Answer::Status(500));
    let output = run(server.port, &["list", "--timeout", "1s"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(said(&output).contains("answers 500 InternalError: no"), "{}", said(&output));
}

#[test]
fn an_answer_that_never_ends_is_not_read_into_memory() {
    let server = StandIn::start(|_| Answer::Endless);
    let output = run(server.port, &["list", "--timeout", "40s"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("its answer is larger than 256 MiB"), "{said}");
    assert_eq!(server.paths().len(), 1, "it was asked again");
}

#[test]
fn a_list_that_goes_round_in_a_circle_ends() {
    let server = StandIn::start(|_| {
        Answer::Json(
            json!({"apiVersion": "v1", "kind": "List", "metadata": {"continue": "again"}, "items": []}),
        )
    });
    let output = run(server.port, &["list"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(said(&output).contains("the pages of the list are a cycle"), "{}", said(&output));
    assert!(server.paths().len() < 10);
}

#[test]
fn a_list_whose_next_page_is_always_forgotten_ends_with_the_time() {
    let server = StandIn::start(|path| match path.contains("continue=") {
        true => Answer::Status(410),
        false => Answer::Json(
            json!({"apiVersion": "v1", "kind": "List", "metadata": {"continue": "next"}, "items": []}),
        ),
    });
    let output = run(server.port, &["list", "--timeout", "2s"]);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(said(&output).contains("answers 410"), "{}", said(&output));
    assert!(server.paths().len() < 30);
}

#[test]
fn a_watch_that_ends_at_once_is_not_opened_again_thousands_of_times() {
    let server = StandIn::start(|path| {
        if path.contains("watch=true") {
            return Answer::Empty;
        }
        let path = path.split('?').next().unwrap();
        let object = |version: &str, kind: &str, name: &str, spec: Value, status: Value| {
            json!({
                "apiVersion": format!("operators.coreos.com/{version}"), "kind": kind, "spec": spec, "status": status,
                "metadata": {"name": name, "namespace": "ns", "resourceVersion": "7"},
            })
        };
        let plan = object(
            "v1alpha1",
            "InstallPlan",
            "install-1",
            json!({"approval": "Manual", "approved": false, "clusterServiceVersionNames": ["demo.v1"], "generation": 1}),
            json!({"phase": "RequiresApproval"}),
        );
        let items = match path.rsplit('/').next().unwrap() {
            // The patch is taken, and nothing comes of it.
            "install-1" => return Answer::Json(plan),
            "installplans" => vec![plan],
            "subscriptions" => vec![object(
                "v1alpha1",
                "Subscription",
                "demo",
                json!({"name": "demo", "channel": "stable", "source": "catalog", "sourceNamespace": "olm"}),
                json!({"currentCSV": "demo.v1", "state": "UpgradePending"}),
            )],
            "operatorgroups" => vec![object("v1", "OperatorGroup", "ns", json!({}), json!({}))],
            "clusterserviceversions" | "operatorconditions" | "deployments" | "pods" => Vec::new(),
            _ => return Answer::Status(404),
        };
        Answer::Json(
            json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "7"}, "items": items}),
        )
    });
    let output = run(server.port, &["approve", "demo", "-n", "ns", "--timeout", "3s", "--settle", "1s"]);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    let waited =
        "waiting for installplan/install-1 to be approved, although the server has accepted the patch";
    assert!(said(&output).contains(waited), "{}", said(&output));
    let watches = server.paths().iter().filter(|path| path.contains("watch=true")).count();
    assert!((1..80).contains(&watches), "{watches} watches in 3 s");
}

/// An API server with one Subscription, whose catalog is in a registry.
pub(crate) fn with_a_subscription(
    image: String,
    last: impl Fn(&str) -> Answer + Send + Sync + 'static,
) -> StandIn {
    StandIn::start(move |path| {
        let list = |items: Vec<Value>| {
            Answer::Json(
                json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "7"}, "items": items}),
            )
        };
        let path = path.split('?').next().unwrap();
        if path.ends_with("/subscriptions") {
            return list(vec![json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
                "metadata": {"name": "demo", "namespace": "team-a", "resourceVersion": "7"},
                "spec": {"name": "demo", "channel": "stable", "source": "catalog", "sourceNamespace": "olm"},
            })]);
        }
        if path.ends_with("/catalogsources/catalog") {
            return Answer::Json(json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
                "metadata": {"name": "catalog", "namespace": "olm", "resourceVersion": "7"},
                "spec": {"sourceType": "grpc", "image": image},
            }));
        }
        if [
            "/installplans",
            "/clusterserviceversions",
            "/operatorgroups",
            "/deployments",
            "/pods",
            "/operatorconditions",
        ]
        .iter()
        .any(|end| path.ends_with(end))
        {
            return list(Vec::new());
        }
        last(path)
    })
}

fn lists_of(server: &StandIn, words: &[&str]) -> Vec<String> {
    let output = run(server.port, words);
    assert!(output.status.success(), "{words:?}: {}", said(&output));
    server.paths()
}

#[test]
fn the_namespace_of_the_context_is_honoured_and_all_namespaces_means_all() {
    let server = with_a_subscription(String::new(), |_| Answer::Status(404));
    let of_team = "/apis/operators.coreos.com/v1alpha1/namespaces/team-a/subscriptions";
    let of_all = "/apis/operators.coreos.com/v1alpha1/subscriptions";
    for (words, path) in [
        (&["list"][..], of_all),
        (&["list", "--context", "team"], of_team),
        (&["list", "--context", "team", "-A"], of_all),
        (&["describe", "demo", "--context", "team"], "EVENTS"),
    ] {
        if path == "EVENTS" {
            let output = run(server.port, words);
            let asked = server.paths();
            assert!(asked[0].starts_with(of_team), "{words:?}: {asked:?}, {}", said(&output));
            continue;
        }
        let asked = lists_of(&server, words);
        let first = asked[0].split('?').next().unwrap();
        assert_eq!(first, path, "{words:?}");
    }
    // `status` exits with 1, since nothing is installed.
    for (words, path) in [
        (&["status", "demo", "--context", "team"][..], of_team),
        (&["status", "demo", "--context", "team", "-A"], of_all),
    ] {
        assert_eq!(run(server.port, words).status.code(), Some(1));
        assert_eq!(server.paths()[0].split('?').next().unwrap(), path, "{words:?}");
    }
}

#[test]
fn a_context_that_does_not_exist_is_named_and_nothing_is_asked() {
    let server = with_a_subscription(String::new(), |_| Answer::Status(404));
    for verb in [
        &["install", "demo", "-n", "ns"][..],
        &["upgrade", "demo"],
        &["approve", "demo"],
        &["rollback", "demo", "--to", "0.1.0"],
        &["uninstall", "demo", "-n", "team-a"],
        &["doctor", "--fix"],
    ] {
        let output = run(server.port, &[verb, &["--context", "typo"]].concat());
        let said = said(&output);
        assert_eq!(output.status.code(), Some(3), "{verb:?}: {said}");
        assert!(said.contains("typo"), "{verb:?}: {said}");
        assert_eq!(server.paths(), Vec::<String>::new(), "{verb:?}");
    }
}

#[test]
fn the_next_command_acts_on_the_cluster_that_the_command_was_about() {
    let server = with_a_subscription(String::new(), |_| Answer::Status(404));
    let output =
        run(server.port, &["doctor", "demo", "-n", "team-a", "--context", "team", "--output", "json"]);
    let diagnosis: Value = serde_json::from_slice(&output.stdout).unwrap();
    let repairs = diagnosis["causes"][0]["repair"].as_array().unwrap();
    assert!(!repairs.is_empty(), "{diagnosis:#}");
    for repair in repairs {
        let command = repair["command"].as_str().unwrap();
        let (aimed, all) =
            (command.matches(" --context team --kubeconfig /").count(), command.matches("kubectl ").count());
        assert!(aimed > 0 && aimed == all, "{command}");
    }
    let output = run(server.port, &["approve", "demo", "-n", "team-a", "--context", "team"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let commands: Vec<&str> =
        said.split('`').filter(|text| text.starts_with("olmkit ") || text.starts_with("kubectl ")).collect();
    assert!(!commands.is_empty(), "{said}");
    for command in commands {
        assert!(command.contains(" --context team --kubeconfig /"), "{said}");
    }
}

#[test]
fn without_a_namespace_nothing_is_installed() {
    let server = StandIn::start(|_| Answer::Status(404));
    let output = run(server.port, &["install", "demo"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "error: no namespace given\n  help: pass --namespace, or set one in the current context\n";
    assert_eq!(said(&output), expected);
    assert_eq!(server.paths(), Vec::<String>::new());
}

#[test]
fn verbs_that_only_read_do_not_watch() {
    let server = with_a_subscription(String::new(), |_| Answer::Status(404));
    let output = run(server.port, &["status", "demo", "-n", "team-a"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let asked = server.paths();
    assert!(asked.iter().all(|path| !path.contains("watch=true")), "{asked:#?}");
    // The doctor looks at the namespaces of the operator and of its catalog, each kind once.
    assert!(asked.len() < 27, "{} requests: {asked:#?}", asked.len());
}

/// A registry that nothing can be read from.
fn empty_registry() -> StandIn {
    StandIn::start(|_| Answer::Closed)
}

pub(crate) fn interrupt(child: &Child, name: &str) {
    signal::send(name, child.id());
}

#[test]
fn ctrl_c_says_what_was_done_also_after_a_registry_was_read() {
    for signal in ["INT", "TERM"] {
        let registry = empty_registry();
        let image = format!("127.0.0.1:{}/catalog:1", registry.port);
        // The registry has answered by the time that the package is asked for, and that is never answered.
        let server = with_a_subscription(image, |_| Answer::Silence);
        let (_dir, child) = spawn(server.port, &["list"]);
        server.until("/packagemanifests/demo");
        assert!(!registry.paths().is_empty(), "the registry was not read");
        interrupt(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", said(&output));
        let expected = "error: interrupted\n  help: nothing was changed\n  help: run the same command again to start over\n";
        assert!(said(&output).ends_with(expected), "{}", said(&output));
    }
}

#[test]
fn ctrl_c_while_any_verb_waits_for_the_cluster_is_answered() {
    each(|verb| {
        let server = StandIn::start(|_| Answer::Silence);
        let (_dir, child) = spawn(server.port, verb);
        server.asked.recv_timeout(Duration::from_secs(60)).unwrap();
        interrupt(&child, "INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{verb:?}: {}", said(&output));
        assert!(said(&output).contains("error: interrupted"), "{verb:?}: {}", said(&output));
        assert!(said(&output).contains("nothing was changed"), "{verb:?}: {}", said(&output));
    });
}

#[test]
fn verbose_shows_each_request_and_no_secret() {
    let server = StandIn::start(|_| {
        Answer::Json(json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []}))
    });
    let (dir, path) = kubeconfig(server.port);
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("\"user\":{}", "\"user\":{\"token\":\"s3cret\"}");
    assert!(text.contains("s3cret"));
    std::fs::write(&path, text).unwrap();
    let run = |more: &[&str], log: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        command.args(["operator", "list", "--kubeconfig"]).arg(&path).args(more).env("OLMKIT_LOG", log);
        said(&command.current_dir(dir.path()).output().unwrap())
    };
    let line = format!("request: GET http://127.0.0.1:{}/apis/operators.coreos.com/v1alpha1/", server.port);
    for told in [run(&["-v"], ""), run(&["--quiet", "--verbose"], ""), run(&[], "1")] {
        assert!(told.lines().any(|told| told.starts_with(&line) && told.contains(" 200 ")), "{told}");
        assert!(!told.contains("s3cret"), "{told}");
    }
    for told in [run(&[], ""), run(&[], "0"), run(&[], "off")] {
        assert!(!told.contains("request:"), "{told}");
    }
}

/// The head of the first request of a command to a server that then hangs up.
fn first_request(words: &[&str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (dir, path) = kubeconfig(listener.local_addr().unwrap().port());
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.args(words).args(["--timeout", "2", "--kubeconfig"]).arg(path).current_dir(dir.path());
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let (mut stream, _) = listener.accept().unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    drop((stream, listener));
    child.unwrap().wait().unwrap();
    String::from_utf8(head).unwrap()
}

#[test]
fn requests_are_made_as_the_user_and_groups_that_are_given() {
    let given = ["--as", "jo", "--as-group", "a", "--as-group", "b"];
    for verb in [&["operator", "list"][..], &["source", "list"], &["olm", "status"]] {
        let head = first_request(&[verb, &given].concat());
        for line in ["impersonate-user: jo\r\n", "impersonate-group: a\r\n", "impersonate-group: b\r\n"] {
            assert!(head.contains(line), "{verb:?}: {head}");
        }
        assert!(!first_request(verb).contains("impersonate"), "{verb:?}");
    }
}

#[test]
fn impersonation_that_has_no_effect_is_refused() {
    for words in [
        &["operator", "list", "--as-group", "a"][..],
        &["operator", "list", "--as", "jo", "--simulate", "x.json"],
        &["operator", "doctor", "--as", "jo", "--from", "x"],
        &["bundle", "diff", "old", "new", "--as", "jo"],
        &["operator", "list", "--as", ""],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_olmkit")).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
    }
}
