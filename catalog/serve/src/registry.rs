//! `api.Registry` and `api.ExperimentalRegistry`: a request's bytes to the encoded messages that answer it.
//!
//! On the wire a single answer is a stream of one, so all methods go the same way, and no answer is ever decoded or encoded: messages
//! are what the compiled catalog holds. The status codes are opm's: it answers `UNKNOWN` for everything that is not there.

use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf as _, BufMut as _};
use futures_util::Stream;
use prost::Message;
use tonic::body::Body;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, ServerStreamingService};
use tonic::{Request, Response, Status};

use crate::compiled::{AskError, Corrupt, Listing, api};
use crate::{Serving, Shared, report_damage};

/// The largest request, in bytes: a few names.
const MAX_REQUEST: usize = 64 << 10;
/// What of an answer goes to the network at once, in bytes: the length of an HTTP/2 frame.
const PIECE: usize = 16 << 10;
/// What clients send who know that the experimental service may change.
const ACKNOWLEDGE: &str = "x-acknowledge-experimental";

/// Answers a request to `SERVICE/METHOD`; nothing when there is no such method.
pub(super) async fn answer(
    shared: &Arc<Shared>,
    service: &str,
    method: &str,
    request: http::Request<Body>,
) -> Option<(&'static str, http::Response<Body>)> {
    let method = Method::of(service, method)?;
    let ask = Ask { shared: shared.clone(), method };
    let mut grpc = Grpc::new(Raw).max_decoding_message_size(MAX_REQUEST);
    let mut response = grpc.server_streaming(ask, request).await;
    // A request that is too large is out of range for the library and exhausts resources for every other server.
    if let Some(status) = response.headers_mut().get_mut("grpc-status")
        && *status == "11"
    {
        *status = http::HeaderValue::from_static("8");
    }
    Some((method.name(), response))
}

/// The methods of both services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    ListPackages,
    GetPackage,
    GetBundle,
    GetBundleForChannel,
    GetChannelEntriesThatReplace,
    GetBundleThatReplaces,
    GetChannelEntriesThatProvide,
    GetLatestChannelEntriesThatProvide,
    GetDefaultBundleThatProvides,
    ListBundles,
    ListPackageCustomSchemas,
}

impl Method {
    const ALL: [Self; 11] = [
        Self::ListPackages,
        Self::GetPackage,
        Self::GetBundle,
        Self::GetBundleForChannel,
        Self::GetChannelEntriesThatReplace,
        Self::GetBundleThatReplaces,
        Self::GetChannelEntriesThatProvide,
        Self::GetLatestChannelEntriesThatProvide,
        Self::GetDefaultBundleThatProvides,
        Self::ListBundles,
        Self::ListPackageCustomSchemas,
    ];

    fn of(service: &str, name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.service() == service && method.name() == name)
    }

    fn service(self) -> &'static str {
        if self == Self::ListPackageCustomSchemas { "api.ExperimentalRegistry" } else { "api.Registry" }
    }

    fn name(self) -> &'static str {
        match self {
            Self::ListPackages => "ListPackages",
            Self::GetPackage => "GetPackage",
            Self::GetBundle => "GetBundle",
            Self::GetBundleForChannel => "GetBundleForChannel",
            Self::GetChannelEntriesThatReplace => "GetChannelEntriesThatReplace",
            Self::GetBundleThatReplaces => "GetBundleThatReplaces",
            Self::GetChannelEntriesThatProvide => "GetChannelEntriesThatProvide",
            Self::GetLatestChannelEntriesThatProvide => "GetLatestChannelEntriesThatProvide",
            Self::GetDefaultBundleThatProvides => "GetDefaultBundleThatProvides",
            Self::ListBundles => "ListBundles",
            Self::ListPackageCustomSchemas => "ExperimentalListPackageCustomSchemas",
        }
    }
}

/// A method, ready to be asked.
struct Ask {
    shared: Arc<Shared>,
    method: Method,
}

impl ServerStreamingService<Vec<u8>> for Ask {
    type Response = Vec<u8>;
    type ResponseStream = Answers;
    type Future = Ready<Result<Response<Answers>, Status>>;

    fn call(&mut self, request: Request<Vec<u8>>) -> Self::Future {
        let acknowledged = request.metadata().get(ACKNOWLEDGE).is_some_and(|value| value == "true");
        ready(self.ask(request.get_ref(), acknowledged).map(|answers| {
            let prepared = Prepared(answers.in_memory());
            let mut response = Response::new(answers);
            response.extensions_mut().insert(prepared);
            response
        }))
    }
}

impl Ask {
    fn ask(&self, request: &[u8], acknowledged: bool) -> Result<Answers, Status> {
        let catalog =
            self.shared.catalog().ok_or_else(|| Status::unavailable("the catalog is not open yet"))?;
        let compiled = &catalog.compiled;
        let one = |answer: Result<Vec<u8>, AskError>| Ok(Answers::Ready(vec![answer?].into_iter()));
        let entries = |answer: Result<Vec<api::ChannelEntry>, AskError>| {
            let entries: Vec<_> = answer?.iter().map(Message::encode_to_vec).collect();
            Ok(Answers::Ready(entries.into_iter()))
        };
        let answers: Result<Answers, AskError> = match self.method {
            Method::ListPackages => compiled.packages().map_err(AskError::from).map(|names| {
                let message = |name: &&str| api::PackageName { name: (*name).to_owned() }.encode_to_vec();
                Answers::Ready(names.iter().map(message).collect::<Vec<_>>().into_iter())
            }),
            Method::GetPackage => one(compiled.package(&read::<api::GetPackageRequest>(request)?.name)),
            Method::GetBundle => {
                let api::GetBundleRequest { pkg_name, channel_name, csv_name } = read(request)?;
                one(compiled.bundle(&pkg_name, &channel_name, &csv_name))
            }
            Method::GetBundleForChannel => {
                let api::GetBundleInChannelRequest { pkg_name, channel_name } = read(request)?;
                one(compiled.head(&pkg_name, &channel_name))
            }
            Method::GetChannelEntriesThatReplace => entries(
                compiled.entries_that_replace(&read::<api::GetAllReplacementsRequest>(request)?.csv_name),
            ),
            Method::GetBundleThatReplaces => {
                let api::GetReplacementRequest { csv_name, pkg_name, channel_name } = read(request)?;
                one(compiled.bundle_that_replaces(&csv_name, &pkg_name, &channel_name))
            }
            Method::GetChannelEntriesThatProvide => {
                let api::GetAllProvidersRequest { group, version, kind, .. } = read(request)?;
                entries(compiled.entries_that_provide(&group, &version, &kind))
            }
            Method::GetLatestChannelEntriesThatProvide => {
                let api::GetAllProvidersRequest { group, version, kind, .. } = read(request)?;
                entries(compiled.heads_that_provide(&group, &version, &kind))
            }
            Method::GetDefaultBundleThatProvides => {
                let api::GetAllProvidersRequest { group, version, kind, .. } = read(request)?;
                one(compiled.default_that_provides(&group, &version, &kind))
            }
            Method::ListBundles => Ok(Answers::Listing {
                shared: self.shared.clone(),
                catalog: catalog.clone(),
                listing: Listing::default(),
                size: 0,
            }),
            // A client that does not know that the answer may change gets none, so that it does not break when it changes.
            Method::ListPackageCustomSchemas if !acknowledged => Ok(Answers::Ready(Vec::new().into_iter())),
            Method::ListPackageCustomSchemas => {
                let api::ExperimentalListPackageCustomSchemasRequest { schema, package_name } =
                    read(request)?;
                check_custom(&schema, &package_name)?;
                let blobs = compiled.customs(&schema, &package_name).map_err(AskError::from);
                blobs.map(|blobs| Answers::Ready(blobs.into_iter()))
            }
        };
        answers.map_err(|error| match error {
            AskError::Corrupt(error) => damaged(&self.shared, &error),
            error => Status::unknown(error.to_string()),
        })
    }
}

fn damaged(shared: &Shared, error: &Corrupt) -> Status {
    report_damage(shared, error);
    Status::data_loss(error.to_string())
}

fn read<M: Message + Default>(request: &[u8]) -> Result<M, Status> {
    M::decode(request).map_err(|error| Status::internal(format!("the request cannot be decoded: {error}")))
}

/// What opm says of names that its cache has no room for.
fn check_custom(schema: &str, package: &str) -> Result<(), Status> {
    if schema.is_empty() {
        return Err(Status::invalid_argument("schema is required"));
    }
    let fits = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    };
    for (what, text) in [("schema", schema), ("packageName", package)] {
        let optional = what == "packageName" && text.is_empty();
        if !optional && !fits(text) {
            return Err(Status::invalid_argument(format!(
                "invalid custom schema query: invalid {what} {text:?}: must match ^[a-zA-Z0-9][a-zA-Z0-9._-]*$"
            )));
        }
    }
    Ok(())
}

/// Encoded messages, one after another.
enum Answers {
    Ready(std::vec::IntoIter<Vec<u8>>),
    Listing {
        shared: Arc<Shared>,
        catalog: Arc<Serving>,
        listing: Listing,
        /// The size of the last message, which the next one is likely to have too.
        size: usize,
    },
}

/// How many bytes of an answer are in memory before any of it is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prepared(pub(super) usize);

impl Answers {
    fn in_memory(&self) -> usize {
        match self {
            Self::Ready(messages) => messages.as_slice().iter().map(Vec::len).sum(),
            Self::Listing { .. } => 0,
        }
    }
}

impl Stream for Answers {
    type Item = Result<Vec<u8>, Status>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(match self.get_mut() {
            Self::Ready(messages) => messages.next().map(Ok),
            Self::Listing { shared, catalog, listing, size } => {
                let mut message = Vec::with_capacity(*size);
                match listing.next(&catalog.compiled, &mut message) {
                    Ok(false) => None,
                    Ok(true) => {
                        *size = message.len().min(16 << 10);
                        Some(Ok(message))
                    }
                    Err(error) => Some(Err(damaged(shared, &error))),
                }
            }
        })
    }
}

/// Messages as the bytes they are, for servers and clients that encode and decode them themselves, or not at all.
#[derive(Clone, Copy, Debug)]
pub struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put_slice(&item);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(PIECE, PIECE)
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut message = vec![0; source.remaining()];
        source.copy_to_slice(&mut message);
        Ok(Some(message))
    }
}
