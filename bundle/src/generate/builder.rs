//! Generating from values rather than files: for build scripts and programs that know their CRDs as types.

use std::collections::BTreeMap;

use serde::Serialize;

use super::package::{Attachments, Overrides, Package, Sources};
use super::{Base, Compat, Manifests, PackageFile, Request, generate};
use crate::finding::{Finding, Level};
use crate::names::{ChannelName, PackageName};
use crate::source::Source;
use crate::version::Version;
use crate::yaml::write::{self, WriteError};

/// Collects what a bundle is made of. Everything that serializes as a Kubernetes object can be given: the types of
/// k8s-openapi, and what `CustomResourceExt::crd()` of kube-rs returns.
///
/// ```
/// use olmkit_bundle::generate::Builder;
/// use serde_json::json;
///
/// let bundle = Builder::new("echo".parse()?, "0.1.0".parse()?)
///     .object(&json!({
///         "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "echo"},
///         "spec": {
///             "selector": {"matchLabels": {"app": "echo"}},
///             "template": {
///                 "metadata": {"labels": {"app": "echo"}},
///                 "spec": {"containers": [{"name": "manager", "image": "quay.io/example/echo:v1"}]},
///             },
///         },
///     }))
///     .set("spec.description", "Says it again.")
///     .generate()?;
/// assert!(bundle.files["manifests/echo.clusterserviceversion.yaml"].contains("Says it again."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Builder {
    overrides: Overrides,
    manifests: Vec<(String, String)>,
    samples: Vec<(String, String)>,
    package_file: Option<(String, String)>,
    base: Option<(String, String)>,
    attachments: Attachments,
    compat: Option<Compat>,
    failed: Option<BuildError>,
}

/// A bundle that was built.
#[derive(Debug)]
pub struct Built {
    /// The name of the ClusterServiceVersion.
    pub csv: String,
    /// The files by path, with `/` between.
    pub files: BTreeMap<String, String>,
    /// Warnings and remarks; there are no errors among them.
    pub findings: Vec<Finding>,
}

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A value has no JSON form.
    #[error("object {at} cannot be written as JSON")]
    Json {
        /// Which one was given, from 1.
        at: usize,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A value has no YAML form.
    #[error("object {at} cannot be written as YAML")]
    Yaml {
        /// Which one was given, from 1.
        at: usize,
        /// Why.
        #[source]
        source: WriteError,
    },
    /// The input is at fault.
    #[error("{}", summary(.0))]
    Findings(Vec<Finding>),
}

fn summary(findings: &[Finding]) -> String {
    let errors = findings.iter().filter(|finding| finding.level == Level::Error);
    let lines = errors.map(|finding| match &finding.place {
        Some(place) => format!("{}: {}", place.path, finding.message),
        None => finding.message.clone(),
    });
    lines.collect::<Vec<_>>().join("; ")
}

impl Builder {
    /// A bundle of this version of a package.
    pub fn new(package: PackageName, version: Version) -> Self {
        let overrides = Overrides { package: Some(package), version: Some(version), ..Overrides::default() };
        Self { overrides, ..Self::default() }
    }

    /// Adds a manifest: a CRD, a Deployment, a ClusterRole and so on.
    #[must_use]
    pub fn object(mut self, object: &impl Serialize) -> Self {
        if let Some(named) = self.text(object) {
            self.manifests.push(named);
        }
        self
    }

    /// Adds an example of a custom resource.
    #[must_use]
    pub fn sample(mut self, object: &impl Serialize) -> Self {
        if let Some(named) = self.text(object) {
            self.samples.push(named);
        }
        self
    }

    /// Adds manifests that stand in a text, under the name that findings call it by.
    #[must_use]
    pub fn manifests(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.manifests.push((name.into(), text.into()));
        self
    }

    /// The text of a package file, under the name that findings call it by. Files that it names are not read.
    #[must_use]
    pub fn package_file(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.package_file = Some((name.into(), text.into()));
        self
    }

    /// The content of `icon` and `descriptionFile` of the package file.
    #[must_use]
    pub fn attachments(mut self, attachments: Attachments) -> Self {
        self.attachments = attachments;
        self
    }

    /// The text of a base ClusterServiceVersion.
    #[must_use]
    pub fn base(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.base = Some((name.into(), text.into()));
        self
    }

    /// The channels; `alpha` when there are none.
    #[must_use]
    pub fn channels(mut self, channels: impl IntoIterator<Item = ChannelName>) -> Self {
        self.overrides.channels.extend(channels);
        self
    }

    /// A field of the ClusterServiceVersion, by keys with dots between and positions in brackets. What is no path is passed over.
    #[must_use]
    pub fn set(mut self, path: &str, value: impl Into<serde_json::Value>) -> Self {
        if let Some(path) = super::explain::parse(path) {
            self.overrides.set.push(super::Assignment { path, value: value.into() });
        }
        self
    }

    /// Makes what another tool would make.
    #[must_use]
    pub fn compat(mut self, compat: Compat) -> Self {
        self.compat = Some(compat);
        self
    }

    fn text(&mut self, object: &impl Serialize) -> Option<(String, String)> {
        let at = self.manifests.len() + self.samples.len() + 1;
        let value = serde_json::to_value(object).map_err(|source| BuildError::Json { at, source });
        let text = value
            .and_then(|value| write::to_string(&value).map_err(|source| BuildError::Yaml { at, source }));
        match text {
            Ok(text) => Some((format!("object {at}"), text)),
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }

    /// Generates the bundle.
    ///
    /// # Errors
    /// A value that cannot be written, or findings with an error among them.
    pub fn generate(self) -> Result<Built, BuildError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let file = self
            .package_file
            .as_ref()
            .map(|(name, text)| PackageFile::parse(Source::new(name.as_str(), text)));
        let file = file.transpose().map_err(BuildError::Findings)?;
        let base = Manifests::parse(sources(self.base.as_slice()));
        let base = self.base.as_ref().map(|_| Base::of(&base)).transpose();
        let base = base.map_err(|finding| BuildError::Findings(vec![*finding]))?;
        let known = Sources { file: file.as_ref(), base: base.as_ref(), ..Sources::default() };
        let package =
            Package::resolve(known, self.overrides, self.attachments).map_err(BuildError::Findings)?;
        let manifests = Manifests::parse(sources(&self.manifests)).with_samples(sources(&self.samples));
        let generated = generate(&Request { compat: self.compat, ..Request::new(&package, &manifests) });
        if generated.files.is_empty() {
            return Err(BuildError::Findings(generated.findings));
        }
        Ok(Built { csv: generated.csv, files: generated.files, findings: generated.findings })
    }
}

fn sources(texts: &[(String, String)]) -> Vec<Source<'_>> {
    texts.iter().map(|(name, text)| Source::new(name.as_str(), text)).collect()
}
