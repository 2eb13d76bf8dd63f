//! A Redis that only says that all is well: what five hundred clusters cost the operator can be measured without fifteen
//! hundred redis-servers.

use std::net::{IpAddr, Ipv4Addr};

use redis_operator::controller::children::PORT;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::node::{RedisSettings, Runtime};

/// Clusters of three nodes each.
pub(crate) struct PretendedRedis;

/// The slots of each node, shared as the operator shares them.
const SLOTS: [&str; 3] = ["0-5461", "5462-10922", "10923-16383"];

struct Listening(JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Runtime for PretendedRedis {
    fn start(&self, settings: &RedisSettings) -> Box<dyn Send> {
        let listener = std::net::TcpListener::bind((settings.ip, PORT)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let table = table(settings);
        Box::new(Listening(tokio::spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                // A client that hangs up needs no answer.
                tokio::spawn(answer(stream, table.clone()));
            }
        })))
    }
}

/// CLUSTER NODES. The pods of a cluster have addresses that follow one another.
fn table(settings: &RedisSettings) -> String {
    let IpAddr::V4(ip) = settings.ip else { unreachable!("pods here have IPv4 addresses") };
    let first = u32::from(ip) - settings.ordinal;
    let name = settings.pod.rsplit_once('-').unwrap().0;
    let line = |(ordinal, slots): (u32, &&str)| {
        let number = first + ordinal;
        let ip = Ipv4Addr::from(number);
        let flags = if ordinal == settings.ordinal { "myself,master" } else { "master" };
        let epoch = ordinal + 1;
        let host = settings.hostname(&format!("{name}-{ordinal}"));
        format!("{number:040x} {ip}:{PORT}@16379,{host} {flags} - 0 0 {epoch} connected {slots}\n")
    };
    (0..).zip(&SLOTS).map(line).collect()
}

async fn answer(stream: TcpStream, table: String) -> std::io::Result<()> {
    // As Redis does: several answers to what was sent at once would wait for one another.
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let Some(words) = command(&mut stream).await? else { return Ok(()) };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let text = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        let said = match words[..] {
            ["CLUSTER", "NODES"] => text(&table),
            ["CLUSTER", "INFO"] => text("cluster_state:ok\r\ncluster_current_epoch:3\r\n"),
            ["INFO", ..] => text(
                "role:master\r\nmaster_repl_offset:0\r\nused_memory:1000000\r\nmaxmemory:0\r\nredis_version:7.0.15\r\n",
            ),
            ["DBSIZE"] => ":0\r\n".into(),
            _ => "+OK\r\n".into(),
        };
        stream.get_mut().write_all(said.as_bytes()).await?;
    }
}

/// The words of one command, `None` at the end: an array of strings, each with its length.
async fn command(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Vec<String>>> {
    let Some(count) = number(stream).await? else { return Ok(None) };
    let mut words = vec![];
    for _ in 0..count {
        let Some(length) = number(stream).await? else { return Ok(None) };
        let mut word = vec![0; length + 2];
        stream.read_exact(&mut word).await?;
        word.truncate(length);
        words.push(String::from_utf8_lossy(&word).to_uppercase());
    }
    Ok(Some(words))
}

async fn number(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<usize>> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    Ok(line.get(1..).and_then(|line| line.trim_end().parse().ok()))
}
