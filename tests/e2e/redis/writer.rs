//! A client that goes on writing while a cluster changes, and remembers every write that was acknowledged.
//!
//! It is a `redis-cli -c` in a pod, which follows redirections and says so; anything else that it says is an error.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use libtest_mimic::Failed;

use crate::cluster::Namespace;

/// Keys that are written, again and again.
const KEYS: u64 = 500;
/// Writes that are under way at once.
const BATCH: u64 = 25;

/// What became of the writes.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The last acknowledged value of each key.
    pub(super) acknowledged: BTreeMap<u64, u64>,
    /// How many writes were acknowledged.
    pub(super) count: u64,
    /// How often it was sent to another node: MOVED or ASK.
    pub(super) redirections: u64,
    /// Whatever else was said.
    pub(super) errors: BTreeMap<String, u64>,
}

/// A writer that writes.
pub(super) struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Written, Failed>>,
}

impl Writer {
    /// Starts to write to a RedisCluster, whose password is in the operator's own Secret.
    pub(super) fn start(namespace: &Namespace, cluster: &str) -> Result<Self, Failed> {
        Self::start_with(namespace, cluster, None)
    }

    /// The same by TLS, if there is a Secret with the certificate of a CA.
    pub(super) fn start_with(
        namespace: &Namespace,
        cluster: &str,
        tls: Option<&str>,
    ) -> Result<Self, Failed> {
        let volumes = tls.map(|secret| format!("{{name: tls, secret: {{secretName: {secret}}}}}"));
        let mounts = tls.map(|_| "{name: tls, mountPath: /tls}").unwrap_or_default();
        namespace.apply(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: client}}, spec: {{terminationGracePeriodSeconds: 0, \
             volumes: [{}], \
             containers: [{{name: client, image: '{{registry}}/redis-with-shell:e2e', args: [--port, '6390', --save, ''], \
             volumeMounts: [{mounts}], \
             env: [{{name: REDISCLI_AUTH, valueFrom: {{secretKeyRef: {{name: {cluster}-auth, key: password}}}}}}]}}]}}}}",
            volumes.unwrap_or_default(),
        ))?;
        namespace.wait("pod/client", "condition=Ready")?;
        let mut client = Client::connect(namespace, cluster, tls.is_some())?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut written = Written::default();
            while !told.load(Ordering::Relaxed) {
                client.write(&mut written)?;
            }
            client.look(&mut written)?;
            Ok(written)
        });
        Ok(Self { stop, thread })
    }

    /// Stops, and reads everything again: a write that is not there any more is an error.
    pub(super) fn stop(self) -> Result<Written, Failed> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the writer panicked")?
    }
}

struct Client {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn connect(namespace: &Namespace, cluster: &str, tls: bool) -> Result<Self, Failed> {
        let words = ["--namespace", &namespace.name, "exec", "--stdin", "client", "--"];
        let plain = ["redis-cli", "-c", "-h", cluster];
        let by_tls = [&plain[..], &["--tls", "--cacert", "/tls/ca.crt"]].concat();
        let redis = if tls { &by_tls[..] } else { &plain };
        let mut process = namespace
            .cluster
            .command(&[&words[..], redis].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take().ok_or("no input")?;
        let output = BufReader::new(process.stdout.take().ok_or("no output")?);
        Ok(Self { process, input, output })
    }

    fn write(&mut self, written: &mut Written) -> Result<(), Failed> {
        let first = written.count + 1;
        let values = first..first + BATCH;
        let commands: String =
            values.clone().map(|value| format!("SET writer-{} {value}\n", value % KEYS)).collect();
        self.input.write_all(commands.as_bytes()).map_err(|_| self.ended())?;
        for value in values {
            match self.answer(written)?.as_str() {
                "OK" => drop(written.acknowledged.insert(value % KEYS, value)),
                other => *written.errors.entry(other.to_owned()).or_default() += 1,
            }
            written.count += 1;
        }
        Ok(())
    }

    fn look(&mut self, written: &mut Written) -> Result<(), Failed> {
        let redirections = written.redirections;
        for (key, value) in written.acknowledged.clone() {
            self.input.write_all(format!("GET writer-{key}\n").as_bytes())?;
            let found = self.answer(written)?;
            // A write whose answer was an error may have happened all the same: later is fine, earlier is not.
            if !found.parse::<u64>().is_ok_and(|found| found >= value) {
                let lost = format!("writer-{key}: acknowledged {value}, found `{found}`");
                *written.errors.entry(lost).or_default() += 1;
            }
        }
        written.redirections = redirections;
        Ok(())
    }

    /// Why there are no more answers.
    fn ended(&mut self) -> String {
        let mut said = String::new();
        let read = self.process.stderr.take().map(|mut errors| errors.read_to_string(&mut said));
        format!("redis-cli has ended: {:?}, {read:?}: {said}", self.process.wait())
    }

    fn answer(&mut self, written: &mut Written) -> Result<String, Failed> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err(self.ended().into());
            }
            match line.trim() {
                "" => {}
                moved if moved.starts_with("-> Redirected") => written.redirections += 1,
                answer => return Ok(answer.to_owned()),
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
