//! A registry+v1 bundle as plain manifests: the objects that OLM v1 applies, so that a bundle installs without OLM.
//!
//! They are what operator-controller renders (`internal/operator-controller/rukpak/render`), object by object and in its
//! order, and a bundle is refused where it refuses it. Start at [`render`].

mod checks;
mod config;
mod go;
mod names;
mod notes;
mod objects;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use crate::load::BundleFiles;

pub(crate) use config::apply as apply_config;
pub use notes::{lacks_own_leases, unsound};

/// Who issues the certificates of a bundle's webhooks.
#[derive(Clone, Debug)]
pub enum Certificates {
    /// cert-manager: an Issuer and a Certificate for each Deployment with webhooks.
    CertManager,
    /// OpenShift's service CA, told by annotations.
    ServiceCa,
    /// Certificates that are brought along, by the Service they are for, as [`webhook_services`] lists them.
    Given(BTreeMap<String, Certificate>),
}

/// A certificate with its key, in PEM.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The authority that clients trust.
    pub authority: String,
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// How a bundle is to be installed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Where the operator runs.
    pub namespace: String,
    /// The one namespace that it watches; all when none is given.
    pub watch_namespace: Option<String>,
    /// Who issues certificates; bundles with webhooks are refused without.
    pub certificates: Option<Certificates>,
    /// What a ClusterExtension has in `spec.config.inline`.
    pub config: Option<Json>,
}

impl Options {
    /// An operator that runs in a namespace and watches all.
    pub fn new(namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), ..Self::default() }
    }
}

/// A bundle that OLM v1 would not install.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RenderError {
    /// The namespace is not one.
    #[error("`{name}` is not the name of a namespace")]
    Namespace {
        /// What was given.
        name: String,
    },
    /// A file cannot be read.
    #[error("cannot read `{path}`: {why}")]
    Unreadable {
        /// The file, below the bundle's directory.
        path: String,
        /// Why.
        why: String,
    },
    /// There is no `metadata/annotations.yaml`.
    #[error("the bundle has no `metadata/annotations.yaml`")]
    NoAnnotations,
    /// There is no `manifests/`.
    #[error("the bundle has no directory `manifests`")]
    NoManifests,
    /// A directory in `manifests/`.
    #[error("`{path}` is a directory: OLM v1 accepts only files")]
    Subdirectory {
        /// The directory.
        path: String,
    },
    /// No ClusterServiceVersion.
    #[error("the bundle has no ClusterServiceVersion")]
    NoCsv,
    /// The properties cannot be read.
    #[error("cannot read the properties in {path}: {why}")]
    Properties {
        /// Where they are.
        path: String,
        /// Why.
        why: String,
    },
    /// It brings aggregated APIs.
    #[error("the bundle owns APIServices, which OLM v1 does not support")]
    ApiServices,
    /// It has webhooks, and nobody issues certificates.
    #[error("the bundle has webhooks, and no issuer of certificates is given")]
    NoCertificates,
    /// None of the install modes can be had.
    #[error("the bundle supports none of the install modes AllNamespaces, SingleNamespace and OwnNamespace")]
    InstallModes,
    /// The configuration does not fit the bundle.
    #[error("invalid configuration: {}", .0.join("; "))]
    Configuration(Vec<String>),
    /// The namespace to watch and the configuration say different things.
    #[error("`--watch-namespace {watched}` contradicts the configuration: {said}")]
    Contradiction {
        /// The namespace to watch.
        watched: String,
        /// What the configuration says.
        said: String,
    },
    /// The bundle contradicts itself.
    #[error("{}", .0.join("; "))]
    Invalid(Vec<String>),
    /// A converted CRD keeps unknown fields.
    #[error("a webhook converts the CRD `{name}`, which has `preserveUnknownFields: true`")]
    PreservesUnknownFields {
        /// The CRD.
        name: String,
    },
    /// A certificate is missing.
    #[error("no certificate for the Service `{service}` is given")]
    NoCertificate {
        /// The Service.
        service: String,
    },
}

impl RenderError {
    fn unreadable(path: &str, why: impl Into<String>) -> Self {
        Self::Unreadable { path: path.to_owned(), why: why.into() }
    }

    /// The way out, where it is not to change the bundle: rules of the suites `olm` and `olm-v1` say where that is wrong.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::Namespace { .. } => "use lower-case letters, digits and `-`, at most 63 characters",
            Self::NoCertificates => "pass --webhook-certs cert-manager, service-ca or self-signed",
            Self::Configuration(_) => {
                "pass --watch-namespace as the install modes allow it, and check --config"
            }
            Self::Contradiction { .. } => "pass one of the two",
            Self::PreservesUnknownFields { .. } => "set `spec.preserveUnknownFields: false`",
            _ => return None,
        })
    }
}

/// The objects that OLM v1 applies for a bundle, in its order.
///
/// # Errors
/// When OLM v1 refuses the bundle, or the configuration for it.
pub fn render(files: &BundleFiles, options: &Options) -> Result<Vec<Json>, RenderError> {
    let files = source::Files::read(files)?;
    let parts = files.parts()?;
    for name in [Some(&options.namespace), options.watch_namespace.as_ref()].into_iter().flatten() {
        if !config::is_namespace(name) {
            return Err(RenderError::Namespace { name: name.clone() });
        }
    }
    let spec = &parts.csv.spec;
    if !spec.api_service_definitions.owned.is_empty() {
        return Err(RenderError::ApiServices);
    }
    if !spec.webhook_definitions.is_empty() && options.certificates.is_none() {
        return Err(RenderError::NoCertificates);
    }
    let modes: BTreeSet<String> =
        spec.install_modes.iter().filter(|mode| mode.supported).map(|mode| mode.kind.clone()).collect();
    if !["AllNamespaces", "SingleNamespace", "OwnNamespace"].iter().any(|mode| modes.contains(*mode)) {
        return Err(RenderError::InstallModes);
    }
    let inline = inline(options)?;
    let configuration =
        config::read(inline.as_ref(), &modes, &options.namespace).map_err(RenderError::Configuration)?;
    let problems = checks::problems(&parts, &modes);
    if !problems.is_empty() {
        return Err(RenderError::Invalid(problems));
    }
    objects::Renderer { parts: &parts, options, configuration: &configuration }.objects()
}

/// The variable that tells most operators which namespaces to watch.
const WATCH_NAMESPACE: &str = "WATCH_NAMESPACE";

/// The configuration with the namespace to watch, which a flag and a file may say alike.
fn inline(options: &Options) -> Result<Option<Json>, RenderError> {
    let Some(watched) = &options.watch_namespace else { return Ok(options.config.clone()) };
    let mut config = options.config.clone().unwrap_or_else(|| Json::Object(serde_json::Map::new()));
    let contradicts = |said: String| Err(RenderError::Contradiction { watched: watched.clone(), said });
    for variable in config.pointer("/deploymentConfig/env").and_then(Json::as_array).into_iter().flatten() {
        let (name, value) = (variable["name"].as_str(), variable["value"].as_str());
        if let (Some(WATCH_NAMESPACE), Some(value)) = (name, value)
            && value != watched
        {
            return contradicts(format!("it sets the variable `{WATCH_NAMESPACE}` to `{value}`"));
        }
    }
    if let Some(map) = config.as_object_mut() {
        match map.get("watchNamespace") {
            Some(Json::String(other)) if other != watched => {
                return contradicts(format!("its `watchNamespace` is `{other}`"));
            }
            None | Some(Json::Null) => {
                map.insert("watchNamespace".to_owned(), Json::from(watched.as_str()));
            }
            // The same, or not a name, which is refused below.
            Some(_) => {}
        }
    }
    Ok(Some(config))
}

/// A part of a pod in the one form that Kubernetes gives it, so that equal ones are equal.
pub(crate) fn canonical_pod(part: Json) -> Json {
    go::pod(part)
}

/// The Services that a bundle's webhooks get, for which certificates are needed.
///
/// # Errors
/// When the bundle cannot be read.
pub fn webhook_services(files: &BundleFiles) -> Result<BTreeSet<String>, RenderError> {
    let files = source::Files::read(files)?;
    let webhooks = files.parts()?.csv.spec.webhook_definitions;
    Ok(webhooks.iter().map(|webhook| names::service(&webhook.deployment_name)).collect())
}
