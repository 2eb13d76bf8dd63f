//! To a registry: blobs that it lacks, then manifests, tags last.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::future::try_join_all;
use http_body::{Frame, SizeHint};
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, RANGE};
use reqwest::{Body, Method, RequestBuilder, Response, Url};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::Access;
use super::error::RegistryError;
use super::http::{following, is_page, location, refusal};
use super::pull::CONTENT_DIGEST;
use super::repository::{Repository, Right};
use crate::image::blob::Blob;
use crate::image::digest::Digest;
use crate::image::manifest::Root;
use crate::image::progress::{Direction, Event, Outcome, Progress};

/// Blobs up to this many bytes are sent in one request; a fault costs no more than that.
const WHOLE: u64 = 4 << 20;
/// Larger ones are sent in requests of this many bytes, so that a fault costs no more, and proxies with a bound on
/// requests let them pass.
const CHUNK: u64 = 16 << 20;
/// The header with the least that a registry takes in one request of several.
const CHUNK_MIN_LENGTH: &str = "oci-chunk-min-length";
/// How much of a blob is read at a time, in bytes.
const PIECE: u64 = 128 << 10;

/// How far a push has come: what is left behind when it ends early.
#[derive(Debug, Default)]
pub(in crate::image) struct Pushed {
    blobs: AtomicUsize,
    tags: Mutex<Vec<String>>,
}

impl Pushed {
    /// How many blobs the registry has now.
    pub(in crate::image) fn blobs(&self) -> usize {
        self.blobs.load(Ordering::Relaxed)
    }

    /// The names that lead to the image now.
    pub(in crate::image) fn tags(&self) -> Vec<String> {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether a registry is believed when it says that it has a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Belief {
    Trust,
    Doubt,
}

impl Repository {
    /// Makes these names (tags, or the image's own digest) lead to an image.
    ///
    /// # Guarantees
    /// A manifest is put when everything that it names is there, and a name when the manifest is.
    pub(super) async fn push(
        &self,
        access: &Access,
        root: &Root,
        names: &[String],
        pushed: &Pushed,
    ) -> Result<(), RegistryError> {
        match self.push_once(access, root, names, pushed, Belief::Trust).await {
            // Some registries speak of blobs that they have just thrown away.
            Err(RegistryError::Incomplete { .. }) => {
                self.push_once(access, root, names, pushed, Belief::Doubt).await
            }
            other => other,
        }
    }

    async fn push_once(
        &self,
        access: &Access,
        root: &Root,
        names: &[String],
        pushed: &Pushed,
        belief: Belief,
    ) -> Result<(), RegistryError> {
        let (manifests, blobs): (Vec<&Blob>, Vec<&Blob>) =
            root.blobs().into_iter().partition(|blob| root.is_manifest(blob));
        pushed.blobs.store(0, Ordering::Relaxed);
        let uploads = blobs.iter().map(|blob| async {
            // What went ahead and failed is tried again, and then says why.
            let ahead = self.ahead().remove(&blob.digest());
            let is_there = match ahead {
                Some(task) => matches!(task.await, Ok(Ok(()))),
                None => false,
            };
            if !is_there {
                self.ensure(access, blob, belief).await?;
            }
            pushed.blobs.fetch_add(1, Ordering::Relaxed);
            Ok::<_, RegistryError>(())
        });
        try_join_all(uploads).await?;
        if access.is_dry_run() {
            return Ok(());
        }
        let top = root.top();
        let children = manifests.into_iter().filter(|manifest| manifest.digest() != top.digest());
        try_join_all(children.map(|child| async {
            let _turn = access.turn().await;
            self.put_manifest(child, &child.digest().to_string()).await
        }))
        .await?;
        for name in names {
            self.put_manifest(top, name).await?;
            self.check_stored(top, name).await?;
            let separator = if name.contains(':') { '@' } else { ':' };
            let reference = format!("{}/{}{separator}{name}", self.host(), self.name);
            self.progress.happened(&Event::Tagged { reference: &reference });
            pushed.tags.lock().unwrap_or_else(PoisonError::into_inner).push(reference);
        }
        Ok(())
    }

    /// Starts to send a blob of an image that is not yet complete.
    pub(super) fn send_ahead(self: &Arc<Self>, access: &Access, runtime: &Runtime, blob: &Blob) {
        let (this, access, sent) = (Arc::clone(self), access.clone(), blob.clone());
        let task = runtime.spawn(async move { this.ensure(&access, &sent, Belief::Trust).await });
        self.ahead().insert(blob.digest(), task);
    }

    fn ahead(&self) -> MutexGuard<'_, HashMap<Digest, JoinHandle<Result<(), RegistryError>>>> {
        // Tasks are inserted whole, so a panic elsewhere leaves none half made.
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes sure that a blob is there. Looking for it, fetching it and sending it take a turn each, one after the other.
    async fn ensure(&self, access: &Access, blob: &Blob, belief: Belief) -> Result<(), RegistryError> {
        let outcome = match self.find(access, blob, belief).await? {
            Some(outcome) => outcome,
            None => {
                self.make_sound(blob).await?;
                self.upload(access, blob, belief).await?;
                Outcome::Uploaded
            }
        };
        self.progress.happened(&Event::Ended { digest: blob.digest(), size: blob.size(), outcome });
        Ok(())
    }

    /// What makes sending a blob unnecessary, if anything does.
    async fn find(
        &self,
        access: &Access,
        blob: &Blob,
        belief: Belief,
    ) -> Result<Option<Outcome>, RegistryError> {
        let _turn = access.turn().await;
        if belief == Belief::Trust && self.has_blob(blob).await? {
            return Ok(Some(Outcome::Exists));
        }
        if access.is_dry_run() {
            return Ok(Some(Outcome::WouldUpload));
        }
        if let Some(from) = blob.origin().filter(|from| self.is_beside(from))
            && self.mount(blob.digest(), &from.name).await?
        {
            return Ok(Some(Outcome::Mounted));
        }
        Ok(None)
    }

    /// Sends a blob whose bytes are at hand.
    async fn upload(&self, access: &Access, blob: &Blob, belief: Belief) -> Result<(), RegistryError> {
        let _turn = access.turn().await;
        let (digest, size) = (blob.digest(), blob.size());
        self.progress.happened(&Event::Started { digest, size, direction: Direction::Up });
        let sending = tokio::sync::Mutex::new(Sending { upload: None, chunk: CHUNK });
        let attempt = || async { self.send_blob(blob, belief, &mut *sending.lock().await).await };
        let sent = self.http().retry(attempt).await;
        if sent.is_err()
            && let Some(upload) = sending.into_inner().upload
        {
            self.forget(&upload.location).await;
        }
        sent
    }

    fn is_beside(&self, other: &Repository) -> bool {
        self.host() == other.host() && self.name != other.name
    }

    async fn has_blob(&self, blob: &Blob) -> Result<bool, RegistryError> {
        let digest = blob.digest();
        let url = self.url(&format!("blobs/{digest}")).await?;
        let attempt = || async {
            let response = following(&url, |url| async move {
                self.send(Right::Push, Method::HEAD, &url, |request| request).await
            })
            .await?;
            let is_elsewhere = *response.url() != url;
            match response.status().as_u16() {
                404 => Ok(false),
                200 => {
                    let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok());
                    let length = header(CONTENT_LENGTH.as_str()).and_then(|text| text.parse::<u64>().ok());
                    let named = header(CONTENT_DIGEST).and_then(|text| text.parse::<Digest>().ok());
                    // What is not this blob is as good as nothing.
                    Ok(named.is_none_or(|named| named == digest)
                        && length.is_none_or(|length| length == blob.size()))
                }
                // It is somewhere else, which answers a GET only: storage with signed addresses.
                400 | 401 | 403 | 405 if is_elsewhere => Ok(true),
                _ => Err(self.refused(Right::Push, refusal(response).await, "such repository").await),
            }
        };
        self.http().retry(attempt).await
    }

    /// Asks the registry to take a blob from another of its repositories. Where it does not, for whatever reason, the
    /// blob can still be sent.
    async fn mount(&self, digest: Digest, from: &str) -> Result<bool, RegistryError> {
        let mut url = self.url("blobs/uploads/").await?;
        url.query_pairs_mut().append_pair("mount", &digest.to_string()).append_pair("from", from);
        let empty = |request: RequestBuilder| request.header(CONTENT_LENGTH, 0);
        let Ok(response) = self.send(Right::Mount(from), Method::POST, &url, empty).await else {
            return Ok(false);
        };
        if response.status().as_u16() == 202
            && let Ok(location) = location(&response, &url)
        {
            // It has opened an upload instead, which nobody will go on with.
            self.forget(&location).await;
        }
        Ok(response.status().as_u16() == 201)
    }

    /// Gets a blob's bytes here, and checks those that come from a file: what is built was hashed while it was built.
    async fn make_sound(&self, blob: &Blob) -> Result<(), RegistryError> {
        blob.fetch().await?;
        let checked = blob.clone();
        match tokio::task::spawn_blocking(move || checked.verify_if_on_disk()).await {
            Ok(verified) => Ok(verified.map_err(Box::new)?),
            Err(error) => Err(RegistryError::Start { source: io::Error::other(error) }),
        }
    }

    /// One attempt to send a blob. Goes on with the upload that an earlier one has left, if there is one. A registry that
    /// loses an upload may be one that does not take blobs in parts, so that it gets all at once from then on.
    async fn send_blob(
        &self,
        blob: &Blob,
        belief: Belief,
        sending: &mut Sending,
    ) -> Result<(), RegistryError> {
        let mut upload = match sending.upload.take() {
            None => self.open_upload(sending.chunk).await?,
            Some(left) => match self.resume(&left, blob.size()).await {
                Ok(Some(upload)) => upload,
                // Perhaps all went well and only the registry's last word was lost.
                Ok(None) if belief == Belief::Trust && self.has_blob(blob).await? => return Ok(()),
                Ok(None) => self.open_upload(sending.chunk).await?,
                Err(error) => {
                    // It was not heard what has become of it: the next attempt asks again.
                    sending.upload = Some(left);
                    return Err(error);
                }
            },
        };
        let sent = async {
            if blob.size() > WHOLE {
                while upload.offset < blob.size() {
                    self.send_chunk(blob, &mut upload).await?;
                }
            }
            self.close_upload(blob, &upload).await
        }
        .await;
        match &sent {
            Err(RegistryError::UploadLost { .. } | RegistryError::Damaged { .. }) => sending.chunk = u64::MAX,
            Err(_) => sending.upload = Some(upload),
            Ok(()) => {}
        }
        sent
    }

    async fn open_upload(&self, chunk: u64) -> Result<Upload, RegistryError> {
        let url = self.url("blobs/uploads/").await?;
        let empty = |request: RequestBuilder| request.header(CONTENT_LENGTH, 0);
        let response = self.send(Right::Push, Method::POST, &url, empty).await?;
        if is_page(&response) {
            return Err(RegistryError::WebPage { host: self.host().into() });
        }
        if response.status().as_u16() != 202 {
            return Err(self.refused(Right::Push, refusal(response).await, "such repository").await);
        }
        let least =
            response.headers().get(CHUNK_MIN_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        Ok(Upload { location: location(&response, &url)?, offset: 0, chunk: chunk.max(least.unwrap_or(0)) })
    }

    /// Asks how much of an upload has arrived; `None` when it has to be opened anew.
    async fn resume(&self, left: &Upload, size: u64) -> Result<Option<Upload>, RegistryError> {
        let response = self.send(Right::Push, Method::GET, &left.location, |request| request).await?;
        let arrived = arrived(response.headers()).filter(|arrived| *arrived <= size);
        Ok(match arrived {
            Some(offset) if response.status().is_success() && size > WHOLE => Some(Upload {
                location: location(&response, &left.location).unwrap_or_else(|_| left.location.clone()),
                offset,
                chunk: left.chunk,
            }),
            _ => {
                self.forget(&left.location).await;
                None
            }
        })
    }

    async fn send_chunk(&self, blob: &Blob, upload: &mut Upload) -> Result<(), RegistryError> {
        let Upload { location: ref url, offset, chunk } = *upload;
        let end = blob.size().min(offset.saturating_add(chunk));
        let is_whole = offset == 0 && end == blob.size();
        let chunk = |request: RequestBuilder| {
            let request = self.with_bytes(request, blob, offset, end);
            if is_whole { request } else { request.header(CONTENT_RANGE, format!("{offset}-{}", end - 1)) }
        };
        let response = self.send(Right::Push, Method::PATCH, url, chunk).await?;
        if !response.status().is_success() {
            return Err(self.upload_refused(response).await);
        }
        let arrived = arrived(response.headers()).unwrap_or(end);
        // Less than all is progress too, but not just any: a byte at a time would never end.
        if arrived > end || arrived < end.min(offset.saturating_add(PIECE)) {
            let problem = format!("it has {arrived} bytes of {end} that were sent");
            return Err(RegistryError::UploadLost { host: self.host().into(), message: problem });
        }
        *upload = Upload { location: location(&response, url)?, offset: arrived, ..*upload };
        Ok(())
    }

    /// Sends what is left and says which digest it all has, which the registry checks.
    async fn close_upload(&self, blob: &Blob, upload: &Upload) -> Result<(), RegistryError> {
        let mut url = upload.location.clone();
        url.query_pairs_mut().append_pair("digest", &blob.digest().to_string());
        let rest = |request| self.with_bytes(request, blob, upload.offset, blob.size());
        let response = self.send(Right::Push, Method::PUT, &url, rest).await?;
        if !response.status().is_success() {
            return Err(self.upload_refused(response).await);
        }
        self.check_named(&response, blob.digest())
    }

    /// A part of a blob, as bytes of no particular type.
    fn with_bytes(&self, request: RequestBuilder, blob: &Blob, start: u64, end: u64) -> RequestBuilder {
        self.with_body(request.header(CONTENT_TYPE, "application/octet-stream"), blob, start, end)
    }

    fn with_body(&self, request: RequestBuilder, blob: &Blob, start: u64, end: u64) -> RequestBuilder {
        let bytes = Bytes { blob: blob.clone(), position: start, end, progress: Arc::clone(&self.progress) };
        request.header(CONTENT_LENGTH, end - start).body(Body::wrap(bytes))
    }

    /// Registries forget uploads by themselves, later; so it does not matter whether this one listens.
    async fn forget(&self, location: &Url) {
        let _ = self.send(Right::Push, Method::DELETE, location, |request| request).await;
    }

    /// What a refusal in the middle of an upload means: most say that the registry does not know it any more, or that
    /// something else arrived than was sent.
    async fn upload_refused(&self, response: Response) -> RegistryError {
        let refusal = refusal(response).await;
        match refusal.status.as_u16() {
            _ if refusal.says("DIGEST_INVALID") => {
                RegistryError::Damaged { host: refusal.host, message: refusal.message }
            }
            400 | 404 | 409 | 416 => {
                RegistryError::UploadLost { host: refusal.host, message: refusal.message }
            }
            _ => self.refused(Right::Push, refusal, "such repository").await,
        }
    }

    async fn put_manifest(&self, manifest: &Blob, name: &str) -> Result<(), RegistryError> {
        let url = self.url(&format!("manifests/{name}")).await?;
        let with = |request: RequestBuilder| {
            let request = request.header(CONTENT_TYPE, manifest.media_type().to_string());
            self.with_body(request, manifest, 0, manifest.size())
        };
        let attempt = || async {
            let response = self.send(Right::Push, Method::PUT, &url, with).await?;
            if response.status().is_success() {
                return self.check_named(&response, manifest.digest());
            }
            let refusal = refusal(response).await;
            if ["MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN", "MANIFEST_UNKNOWN"]
                .iter()
                .any(|code| refusal.says(code))
            {
                return Err(RegistryError::Incomplete { host: refusal.host });
            }
            Err(self.refused(Right::Push, refusal, "such repository").await)
        };
        self.http().retry(attempt).await
    }

    /// Some say that they took a manifest, and did not: proxies and login pages among them. Those that refuse to answer are
    /// believed.
    async fn check_stored(&self, manifest: &Blob, name: &str) -> Result<(), RegistryError> {
        let url = self.url(&format!("manifests/{name}")).await?;
        let accept = manifest.media_type().to_string();
        let with = |request: RequestBuilder| request.header(ACCEPT, &accept);
        let attempt = || async {
            let response = self.send(Right::Push, Method::HEAD, &url, with).await?;
            let not_stored = |problem: String| {
                let (host, name) = (self.host().into(), format!("{}:{name}", self.name));
                Err(RegistryError::NotStored { host, name, problem })
            };
            let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok());
            match response.status().as_u16() {
                404 => not_stored("it is not found".into()),
                200 => match header(CONTENT_DIGEST) {
                    Some(found) if found == manifest.digest().to_string() => Ok(()),
                    Some(found) => not_stored(format!("it has the digest `{}`", found.escape_debug())),
                    None => match header(CONTENT_TYPE.as_str()) {
                        Some(kind) if kind.starts_with("text/") => {
                            not_stored(format!("`{}` is there instead", kind.escape_debug()))
                        }
                        _ => Ok(()),
                    },
                },
                408 | 429 | 500.. => Err(refusal(response).await.into()),
                _ => Ok(()),
            }
        };
        self.http().retry(attempt).await
    }

    /// Registries say by which digest they know what they were sent.
    fn check_named(&self, response: &Response, expected: Digest) -> Result<(), RegistryError> {
        let named = response.headers().get(CONTENT_DIGEST).and_then(|value| value.to_str().ok());
        match named.map(str::parse::<Digest>) {
            None => Ok(()),
            Some(Ok(found)) if found == expected => Ok(()),
            Some(found) => {
                let found = found.map_or("no digest".into(), |found| format!("`{found}`"));
                let found = format!("stored the content as {found}");
                Err(RegistryError::Corrupted { host: self.host().into(), expected, found })
            }
        }
    }
}

/// What the attempts to send a blob pass on to each other.
struct Sending {
    /// The upload that the last one has left open.
    upload: Option<Upload>,
    /// How many bytes are sent at once.
    chunk: u64,
}

/// An upload that the registry has opened.
struct Upload {
    location: Url,
    /// How many bytes have arrived.
    offset: u64,
    /// How many are sent at once.
    chunk: u64,
}

/// How many bytes have arrived, by the registry's word. `0-0` is said of one byte, and by some of none: not known.
fn arrived(headers: &HeaderMap) -> Option<u64> {
    let (start, end) = headers.get(RANGE)?.to_str().ok()?.trim_start_matches("bytes=").split_once('-')?;
    let end = end.parse::<u64>().ok().filter(|end| start == "0" && *end > 0)?;
    end.checked_add(1)
}

/// A part of a blob as the body of a request.
struct Bytes {
    blob: Blob,
    position: u64,
    end: u64,
    progress: Arc<dyn Progress>,
}

impl http_body::Body for Bytes {
    type Data = bytes::Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<bytes::Bytes>>>> {
        if self.position >= self.end {
            return Poll::Ready(None);
        }
        // From memory, or a small part of a file that was read through just before.
        let piece = self.blob.piece(self.position, PIECE.min(self.end - self.position));
        if let Ok(piece) = &piece {
            self.position += piece.len() as u64;
            self.progress.happened(&Event::Moved { digest: self.blob.digest(), bytes: self.position });
        }
        Poll::Ready(Some(piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.position >= self.end
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.end - self.position)
    }
}
