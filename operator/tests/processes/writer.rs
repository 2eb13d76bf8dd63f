//! A client that knows of clusters: it follows redirections, and remembers every write that was acknowledged.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use redis::cmd;
use redis_operator::server::{Access, CommandError, Connection};
use tokio::task::JoinHandle;

/// What became of the writes.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The last acknowledged value of each key.
    pub(crate) acknowledged: BTreeMap<String, u64>,
    /// Errors other than redirections, by their text.
    pub(crate) errors: BTreeMap<String, u64>,
    /// The longest time between two acknowledged writes.
    pub(crate) stall: Duration,
}

/// A client of one cluster.
pub(crate) struct ClusterClient {
    access: Access,
    connections: BTreeMap<IpAddr, Connection>,
    places: BTreeMap<String, IpAddr>,
    seed: IpAddr,
}

impl ClusterClient {
    pub(crate) fn new(access: Access, seed: IpAddr) -> Self {
        Self { access, connections: BTreeMap::new(), places: BTreeMap::new(), seed }
    }

    /// Sends a command about a key to the node that has it.
    pub(crate) async fn send<T: redis::FromRedisValue>(
        &mut self,
        key: &str,
        command: &redis::Cmd,
    ) -> Result<T, CommandError> {
        let mut asking = false;
        let mut tries = 0;
        loop {
            // Any node of the cluster redirects to the node that has the key.
            let known = self.places.get(key).or_else(|| self.places.values().next());
            let ip = *known.unwrap_or(&self.seed);
            let connection = match self.connections.get(&ip) {
                Some(connection) => connection.clone(),
                None => {
                    let connection = match self.access.connect(ip).await {
                        Ok(connection) => connection,
                        Err(error) => {
                            self.places.retain(|_, place| *place != ip);
                            return Err(error);
                        }
                    };
                    self.connections.insert(ip, connection.clone());
                    connection
                }
            };
            let mut connection = connection;
            if asking {
                connection.send::<()>("ASKING", &cmd("ASKING")).await?;
            }
            let error = match connection.send("CLIENT", command).await {
                Ok(value) => {
                    if asking {
                        self.places.remove(key);
                    }
                    return Ok(value);
                }
                Err(error) => error,
            };
            tries += 1;
            let CommandError::Failed { source, .. } = &error else {
                self.connections.remove(&ip);
                self.places.retain(|_, place| *place != ip);
                return Err(error);
            };
            match (source.code(), source.redirect_node()) {
                (Some(code @ ("MOVED" | "ASK")), Some((address, _))) if tries < 20 => {
                    asking = code == "ASK";
                    let host = address.rsplit_once(':').unwrap().0;
                    let ip = match host.parse() {
                        Ok(ip) => ip,
                        Err(_) => address_of(&mut connection, host).await?,
                    };
                    self.places.insert(key.into(), ip);
                }
                _ => {
                    if source.is_io_error() {
                        self.connections.remove(&ip);
                        self.places.retain(|_, place| *place != ip);
                    }
                    return Err(error);
                }
            }
        }
    }
}

/// The address of a node that is known by its name, as DNS would have it.
async fn address_of(connection: &mut Connection, name: &str) -> Result<IpAddr, CommandError> {
    let table: String = connection.send("NODES", cmd("CLUSTER").arg("NODES")).await?;
    let addresses = table.lines().filter_map(|line| line.split(' ').nth(1)?.split_once(','));
    let mut named = addresses.filter(|(_, other)| *other == name);
    let (address, _) = named.next().unwrap_or_else(|| panic!("no node has the name {name}: {table}"));
    Ok(address.rsplit_once(':').unwrap().0.parse().unwrap())
}

static WRITERS: AtomicU64 = AtomicU64::new(0);

/// Writes until it is told to stop.
pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Written>,
}

impl Writer {
    pub(crate) fn start(access: Access, seed: IpAddr, keys: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        // Each has keys of its own.
        let number = WRITERS.fetch_add(1, Ordering::Relaxed);
        let task = tokio::spawn(async move {
            let mut client = ClusterClient::new(access, seed);
            let mut written = Written::default();
            let mut count = 0;
            let mut last = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                count += 1;
                let key = format!("writer-{number}-{}", count % keys);
                match client.send::<()>(&key, cmd("SET").arg(&key).arg(count)).await {
                    Ok(()) => {
                        written.acknowledged.insert(key, count);
                        written.stall = written.stall.max(last.elapsed());
                        last = Instant::now();
                    }
                    Err(error) => {
                        *written.errors.entry(error.message()).or_default() += 1;
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
            }
            written
        });
        Self { stop, task }
    }

    /// Stops, and says what was written.
    pub(crate) async fn stop(self) -> Written {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap()
    }
}

impl Written {
    /// Acknowledged writes whose value is not there any more.
    pub(crate) async fn lost(&self, access: &Access, seed: IpAddr) -> Vec<String> {
        let mut client = ClusterClient::new(access.clone(), seed);
        let mut lost = vec![];
        for (key, value) in &self.acknowledged {
            let found: Option<u64> = client.send(key, cmd("GET").arg(key)).await.unwrap();
            // A write whose answer was lost may have happened all the same: later is fine, earlier is not.
            if found.is_none_or(|found| found < *value) {
                lost.push(format!("{key}: acknowledged {value}, found {found:?}"));
            }
        }
        lost
    }
}
