//! What many names lead to, with as few requests as that takes.

use futures_util::stream::{self, StreamExt as _};
use oci_spec::distribution::Reference;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;

use super::error::RegistryError;
use super::pull::{CONTENT_DIGEST, accepted};
use super::repository::Repository;
use super::{Access, LoadError, name_of};
use crate::image::digest::Digest;
use crate::image::manifest::{check_readable, listed_platforms};
use crate::image::media_types::READABLE;
use crate::image::platform::Platform;

impl Access {
    /// The digest of each reference, in their order.
    pub(in crate::image) fn digests(
        &self,
        references: &[&Reference],
    ) -> Result<Vec<Result<Digest, LoadError>>, RegistryError> {
        let digest = async |reference: &Reference| match reference.digest().map(str::parse) {
            Some(Ok(digest)) => Ok(digest),
            _ => self.repository(reference).digest_of(name_of(reference)).await,
        };
        self.each(references, digest)
    }

    /// Whether there is something behind each reference, in their order; one with a digest is asked for too.
    pub(in crate::image) fn present(
        &self,
        references: &[&Reference],
    ) -> Result<Vec<Result<(), LoadError>>, RegistryError> {
        let present = async |reference: &Reference| {
            self.repository(reference).digest_of(name_of(reference)).await.map(drop)
        };
        self.each(references, present)
    }

    /// The platforms of each reference, in their order.
    pub(in crate::image) fn platforms(
        &self,
        references: &[&Reference],
    ) -> Result<Vec<Result<Vec<Platform>, LoadError>>, RegistryError> {
        let platforms = async |reference: &Reference| {
            let repository = self.repository(reference);
            let top = repository.manifest(name_of(reference)).await?;
            match listed_platforms(&top) {
                Some(platforms) => Ok(platforms),
                None => Ok(self.root_of(&repository, top).await?.platforms()),
            }
        };
        self.each(references, platforms)
    }

    fn each<T>(
        &self,
        references: &[&Reference],
        ask: impl AsyncFn(&Reference) -> Result<T, LoadError>,
    ) -> Result<Vec<Result<T, LoadError>>, RegistryError> {
        let asked = stream::iter(references).map(|reference| ask(reference));
        self.run(async { Ok(asked.buffered(self.parallel()).collect().await) })
    }
}

impl Repository {
    /// The digest that a tag leads to. Registries that do not say so to who asks for the head are asked for the whole,
    /// which also makes them say why.
    async fn digest_of(&self, tag: &str) -> Result<Digest, LoadError> {
        let url = self.url(&format!("manifests/{tag}")).await?;
        let accept = accepted();
        let attempt = || async {
            let response = self.read(Method::HEAD, &url, &accept).await?;
            let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
            let is_readable = header(CONTENT_TYPE.as_str()).is_some_and(|kind| READABLE.contains(&kind));
            let digest = header(CONTENT_DIGEST).and_then(|digest| digest.parse().ok());
            Ok(digest.filter(|_| response.status().is_success() && is_readable))
        };
        match self.http().retry(attempt).await? {
            Some(digest) => Ok(digest),
            None => {
                let manifest = self.manifest(tag).await?;
                check_readable(&manifest)?;
                Ok(manifest.digest())
            }
        }
    }
}
