//! A client for benchmarks: `probe packages ADDRESS` asks for the packages until it is answered; `probe list ADDRESS CLIENTS ROUNDS` lists
//! all bundles with so many clients at once, so many times, and says how fast. Messages are counted and not decoded.

use std::error::Error;
use std::time::Instant;

use bytes::{Buf as _, Bytes};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Endpoint;
use tonic::{Request, Status};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["packages", address] => runtime.block_on(async {
            while ask(address, "ListPackages").await.is_err() {}
            Ok(())
        }),
        ["list", address, clients, rounds] => {
            let (clients, rounds): (usize, usize) = (clients.parse()?, rounds.parse()?);
            runtime.block_on(list(address, clients, rounds))
        }
        _ => Err("usage: probe packages ADDRESS | probe list ADDRESS CLIENTS ROUNDS".into()),
    }
}

async fn list(address: &str, clients: usize, rounds: usize) -> Result<(), Failure> {
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
    #[expect(clippy::print_stdout, reason = "the answer")]
    {
        println!(
            "{clients} clients, {messages} bundles, {megabytes:.0} MB in {seconds:.2} s: {:.0} MB/s",
            megabytes / seconds
        );
    }
    Ok(())
}

/// Asks with an empty message; how many messages and bytes came back.
async fn ask(address: &str, method: &str) -> Result<(u64, u64), Failure> {
    let channel = Endpoint::from_shared(format!("http://{address}"))?.connect().await?;
    let mut grpc = tonic::client::Grpc::new(channel).max_decoding_message_size(256 << 20);
    grpc.ready().await?;
    let path = format!("/api.Registry/{method}").parse()?;
    let mut answers = grpc.server_streaming(Request::new(Bytes::new()), path, Counted).await?.into_inner();
    let (mut messages, mut bytes) = (0, 0);
    while let Some(len) = answers.message().await? {
        (messages, bytes) = (messages + 1, bytes + len);
    }
    Ok((messages, bytes))
}

/// Sends nothing, and takes of messages their length.
#[derive(Clone, Copy)]
struct Counted;

impl Codec for Counted {
    type Encode = Bytes;
    type Decode = u64;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Counted {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, _: Bytes, _: &mut EncodeBuf<'_>) -> Result<(), Status> {
        Ok(())
    }
}

impl Decoder for Counted {
    type Item = u64;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<u64>, Status> {
        let len = source.remaining();
        source.advance(len);
        Ok(Some(len as u64))
    }
}
