//! Speaking with redis-server: what it says ([`observe`](observe::observe)), and telling it what to do
//! ([`act`](act::act)). Every command has a deadline, and every command that changes something asks first
//! whether this operator still leads.

pub mod act;
pub mod configure;
pub mod observe;
pub mod parse;
pub mod passwords;
pub mod tls;
pub mod users;

use std::{
    fmt,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisConnectionInfo, RedisError,
    aio::MultiplexedConnection,
};
use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

use self::tls::{ConnectError, Trust};
use crate::{
    metrics::Metrics,
    plan::{Fingerprint, PasswordHash},
};

/// How long one command may take.
pub const COMMAND_DEADLINE: Duration = Duration::from_secs(2);

/// A redacted password.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Takes it out of the sight of logs.
    pub fn new(password: String) -> Self {
        Self(password)
    }

    /// What is given to Redis.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Its hash, as Redis has it.
    pub fn hash(&self) -> PasswordHash {
        let hash = Sha256::digest(&self.0);
        PasswordHash(hash.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// How the nodes of a cluster are spoken with.
#[derive(Clone, Debug)]
pub struct Access {
    /// The port that every node listens on.
    pub port: u16,
    /// What follows the name of a pod in the host name that its node announces, up to the domain. Without it, host names are not
    /// compared.
    pub host: Option<String>,
    /// The authority that signs the certificates of nodes; without it there is no TLS.
    pub trust: Option<Trust>,
    /// The cluster's password.
    pub password: Option<Password>,
    /// The one before it, for nodes that do not accept the new one yet.
    pub previous: Option<Password>,
    /// Where commands are counted.
    pub metrics: Arc<Metrics>,
}

/// Why a command had no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// It took too long.
    #[error("{command} took longer than {} s", .limit.as_secs())]
    TimedOut {
        /// The command.
        command: &'static str,
        /// What it was given.
        limit: Duration,
    },
    /// Redis refused it, or the connection broke.
    #[error("{command} failed")]
    Failed {
        /// The command.
        command: &'static str,
        /// What Redis said.
        source: Box<RedisError>,
    },
    /// The node presents a certificate that is not trusted.
    #[error("the certificate of the node is not trusted")]
    Untrusted {
        /// Why not.
        source: Box<rustls::Error>,
    },
}

impl CommandError {
    /// What Redis said, when it said something.
    pub fn message(&self) -> String {
        match self {
            Self::Failed { source, .. } => source.to_string(),
            Self::TimedOut { .. } | Self::Untrusted { .. } => self.to_string(),
        }
    }

    /// Whether Redis answered, and refused the password.
    pub fn is_password_rejected(&self) -> bool {
        match self {
            Self::Failed { source, .. } => {
                source.kind() == ErrorKind::AuthenticationFailed
                    || ["WRONGPASS", "NOAUTH"].iter().any(|code| source.code() == Some(code))
            }
            Self::TimedOut { .. } | Self::Untrusted { .. } => false,
        }
    }

    fn class(&self) -> &'static str {
        match self {
            Self::TimedOut { .. } => "timeout",
            Self::Failed { source, .. } if source.is_io_error() => "connection",
            Self::Untrusted { .. } => "connection",
            Self::Failed { .. } => "refused",
        }
    }
}

/// A connection to one node: to one process, so the node at the other end stays the same until it closes.
#[derive(Clone, Debug)]
pub struct Connection {
    inner: MultiplexedConnection,
    metrics: Arc<Metrics>,
    /// The certificate that the node presented.
    certificate: Option<Fingerprint>,
}

impl Access {
    /// Whether a node that announces this host name is the one of this pod. For a moment, the address of a new pod is still that of
    /// another one, whose node may have the same password and no keys.
    pub fn is_of(&self, pod: &str, hostname: Option<&str>) -> bool {
        let Some(host) = &self.host else { return true };
        let rest = hostname.and_then(|name| name.strip_prefix(pod));
        rest.is_some_and(|rest| rest.starts_with(host.as_str()))
    }

    /// Connects, and logs in with the password or else with the previous one.
    ///
    /// # Errors
    /// When nobody answers in time, or accepts neither password.
    pub async fn connect(&self, ip: IpAddr) -> Result<Connection, CommandError> {
        match (self.log_in(ip, self.password.as_ref()).await, &self.previous) {
            (Err(error), Some(previous)) if error.is_password_rejected() => {
                self.log_in(ip, Some(previous)).await
            }
            (result, _) => result,
        }
    }

    async fn log_in(&self, ip: IpAddr, password: Option<&Password>) -> Result<Connection, CommandError> {
        let mut settings = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(password) = password {
            settings = settings.set_password(password.reveal());
        }
        // Each command has a deadline of its own; the client's half a second would break off WAIT and MIGRATE.
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let connecting = async {
            let stream = TcpStream::connect((ip, self.port)).await?;
            stream.set_nodelay(true)?;
            let Some(trust) = &self.trust else {
                return Ok(Ok((open(&settings, stream, config).await?, None)));
            };
            let stream = match trust.connect(ip, stream).await {
                Ok(stream) => stream,
                Err(ConnectError::Io(error)) => return Err(error.into()),
                Err(ConnectError::Untrusted(error)) => return Ok(Err(error)),
            };
            let certificate = tls::presented(&stream);
            Ok(Ok((open(&settings, stream, config).await?, certificate)))
        };
        let connected = timed(&self.metrics, "CONNECT", COMMAND_DEADLINE, connecting).await?;
        let (inner, certificate) =
            connected.map_err(|source| CommandError::Untrusted { source: Box::new(source) })?;
        Ok(Connection { inner, metrics: self.metrics.clone(), certificate })
    }
}

/// Logs in. A task reads and writes for as long as there is a copy of the connection.
async fn open<S>(
    settings: &RedisConnectionInfo,
    stream: S,
    config: AsyncConnectionConfig,
) -> Result<MultiplexedConnection, RedisError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (connection, driver) = MultiplexedConnection::new_with_config(settings, stream, config).await?;
    tokio::spawn(driver);
    Ok(connection)
}

impl Connection {
    /// Sends one command.
    ///
    /// # Errors
    /// When Redis refuses it, or does not answer in time.
    pub async fn send<T: FromRedisValue>(
        &mut self,
        name: &'static str,
        command: &Cmd,
    ) -> Result<T, CommandError> {
        self.send_within(name, command, COMMAND_DEADLINE).await
    }

    /// Sends one command that may take longer.
    ///
    /// # Errors
    /// When Redis refuses it, or does not answer in time.
    pub async fn send_within<T: FromRedisValue>(
        &mut self,
        name: &'static str,
        command: &Cmd,
        limit: Duration,
    ) -> Result<T, CommandError> {
        timed(&self.metrics, name, limit, command.query_async(&mut self.inner)).await
    }

    /// Sends several commands at once. Redis carries out the others also when it refuses one.
    ///
    /// # Errors
    /// When Redis refuses one, or does not answer in time. The error is that of the first.
    pub async fn send_all<T: FromRedisValue>(
        &mut self,
        name: &'static str,
        commands: &Pipeline,
    ) -> Result<T, CommandError> {
        let first = |error: RedisError| match error.clone().into_server_errors().as_deref() {
            Some([(_, first), ..]) => first.clone().into(),
            _ => error,
        };
        let work = async { commands.query_async(&mut self.inner).await.map_err(first) };
        timed(&self.metrics, name, COMMAND_DEADLINE, work).await
    }
}

async fn timed<T>(
    metrics: &Metrics,
    command: &'static str,
    limit: Duration,
    work: impl Future<Output = Result<T, RedisError>>,
) -> Result<T, CommandError> {
    let started = Instant::now();
    let result = match tokio::time::timeout(limit, work).await {
        Ok(result) => result.map_err(|source| CommandError::Failed { command, source: Box::new(source) }),
        Err(_) => Err(CommandError::TimedOut { command, limit }),
    };
    metrics.redis_command(command, started.elapsed(), result.as_ref().err().map(CommandError::class));
    result
}
