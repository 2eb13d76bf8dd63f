//! From a registry: manifests, and blobs that are checked as they arrive and kept by their digest.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;
use oci_spec::image::{Descriptor, MediaType};
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderValue, RANGE};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::cache::{Cache, Incoming};
use super::error::RegistryError;
use super::http::{body, is_page, malformed, piece, refusal};
use super::repository::{Repository, Right};
use crate::image::blob::{Blob, Local};
use crate::image::digest::{Digest, Hashing};
use crate::image::media_types::{MAX_CONFIGURATION, MAX_MANIFEST, READABLE, is_manifest};
use crate::image::progress::{Direction, Event, Outcome};

/// The header with the digest of a manifest or a blob.
pub(super) const CONTENT_DIGEST: &str = "docker-content-digest";

/// A blob of a repository that is fetched when its bytes are needed.
pub(in crate::image) struct Remote {
    repository: Arc<Repository>,
    access: super::Access,
    digest: Digest,
    size: u64,
    local: OnceCell<Local>,
}

impl Remote {
    pub(super) fn blob(
        access: &super::Access,
        repository: &Arc<Repository>,
        named: &Descriptor,
    ) -> Option<Blob> {
        let digest = Digest::try_from(named.digest()).ok()?;
        let remote = Self {
            repository: Arc::clone(repository),
            access: access.clone(),
            digest,
            size: named.size(),
            local: OnceCell::new(),
        };
        Some(Blob::remote(named.media_type().clone(), digest, named.size(), remote))
    }

    /// Where it is.
    pub(in crate::image) fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The bytes on this machine; waits for them.
    pub(in crate::image) fn wait(&self) -> Result<&Local, RegistryError> {
        match self.local.get() {
            Some(local) => Ok(local),
            None => self.access.run(self.fetch()),
        }
    }

    /// Gets the bytes, from the cache or from the registry.
    pub(in crate::image) async fn fetch(&self) -> Result<&Local, RegistryError> {
        let fetch = || async {
            let cache = self.access.cache()?;
            let _turn = self.access.turn().await;
            self.repository.fetch(cache, self.digest, self.size).await.map(Local::from)
        };
        self.local.get_or_try_init(fetch).await
    }

    /// Gets the bytes of several blobs at once. What is here already is left out.
    pub(in crate::image) fn fetch_all(remotes: &[&Remote]) -> Result<(), RegistryError> {
        let missing: Vec<&Remote> =
            remotes.iter().copied().filter(|remote| remote.local.get().is_none()).collect();
        let Some(first) = missing.first() else { return Ok(()) };
        first.access.run(async {
            let all = missing.iter().map(|remote| async { remote.fetch().await.map(drop) });
            try_join_all(all).await.map(drop)
        })
    }
}

impl Repository {
    /// A manifest or index by tag or digest: its descriptor and its bytes.
    ///
    /// # Errors
    /// There is none, or it is not what its digest promises.
    pub(super) async fn manifest(&self, reference: &str) -> Result<Blob, RegistryError> {
        let url = self.url(&format!("manifests/{reference}")).await?;
        let accept = accepted();
        let attempt = || async {
            let response = self.read(Method::GET, &url, &accept).await?;
            if !response.status().is_success() {
                let what = format!("image `{}:{reference}`", self.name).replace(":sha256:", "@sha256:");
                return Err(self.refused(Right::Pull, refusal(response).await, &what).await);
            }
            if is_page(&response) {
                return Err(RegistryError::WebPage { host: self.host().into() });
            }
            let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
            let promised = header(CONTENT_DIGEST).and_then(|digest| digest.parse::<Digest>().ok());
            let media_type = header(CONTENT_TYPE.as_str())
                .and_then(|text| text.split(';').next())
                .map(|text| text.trim().to_owned());
            let bytes = body(response, MAX_MANIFEST).await?;
            let blob = Blob::from_bytes(media_type_of(media_type, &bytes), bytes.into());
            let asked = reference.parse::<Digest>().ok();
            match asked.or(promised) {
                Some(expected) if expected != blob.digest() => Err(RegistryError::Corrupted {
                    host: self.host().into(),
                    expected,
                    found: format!("sent content with digest `{}`", blob.digest()),
                }),
                _ => Ok(blob),
            }
        };
        self.http().retry(attempt).await
    }

    /// A blob's bytes, from the cache or from the registry, in an open file.
    async fn fetch(&self, cache: &Cache, digest: Digest, size: u64) -> Result<File, RegistryError> {
        let kept = cache.clone();
        // Reads the whole file to check it.
        let found = tokio::task::spawn_blocking(move || kept.get(digest, size)).await;
        if let Ok(Some(file)) = found {
            self.progress.happened(&Event::Ended { digest, size, outcome: Outcome::Cached });
            return Ok(file);
        }
        self.progress.happened(&Event::Started { digest, size, direction: Direction::Down });
        let partial = tokio::sync::Mutex::new(None);
        let attempt = || async { self.receive(cache, digest, size, &mut *partial.lock().await).await };
        let file = self.http().retry(attempt).await?;
        self.progress.happened(&Event::Ended { digest, size, outcome: Outcome::Downloaded });
        Ok(file)
    }

    /// One attempt to receive a blob; goes on where the last one broke off, when the registry can.
    async fn receive(
        &self,
        cache: &Cache,
        digest: Digest,
        size: u64,
        partial: &mut Option<Partial>,
    ) -> Result<File, RegistryError> {
        let url = self.url(&format!("blobs/{digest}")).await?;
        let start = partial.as_ref().map_or(0, |partial| partial.bytes);
        let mut headers = HeaderMap::new();
        if start > 0
            && start < size
            && let Ok(range) = HeaderValue::from_str(&format!("bytes={start}-"))
        {
            headers.insert(RANGE, range);
        }
        let response = self.read(Method::GET, &url, &headers).await?;
        let status = response.status();
        if !status.is_success() {
            *partial = None;
            let what = format!("blob `{digest}` in `{}`", self.name);
            return Err(self.refused(Right::Pull, refusal(response).await, &what).await);
        }
        let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
        let goes_on = status.as_u16() == 206
            && range.is_some_and(|range| range.starts_with(&format!("bytes {start}-")));
        if status.as_u16() == 206 && !goes_on {
            *partial = None;
            return Err(malformed(&url, "it returned a different range than requested"));
        }
        if !goes_on || partial.is_none() {
            *partial = Some(Partial { file: Hashing::new(self.incoming(cache)?), bytes: 0 });
        }
        let Some(taken) = partial.as_mut() else { return Err(malformed(&url, "it sends nothing")) };

        let mut response = response;
        while let Some(bytes) = piece(&mut response).await? {
            taken.bytes += bytes.len() as u64;
            if taken.bytes > size {
                *partial = None;
                let found = format!("sent more than {size} bytes");
                return Err(RegistryError::Corrupted { host: self.host().into(), expected: digest, found });
            }
            let path = || cache.temporary_dir();
            taken.file.write_all(&bytes).map_err(|source| RegistryError::Keep { path: path(), source })?;
            self.progress.happened(&Event::Moved { digest, bytes: taken.bytes });
        }
        if taken.bytes < size {
            // The next attempt goes on from here.
            let found = format!("sent {} of {size} bytes", taken.bytes);
            return Err(RegistryError::Corrupted { host: self.host().into(), expected: digest, found });
        }
        let Some(Partial { file, .. }) = partial.take() else {
            return Err(malformed(&url, "it sends nothing"));
        };
        let (incoming, found, _) = file.finish();
        if found != digest {
            let found = format!("sent content with digest `{found}`");
            return Err(RegistryError::Corrupted { host: self.host().into(), expected: digest, found });
        }
        let mut file = cache.keep(incoming, digest);
        let rewound = file.seek(SeekFrom::Start(0));
        rewound.map_err(|source| RegistryError::Keep { path: cache.temporary_dir(), source })?;
        Ok(file)
    }

    fn incoming(&self, cache: &Cache) -> Result<Incoming, RegistryError> {
        cache.incoming().map_err(|source| RegistryError::Keep { path: cache.temporary_dir(), source })
    }
}

/// A blob that has arrived in part.
struct Partial {
    file: Hashing<Incoming>,
    bytes: u64,
}

/// The header with the kinds of manifests that are read.
pub(super) fn accepted() -> HeaderMap {
    // One field of words that are all ASCII: some registries read no second one.
    HeaderValue::from_str(&READABLE.join(", ")).into_iter().map(|kinds| (ACCEPT, kinds)).collect()
}

/// A document's own word for what it is counts for registries that say nothing, or only "JSON".
fn media_type_of(header: Option<String>, bytes: &Bytes) -> MediaType {
    if let Some(text) = header.filter(|text| text.contains('.')) {
        return text.as_str().into();
    }
    let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
    match document["mediaType"].as_str() {
        Some(text) => text.into(),
        None if document["manifests"].is_array() => MediaType::ImageIndex,
        None => MediaType::ImageManifest,
    }
}

/// What a document names that has to be read to understand an image: the manifests of an index, the configuration of a
/// manifest, not layers.
pub(super) fn documents_of(document: &Blob) -> Vec<Descriptor> {
    let Ok(bytes) = document.read(MAX_MANIFEST) else { return Vec::new() };
    let Ok(content) = serde_json::from_slice::<Value>(&bytes) else { return Vec::new() };
    let named = if is_manifest(document.media_type()) {
        content.get("config").into_iter().collect::<Vec<_>>()
    } else {
        content["manifests"].as_array().into_iter().flatten().collect()
    };
    named.into_iter().filter_map(|named| serde_json::from_value::<Descriptor>(named.clone()).ok()).collect()
}

/// The most bytes of a configuration that are read.
pub(super) fn is_small(named: &Descriptor) -> bool {
    named.size() <= MAX_CONFIGURATION
}
