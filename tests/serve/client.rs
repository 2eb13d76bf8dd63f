//! A server that runs, and a gRPC client that knows no more of it than `registry.proto`: requests and answers are proto3 JSON.

#[path = "../support/signal.rs"]
mod signal;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use olmkit_serve::Raw;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde_json::Value;
use tonic::codec::Streaming;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

/// How long a server may take for anything before a test fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// `olmkit catalog serve` on a free port. It ends with the value.
pub(crate) struct Server {
    pub(crate) child: Child,
    lines: Receiver<Value>,
    /// Everything that was logged so far.
    pub(crate) log: Arc<Mutex<Vec<String>>>,
    /// `HOST:PORT`.
    pub(crate) address: String,
}

impl Server {
    /// Starts one and waits until it serves.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut server = Self::start_unready(args);
        let line = server.wait("serving");
        server.address = line["grpc"].as_str().expect("the log names the address").to_owned();
        server
    }

    /// Starts one that may never serve.
    pub(crate) fn start_unready(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_olmkit"))
            .args(["catalog", "serve", "--address", "127.0.0.1"])
            .args(args)
            .args(if args.contains(&"--reload-interval") { &[][..] } else { &["--reload-interval", "0.1"] })
            .stderr(Stdio::piped())
            .spawn()
            .expect("olmkit runs");
        let stderr = child.stderr.take().expect("it is piped");
        let (send, lines) = mpsc::channel();
        let log = Arc::new(Mutex::new(Vec::new()));
        let all = log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let Ok(value) = serde_json::from_str(&line) {
                    let _ = send.send(value);
                }
                all.lock().expect("no test panics in here").push(line);
            }
        });
        Self { child, lines, log, address: String::new() }
    }

    /// The next line of the log with a message.
    pub(crate) fn wait(&self, message: &str) -> Value {
        let end = Instant::now() + DEADLINE;
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line["msg"] == message => return line,
                Ok(_) => {}
                Err(_) => {
                    panic!("the server did not log `{message}`; it logged {:#?}", self.log.lock().unwrap())
                }
            }
        }
    }

    /// Waits for the end; whether it was a success.
    pub(crate) fn ended(&mut self) -> bool {
        let end = Instant::now() + DEADLINE;
        loop {
            match self.child.try_wait().expect("it is our child") {
                Some(status) => return status.success(),
                None if Instant::now() > end => {
                    panic!("the server did not end: {:#?}", self.log.lock().unwrap())
                }
                None => std::thread::yield_now(),
            }
        }
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        signal::send(name, self.child.id());
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A gRPC client with one connection, which it opens when it is first used.
pub(crate) struct Client {
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) channel: Channel,
    pool: DescriptorPool,
}

/// A status code's name and its message.
pub(crate) type Refusal = (String, String);

impl Client {
    pub(crate) fn new(address: &str) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        // Small windows, so that a client that stops reading has not been sent everything by then.
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let endpoint = endpoint.initial_stream_window_size(65_535).initial_connection_window_size(65_535);
        let channel = runtime.block_on(async { endpoint.connect_lazy() });
        let files = all_descriptors();
        Self { runtime, channel, pool: DescriptorPool::from_file_descriptor_set(files).unwrap() }
    }

    /// Asks, and reads the answers to the end.
    pub(crate) fn ask(&self, service: &str, method: &str, request: &Value) -> Result<Vec<Value>, Refusal> {
        self.ask_with(service, method, request, &[])
    }

    /// Asks with metadata.
    pub(crate) fn ask_with(
        &self,
        service: &str,
        method: &str,
        request: &Value,
        metadata: &[(&'static str, &str)],
    ) -> Result<Vec<Value>, Refusal> {
        let refusal = |status: Status| (format!("{:?}", status.code()), status.message().to_owned());
        self.runtime.block_on(async {
            let asked = tokio::time::timeout(DEADLINE, async {
                let mut answers = self.open(service, method, request, metadata).await?;
                let mut all = Vec::new();
                while let Some(message) = answers.message().await? {
                    all.push(serde_json::to_value(&message).expect("messages have a JSON form"));
                }
                Ok(all)
            });
            asked.await.expect("an answer in time").map_err(refusal)
        })
    }

    /// Asks, and leaves it to the caller to read the answers.
    pub(crate) async fn open(
        &self,
        service: &str,
        method: &str,
        request: &Value,
        metadata: &[(&'static str, &str)],
    ) -> Result<Answers, Status> {
        let descriptor = self.pool.get_service_by_name(service);
        let found =
            descriptor.as_ref().and_then(|service| service.methods().find(|found| found.name() == method));
        let path = format!("/{service}/{method}").parse().unwrap();
        // What the file does not know is asked with an empty message.
        let empty = || self.pool.get_message_by_name("api.ListPackageRequest").unwrap();
        let (input, output) =
            found.map_or_else(|| (empty(), empty()), |method| (method.input(), method.output()));
        let message = DynamicMessage::deserialize(input, request).expect("the request fits");
        let mut request = Request::new(message.encode_to_vec());
        for (key, value) in metadata {
            request.metadata_mut().insert(*key, value.parse().unwrap());
        }
        let mut grpc = tonic::client::Grpc::new(self.channel.clone()).max_decoding_message_size(64 << 20);
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let messages = grpc.server_streaming(request, path, Raw).await?.into_inner();
        Ok(Answers { messages, descriptor: output })
    }
}

/// Answers of which only the descriptor is known.
pub(crate) struct Answers {
    messages: Streaming<Vec<u8>>,
    descriptor: MessageDescriptor,
}

impl Answers {
    /// The next one; none at the end.
    pub(crate) async fn message(&mut self) -> Result<Option<DynamicMessage>, Status> {
        let Some(message) = self.messages.message().await? else { return Ok(None) };
        let message = DynamicMessage::decode(self.descriptor.clone(), message.as_slice());
        message.map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}

/// The descriptors of `registry.proto` and of what it imports.
pub(crate) fn descriptors() -> prost_types::FileDescriptorSet {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("catalog/serve/proto");
    protox::compile(["registry.proto"], [folder]).expect("registry.proto is sound")
}

/// Those of everything that a server speaks.
pub(crate) fn all_descriptors() -> prost_types::FileDescriptorSet {
    let mut files = descriptors();
    for more in [
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ] {
        files.file.extend(prost_types::FileDescriptorSet::decode(more).unwrap().file);
    }
    files
}

/// A path as an argument.
pub(crate) fn arg(path: &Path) -> &str {
    path.to_str().expect("a temporary path is text")
}
