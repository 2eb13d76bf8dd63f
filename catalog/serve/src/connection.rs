//! A connection's life: let in, greeted, asked, watched, and asked to go when there is a new catalog.
//!
//! One port speaks everything: TLS where there is a certificate, then HTTP/2 or HTTP/1.1 by what the client says first, then gRPC or HTTP
//! by what is asked. Connections that say nothing, stop reading or vanish are closed after a time.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tonic::Status;
use tonic::body::Body;
use tonic_health::pb::health_server::HealthServer;
use tower_service::Service as _;
use tracing::{debug, warn};

use crate::health::Readiness;
use crate::tls::Tls;
use crate::unread::{Piece, Unread};
use crate::{ServeError, Shared, http as web, registry};

/// How long a client may take to detect_protocol: for TLS, and for its first bytes.
const GREETING: Duration = Duration::from_secs(10);
/// How often a silent HTTP/2 connection is asked whether it is still there, and how long it may take to answer.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);
/// How long a connection that has ended is still read from.
const LINGER: Duration = Duration::from_secs(5);
/// How long a client may leave an answer unread where much is unread already.
const SHORT_STALL: Duration = Duration::from_secs(2);
/// What of an answer waits in memory for the network, in bytes.
const SEND_BUFFER: usize = 32 << 10;
/// The largest header block of a request, in bytes.
const MAX_HEADERS: u32 = 16 << 10;
/// What HTTP/2 connections start with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What reflection tells: `registry.proto` and what it imports.
const DESCRIPTORS: &[u8] = include_bytes!("../proto/registry.binpb");

/// What a listener takes requests for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    Everything,
    Http,
}

/// A service that tonic made, whatever its type, as a function.
type Boxed = Arc<dyn Fn(Request<Body>) -> Pin<Box<dyn Future<Output = Response<Body>> + Send>> + Send + Sync>;

/// Where connections come in.
#[derive(Clone)]
pub(super) struct Acceptor {
    shared: Arc<Shared>,
    /// One for each connection that may still come.
    places: Arc<Semaphore>,
    health: HealthServer<Readiness>,
    reflection: [Boxed; 2],
    unread: Arc<Unread>,
    started: Instant,
}

impl Acceptor {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self, ServeError> {
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTORS)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let bad = |error: tonic_reflection::server::Error| ServeError::Start(io::Error::other(error));
        Ok(Self {
            places: Arc::new(Semaphore::new(shared.limits.connections as usize)),
            health: HealthServer::new(Readiness(shared.clone())),
            reflection: [
                boxed(reflection().build_v1().map_err(bad)?),
                boxed(reflection().build_v1alpha().map_err(bad)?),
            ],
            unread: Arc::default(),
            started: Instant::now(),
            shared,
        })
    }

    /// Lets clients in until the program ends.
    pub(super) async fn accept(self, listener: TcpListener, tls: Option<Arc<Tls>>, speaks: Speaks) {
        let mut ending = self.shared.ending.subscribe();
        loop {
            let accepted = tokio::select! {
                _ = ending.wait_for(|ending| *ending) => return,
                accepted = listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of files, mostly: it passes when others go.
                    warn!(msg = "cannot accept a connection", error = %error);
                    sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let Ok(place) = self.places.clone().try_acquire_owned() else {
                self.shared.metrics.refused.inc();
                continue;
            };
            let (gate, tls) = (self.clone(), tls.clone());
            tokio::spawn(async move { gate.connection(stream, tls, speaks, place).await });
        }
    }

    /// Waits until nobody is there any more.
    pub(super) async fn empty(&self) {
        // Nobody closes the semaphore.
        let _ = self.places.acquire_many(self.shared.limits.connections).await;
    }

    async fn connection(
        self,
        stream: TcpStream,
        tls: Option<Arc<Tls>>,
        speaks: Speaks,
        place: OwnedSemaphorePermit,
    ) {
        self.shared.metrics.connections.inc();
        // Only answers go out, and they are to go at once.
        let _ = stream.set_nodelay(true);
        let ended = match tls {
            None => self.detect_protocol(stream, speaks).await,
            Some(tls) => match timeout(GREETING, tls.acceptor().accept(stream)).await {
                Ok(Ok(stream)) => self.detect_protocol(stream, speaks).await,
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("no TLS greeting in time".into()),
            },
        };
        if let Err(error) = ended {
            debug!(msg = "connection ended", error);
        }
        self.shared.metrics.connections.dec();
        drop(place);
    }

    /// Finds out which HTTP the client speaks.
    async fn detect_protocol(&self, mut stream: impl Stream + 'static, speaks: Speaks) -> Result<(), String> {
        let mut said = Vec::with_capacity(PREFACE.len());
        let greeting = async {
            while said.len() < PREFACE.len() && PREFACE.starts_with(&said) {
                let mut rest = (&mut stream).take((PREFACE.len() - said.len()) as u64);
                if rest.read_buf(&mut said).await? == 0 {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
                }
            }
            Ok(())
        };
        match timeout(GREETING, greeting).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err("no greeting in time".into()),
        }
        let is_http2 = said == PREFACE;
        let io = TokioIo::new(Rewound { said: Bytes::from(said), stream: Lingering(Some(stream)) });
        let answers = Arc::new(Answers::default());
        let service = service_fn(|request| {
            let (gate, answers) = (self.clone(), answers.clone());
            async move { Ok::<_, Infallible>(gate.respond(request, speaks, &answers).await) }
        });
        if is_http2 {
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(PING)
                .keep_alive_timeout(PONG)
                .max_concurrent_streams(self.shared.limits.streams)
                .max_send_buf_size(SEND_BUFFER)
                .max_header_list_size(MAX_HEADERS)
                .serve_connection(io, service);
            self.watch(connection, http2::Connection::graceful_shutdown, &answers).await
        } else {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(GREETING)
                .max_buf_size(SEND_BUFFER)
                .serve_connection(io, service);
            self.watch(connection, http1::Connection::graceful_shutdown, &answers).await
        }
    }

    /// Lets a connection live until it ends by itself, or its client stops reading. A new catalog, or the end of the program, lets it
    /// finish its answers and take no more questions.
    async fn watch<C>(
        &self,
        connection: C,
        ask_to_go: fn(Pin<&mut C>),
        answers: &Answers,
    ) -> Result<(), String>
    where
        C: Future<Output = hyper::Result<()>>,
    {
        let mut connection = pin!(connection);
        let (mut catalog, mut ending) = (self.shared.catalog.subscribe(), self.shared.ending.subscribe());
        let stall = self.shared.limits.stall;
        let mut looks = interval((stall.min(SHORT_STALL) / 4).max(Duration::from_millis(50)));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asked = false;
        loop {
            tokio::select! {
                ended = &mut connection => return ended.map_err(|error| error.to_string()),
                _ = catalog.changed(), if !asked => {
                    asked = true;
                    ask_to_go(connection.as_mut());
                }
                _ = ending.wait_for(|ending| *ending), if !asked => {
                    asked = true;
                    ask_to_go(connection.as_mut());
                }
                _ = looks.tick() => {
                    let stall = if self.unread.is_much() { stall.min(SHORT_STALL) } else { stall };
                    if answers.oldest_unread().is_some_and(|since| self.now().saturating_sub(since) > stall.as_millis() as u64) {
                        self.shared.metrics.stalled.inc();
                        return Err("an answer was left unread for too long".into());
                    }
                }
            }
        }
    }

    /// Milliseconds since the program started.
    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    async fn respond(&self, request: Request<Incoming>, speaks: Speaks, answers: &Answers) -> Response<Body> {
        let started = Instant::now();
        let request = request.map(Body::new);
        let is_grpc = request
            .headers()
            .get(http::header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
        let (method, response) = if is_grpc && speaks == Speaks::Everything {
            // The answer to a question is put together at once, and waits for its turn on the connection.
            poll_fn(|cx| self.unread.poll_room(cx)).await;
            self.grpc(request).await
        } else {
            web::answer(&self.shared, &request)
        };
        let progress = Arc::new(AtomicU64::new(WAITING_FOR_US));
        answers.add(&progress);
        let code = match response.headers().get("grpc-status") {
            Some(status) => status.to_str().unwrap_or("2").to_owned(),
            None if is_grpc => String::new(),
            None => response.status().as_u16().to_string(),
        };
        self.shared.metrics.under_way.inc();
        let mut sent = Piece::none(self.unread.clone());
        let is_prepared = response.extensions().get::<registry::Prepared>().is_some_and(|prepared| {
            sent.replace(prepared.0);
            prepared.0 > 0
        });
        response.map(|body| {
            Body::new(Watched {
                body,
                gate: self.clone(),
                progress,
                sent,
                is_prepared,
                method,
                code,
                is_grpc,
                started,
            })
        })
    }

    async fn grpc(&self, request: Request<Body>) -> (&'static str, Response<Body>) {
        let path = request.uri().path().to_owned();
        let Some((service, method)) = path.strip_prefix('/').and_then(|path| path.split_once('/')) else {
            return (
                "unknown",
                Status::unimplemented(format!("malformed method name: {path:?}")).into_http(),
            );
        };
        match service {
            "api.Registry" | "api.ExperimentalRegistry" => {
                match registry::answer(&self.shared, service, method, request).await {
                    Some(answered) => answered,
                    None => {
                        let message = format!("unknown method {method} for service {service}");
                        ("unknown", Status::unimplemented(message).into_http())
                    }
                }
            }
            "grpc.health.v1.Health" => {
                let name = if method == "Watch" { "Health/Watch" } else { "Health/Check" };
                (name, self.health.clone().call(request).await.unwrap_or_else(|never| match never {}))
            }
            "grpc.reflection.v1.ServerReflection" => {
                ("ServerReflection", (self.reflection[0])(request).await)
            }
            "grpc.reflection.v1alpha.ServerReflection" => {
                ("ServerReflection", (self.reflection[1])(request).await)
            }
            _ => ("unknown", Status::unimplemented(format!("unknown service {service}")).into_http()),
        }
    }
}

fn boxed<S>(service: S) -> Boxed
where
    S: tower_service::Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    Arc::new(move |request| {
        let mut service = service.clone();
        Box::pin(async move { service.call(request).await.unwrap_or_else(|never| match never {}) })
    })
}

/// A byte stream, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A stream whose first bytes have been looked at.
struct Rewound<S> {
    said: Bytes,
    stream: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.said.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, out);
        }
        let len = self.said.len().min(out.remaining());
        out.put_slice(&self.said.split_to(len));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A stream that is read to its end before it is closed. Closing it with something unread resets the connection, and what the client
/// has not read by then, the end of an answer perhaps, is lost to it.
struct Lingering<S: Stream + 'static>(Option<S>);

impl<S: Stream + 'static> Lingering<S> {
    fn with<T>(
        &mut self,
        cx: &mut Context<'_>,
        work: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match &mut self.0 {
            Some(stream) => work(Pin::new(stream), cx),
            // Only dropping takes it away.
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl<S: Stream + 'static> Drop for Lingering<S> {
    fn drop(&mut self) {
        let (Some(mut stream), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        runtime.spawn(timeout(LINGER, async move {
            let mut rest = [0; 1024];
            if stream.shutdown().await.is_ok() {
                while matches!(stream.read(&mut rest).await, Ok(1..)) {}
            }
        }));
    }
}

impl<S: Stream + 'static> AsyncRead for Lingering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.with(cx, |stream, cx| stream.poll_read(cx, out))
    }
}

impl<S: Stream + 'static> AsyncWrite for Lingering<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.with(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.with(cx, |stream, cx| stream.poll_write_vectored(cx, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.0.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(cx, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(cx, AsyncWrite::poll_shutdown)
    }
}

/// In place of a time: the client has read all there is so far.
const WAITING_FOR_US: u64 = u64::MAX;

/// When the answers of a connection were last read.
#[derive(Default)]
struct Answers(Mutex<Vec<Weak<AtomicU64>>>);

impl Answers {
    fn add(&self, progress: &Arc<AtomicU64>) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that have ended go when there are many.
        if answers.len() >= 64 && answers.len() == answers.capacity() {
            answers.retain(|answer| answer.strong_count() > 0);
        }
        answers.push(Arc::downgrade(progress));
    }

    /// The time since when the client has left an answer unread for longest.
    fn oldest_unread(&self) -> Option<u64> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|answer| answer.strong_count() > 0);
        let times = answers.iter().filter_map(Weak::upgrade).map(|answer| answer.load(Ordering::Relaxed));
        times.filter(|time| *time != WAITING_FOR_US).min()
    }
}

/// An answer that notes when it is read, and how it ends.
struct Watched {
    body: Body,
    gate: Acceptor,
    progress: Arc<AtomicU64>,
    sent: Piece,
    /// Whether all of it is in memory already, so that nothing is won by waiting.
    is_prepared: bool,
    method: &'static str,
    /// The status; empty as long as it is not known.
    code: String,
    is_grpc: bool,
    started: Instant,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.progress.store(WAITING_FOR_US, Ordering::Relaxed);
        if !self.is_prepared {
            // A client that asks for more has taken everything before.
            self.sent.replace(0);
            ready!(self.sent.all().poll_room(cx));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        // From here on it is the client's turn, until it has taken this and asks for more.
        self.progress.store(self.gate.now(), Ordering::Relaxed);
        if let Some(Ok(frame)) = &frame {
            if let Some(data) = frame.data_ref() {
                if !self.is_prepared {
                    self.sent.replace(data.len());
                }
                self.gate.shared.metrics.sent_bytes.inc_by(data.len() as u64);
            }
            if let Some(status) = frame.trailers_ref().and_then(|trailers| trailers.get("grpc-status")) {
                self.code = status.to_str().unwrap_or("2").to_owned();
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let metrics = &self.gate.shared.metrics;
        metrics.under_way.dec();
        let mut code = std::mem::take(&mut self.code);
        if code.is_empty() && self.is_grpc {
            // Nobody waited for the end: cancelled.
            code = "1".into();
        }
        metrics.ended(self.method, code, self.started.elapsed());
    }
}
