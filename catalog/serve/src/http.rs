//! HTTP: the catalog as OLM v1 reads it, metrics, and whether the server is alive and ready.
//!
//! `/api/v1/all` and `/api/v1/metas` are those of catalogd: JSON lines, packed for clients that take gzip, with the time of the last
//! change. A packed answer is as cheap as one that is not, since that is how the blobs are stored.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    LAST_MODIFIED, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use http_body_util::Full;
use tonic::body::Body;

use crate::compiled::{BlobFilter, Blobs};
use crate::{Serving, Shared, report_damage};

/// Answers up to this many bytes are not worth packing; catalogd's limit.
const PACK_FROM: u64 = 1400;

/// Answers a request that is not gRPC, and names it for the metrics.
pub(super) fn answer(shared: &Arc<Shared>, request: &Request<Body>) -> (&'static str, Response<Body>) {
    let path = request.uri().path();
    let known = match path {
        "/api/v1/all" => "all",
        "/api/v1/metas" => "metas",
        "/metrics" => "metrics",
        "/healthz" => "healthz",
        "/readyz" => "readyz",
        _ => return ("other", text(StatusCode::NOT_FOUND, "404 page not found\n")),
    };
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return (known, response);
    }
    let response = match known {
        "all" => catalog(shared, request, &BlobFilter::default()),
        "metas" => match filter(request.uri().query().unwrap_or_default()) {
            Some(filter) => catalog(shared, request, &filter),
            None => text(StatusCode::BAD_REQUEST, "400 Bad Request\n"),
        },
        "metrics" => {
            let mut response = Response::new(Body::new(Full::from(shared.metrics.text())));
            let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        "readyz" if shared.catalog.borrow().is_none() || *shared.ending.borrow() => {
            text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
        }
        _ => text(StatusCode::OK, "ok\n"),
    };
    (known, response)
}

fn text(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::new(Full::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// What a query asks for; nothing when it asks for something that there is not.
fn filter(query: &str) -> Option<BlobFilter> {
    let mut filter = BlobFilter::default();
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let field = match key.as_ref() {
            "schema" => &mut filter.schema,
            "package" => &mut filter.package,
            "name" => &mut filter.name,
            _ => return None,
        };
        // Of several, the first counts, as in Go.
        if field.is_empty() {
            *field = value.into_owned();
        }
    }
    Some(filter)
}

fn catalog(shared: &Arc<Shared>, request: &Request<Body>, filter: &BlobFilter) -> Response<Body> {
    let Some(serving) = shared.catalog() else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "the catalog is not open yet\n");
    };
    let mut headers = HeaderMap::new();
    let digest = serving.compiled.fingerprint().to_hex();
    // Weak, since the packed and the plain answer have the same. Both headers are plain ASCII.
    for (name, value) in [
        (ETAG, format!("W/\"{}\"", &digest[..32])),
        (LAST_MODIFIED, httpdate::fmt_http_date(serving.since)),
        (VARY, "accept-encoding".to_owned()),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    let mut response = if is_known(request.headers(), &headers, serving.since) {
        let mut response = Response::new(Body::default());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        let blobs = match serving.compiled.blobs(filter) {
            Ok(blobs) => blobs,
            Err(error) => {
                report_damage(shared, &error);
                return text(StatusCode::INTERNAL_SERVER_ERROR, "500 Internal Server Error\n");
            }
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
        let pack = blobs.raw_len() > PACK_FROM && takes_gzip(request.headers());
        if pack {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let blobs = if pack { blobs.gzipped() } else { blobs };
        let left = blobs.len();
        // hyper sends the length of a body and leaves it out itself when only the head was asked for.
        Response::new(Body::new(Lines { shared: shared.clone(), serving, blobs, left }))
    };
    response.headers_mut().extend(headers);
    response
}

/// Whether the client has what it would be sent.
fn is_known(asked: &HeaderMap, ours: &HeaderMap, since: SystemTime) -> bool {
    if let Some(tags) = asked.get(IF_NONE_MATCH) {
        // It decides alone when it is there.
        let (Ok(tags), Some(Ok(ours))) = (tags.to_str(), ours.get(ETAG).map(HeaderValue::to_str)) else {
            return false;
        };
        let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        return tags.split(',').any(|tag| tag.trim() == "*" || bare(tag) == bare(ours));
    }
    let asked =
        asked.get(IF_MODIFIED_SINCE).and_then(|since| httpdate::parse_http_date(since.to_str().ok()?).ok());
    // Times in headers are whole seconds.
    asked.is_some_and(|asked| since < asked + Duration::from_secs(1))
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let offers = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    offers.flat_map(|value| value.split(',')).any(|offer| {
        let (coding, parameters) = offer.split_once(';').unwrap_or((offer, ""));
        let refused = parameters.trim().strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0));
        matches!(coding.trim(), "gzip" | "*") && !refused
    })
}

/// Blobs as a body.
struct Lines {
    shared: Arc<Shared>,
    serving: Arc<Serving>,
    blobs: Blobs,
    left: u64,
}

impl http_body::Body for Lines {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let Self { shared, serving, blobs, left } = &mut *self;
        Poll::Ready(match blobs.next(&serving.compiled) {
            Ok(None) => None,
            Ok(Some(piece)) => {
                *left = left.saturating_sub(piece.len() as u64);
                Some(Ok(Frame::data(piece.into())))
            }
            Err(error) => {
                report_damage(shared, &error);
                Some(Err(std::io::Error::other(error)))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
