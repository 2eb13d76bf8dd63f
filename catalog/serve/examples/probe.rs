//! A client for benchmarks, which counts messages and does not decode them.
//!
//! - `probe start ADDRESS RUNS COMMAND…` starts a server so many times, and says how long it takes from there to the packages.
//! - `probe packages ADDRESS` asks for the packages until it is answered.
//! - `probe list ADDRESS CLIENTS ROUNDS` lists all bundles with so many clients at once, so many times, and says how fast.

use std::error::Error;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use olmkit_serve::Raw;
use tonic::Request;
use tonic::transport::Endpoint;

type Failure = Box<dyn Error + Send + Sync>;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(300);

#[expect(clippy::print_stdout, reason = "the answer")]
fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let one = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["start", address, runs, command @ ..] => {
            println!("{}", start(&one()?, address, runs.parse()?, command)?);
        }
        ["packages", address] => one()?.block_on(answered(address, Instant::now()))?,
        ["list", address, clients, rounds] => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            println!("{}", runtime.block_on(list(address, clients.parse()?, rounds.parse()?))?);
        }
        _ => {
            return Err("usage: probe start ADDRESS RUNS COMMAND… | probe packages ADDRESS | probe list ADDRESS CLIENTS ROUNDS".into());
        }
    }
    Ok(())
}

/// The times from starting a server to its first answer: least, median and most.
fn start(
    runtime: &tokio::runtime::Runtime,
    address: &str,
    runs: usize,
    command: &[&str],
) -> Result<String, Failure> {
    let (program, words) = command.split_first().ok_or("name the server's command")?;
    let mut times = Vec::new();
    for _ in 0..runs {
        let mut command = Command::new(program);
        command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
        let started = Instant::now();
        let mut server = command.spawn()?;
        let answer = runtime.block_on(answered(address, started));
        times.push(started.elapsed());
        server.kill()?;
        server.wait()?;
        answer?;
    }
    times.sort_unstable();
    let [least, median, most] = [times.first(), times.get(times.len() / 2), times.last()]
        .map(|time| time.map_or(0.0, |time| time.as_secs_f64() * 1e3));
    Ok(format!("{least:.1} ms at least, {median:.1} ms in the middle, {most:.1} ms at most of {runs} runs"))
}

/// Waits until the packages are there.
async fn answered(address: &str, since: Instant) -> Result<(), Failure> {
    while let Err(error) = ask(address, "ListPackages").await {
        if since.elapsed() > PATIENCE {
            return Err(error);
        }
        // Nobody listens yet: the starting server needs the processor.
        std::thread::yield_now();
    }
    Ok(())
}

async fn list(address: &str, clients: usize, rounds: usize) -> Result<String, Failure> {
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..clients {
        let address = address.to_owned();
        tasks.spawn(async move {
            let mut sums = (0, 0);
            for _ in 0..rounds {
                let (messages, bytes) = ask(&address, "ListBundles").await?;
                sums = (sums.0 + messages, sums.1 + bytes);
            }
            Ok::<_, Failure>(sums)
        });
    }
    let (mut messages, mut bytes) = (0, 0);
    while let Some(done) = tasks.join_next().await {
        let sums = done??;
        (messages, bytes) = (messages + sums.0, bytes + sums.1);
    }
    let seconds = start.elapsed().as_secs_f64();
    let megabytes = bytes as f64 / 1e6;
    let speed = megabytes / seconds;
    Ok(format!("{clients} clients, {messages} bundles, {megabytes:.0} MB in {seconds:.2} s: {speed:.0} MB/s"))
}

/// Asks with an empty message; how many messages and bytes came back.
async fn ask(address: &str, method: &str) -> Result<(u64, u64), Failure> {
    let channel = Endpoint::from_shared(format!("http://{address}"))?.connect().await?;
    let mut grpc = tonic::client::Grpc::new(channel).max_decoding_message_size(256 << 20);
    grpc.ready().await?;
    let path = format!("/api.Registry/{method}").parse()?;
    let mut answers = grpc.server_streaming(Request::new(Vec::new()), path, Raw).await?.into_inner();
    let (mut messages, mut bytes) = (0, 0);
    while let Some(message) = answers.message().await? {
        (messages, bytes) = (messages + 1, bytes + message.len() as u64);
    }
    Ok((messages, bytes))
}
