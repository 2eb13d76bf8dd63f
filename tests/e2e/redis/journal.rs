//! A client that goes on while nodes of its cluster come and go, and keeps a journal: each write has a key of its own, so
//! that one which was acknowledged and lost is noticed whatever was written later.
//!
//! It is a `redis-cli -c` in a pod of a DaemonSet, which drains leave alone. When its connection breaks or says nothing for
//! a second, it connects again, as client libraries do.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use crate::cluster::Namespace;

/// What each key begins with.
const PREFIX: &str = "journal-";
/// Writes that are under way at once.
const BATCH: u64 = 10;
/// Between two batches, so that the cluster's memory and the last look stay small.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a connection may say nothing.
const SILENCE: Duration = Duration::from_secs(1);

/// What became of the writes.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Each acknowledged write, with the time at which it was.
    pub(super) acknowledged: Vec<(u64, Instant)>,
    /// How often the connection was lost, or an answer was an error.
    pub(super) interruptions: u64,
}

impl Entries {
    /// The longest time without an acknowledged write, in a stretch of time.
    pub(super) fn longest_pause(&self, from: Instant, to: Instant) -> Duration {
        let within = self.acknowledged.iter().map(|(_, at)| *at).filter(|at| (from..=to).contains(at));
        let mut last = from;
        let mut longest = Duration::ZERO;
        for at in within.chain([to]) {
            longest = longest.max(at - last);
            last = at;
        }
        longest
    }

    /// The writes that are on none of these lists of keys, with the time at which they were acknowledged.
    pub(super) fn lost(&self, keys: &[String]) -> Vec<(u64, Instant)> {
        let there: BTreeSet<u64> = keys
            .iter()
            .flat_map(|list| list.lines())
            .filter_map(|key| key.trim().strip_prefix(PREFIX)?.parse().ok())
            .collect();
        self.acknowledged.iter().filter(|(write, _)| !there.contains(write)).copied().collect()
    }
}

/// Tells a thread to stop, at the latest when the test that started it is over.
#[derive(Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// What the thread looks at.
    pub(super) fn told(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A client that writes.
pub(super) struct Journal {
    stop: Stop,
    thread: JoinHandle<Result<Entries, Failed>>,
}

impl Journal {
    /// Starts to write to a RedisCluster from a pod on this Kubernetes node.
    pub(super) fn start(namespace: &Namespace, cluster: &str, node: &str) -> Result<Self, Failed> {
        namespace.apply(&format!(
            "{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: journal}}, spec: {{\
             selector: {{matchLabels: {{app: journal}}}}, template: {{metadata: {{labels: {{app: journal}}}}, spec: {{\
             nodeSelector: {{kubernetes.io/hostname: {node}}}, terminationGracePeriodSeconds: 0, \
             containers: [{{name: client, image: '{{registry}}/redis-with-shell:e2e', args: [--port, '6390', --save, ''], \
             env: [{{name: REDISCLI_AUTH, valueFrom: {{secretKeyRef: {{name: {cluster}-auth, key: password}}}}}}]}}]}}}}}}}}",
        ))?;
        namespace.kubectl(&["rollout", "status", "daemonset/journal", "--timeout=120s"])?;
        let pod = "jsonpath={.items[0].metadata.name}";
        let pod = namespace.kubectl(&["get", "pods", "--selector", "app=journal", "--output", pod])?;
        // Its address, since drains move the DNS server too.
        let address = "jsonpath={.spec.clusterIP}";
        let address = namespace.kubectl(&["get", "service", cluster, "--output", address])?;
        let words = ["--namespace", &namespace.name, "exec", "--stdin", &pod, "--"];
        let words: Vec<String> = [&words[..], &["redis-cli", "-c", "-h", &address]]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect();
        let cluster = namespace.cluster;
        let connect = move || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            Connection::of(
                cluster
                    .command(&words)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()?,
            )
        };
        let stop = Stop::default();
        let told = stop.told();
        let thread = thread::spawn(move || {
            let (mut entries, mut next) = (Entries::default(), 0);
            while !told.load(Ordering::Relaxed) {
                let mut connection = connect()?;
                while !told.load(Ordering::Relaxed) && connection.write(&mut entries, &mut next) {
                    thread::park_timeout(PAUSE);
                }
                entries.interruptions += 1;
            }
            Ok(entries)
        });
        Ok(Self { stop, thread })
    }

    /// Stops, and says what was acknowledged.
    pub(super) fn stop(self) -> Result<Entries, Failed> {
        drop(self.stop);
        self.thread.join().map_err(|_| "the journal's client panicked")?
    }

    /// The pattern of its keys.
    pub(super) fn pattern() -> String {
        format!("{PREFIX}*")
    }
}

struct Connection {
    process: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Connection {
    fn of(mut process: Child) -> Result<Self, Failed> {
        let input = process.stdin.take().ok_or("no input")?;
        let output = BufReader::new(process.stdout.take().ok_or("no output")?);
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)).ok();
        });
        Ok(Self { process, input, lines })
    }

    /// Writes a batch. Whether the connection is still good: after anything but an acknowledgement it is not.
    fn write(&mut self, entries: &mut Entries, next: &mut u64) -> bool {
        let writes = *next..*next + BATCH;
        *next += BATCH;
        let commands: String = writes.clone().map(|write| format!("SET {PREFIX}{write} {write}\n")).collect();
        if self.input.write_all(commands.as_bytes()).is_err() {
            return false;
        }
        for write in writes {
            match self.answer() {
                Some(answer) if answer == "OK" => entries.acknowledged.push((write, Instant::now())),
                _ => return false,
            }
        }
        true
    }

    /// The next answer, without what is said of redirections; none after a second of silence.
    fn answer(&self) -> Option<String> {
        loop {
            let line = self.lines.recv_timeout(SILENCE).ok()?;
            match line.trim() {
                "" => {}
                moved if moved.starts_with("-> Redirected") => {}
                answer => return Some(answer.to_owned()),
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
