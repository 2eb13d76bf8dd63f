//! `olmkit bundle manifests`

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::registry::RegistryFlags;
use crate::actions::manifests::{self, Form, Issuer};
use crate::exit::Failure;
use crate::input::Input;
use crate::report::{Answer, Format};

/// Flags of `bundle manifests`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Manifests {
    /// Bundle directory or image
    #[arg(value_name = "BUNDLE")]
    bundle: Input,
    /// Namespace of the operator
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: String,
    /// Namespace for the operator to watch [default: all]
    #[arg(long, value_name = "NAMESPACE")]
    watch_namespace: Option<String>,
    /// Issuer of the certificates of the bundle's webhooks
    #[arg(long, value_name = "ISSUER")]
    webhook_certs: Option<IssuerFlag>,
    /// File with the settings of a ClusterExtension's `spec.config.inline`: `watchNamespace` and `deploymentConfig`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Format of the manifests
    #[arg(long, value_name = "FORMAT", default_value = "yaml")]
    format: FormFlag,
    /// Write a kustomization with a file for each object to this directory, instead of printing
    #[arg(long, value_name = "DIR", conflicts_with_all = ["helm_chart", "format"])]
    kustomize: Option<PathBuf>,
    /// Write a Helm chart to this directory, instead of printing; its namespace is the release's
    #[arg(long, value_name = "DIR", conflicts_with = "format")]
    helm_chart: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// Who can issue certificates.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum IssuerFlag {
    /// cert-manager, which must be installed on the cluster
    CertManager,
    /// OpenShift's service CA
    ServiceCa,
    /// A new certificate authority for this bundle, valid for ten years; each run creates new keys
    SelfSigned,
}

/// How manifests are printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormFlag {
    /// A stream of YAML documents
    Yaml,
    /// One List in JSON
    Json,
}

const EXAMPLES: &str = "\
Examples:
  olmkit bundle manifests bundle --namespace redis | kubectl apply --server-side -f -
  olmkit bundle manifests bundle --namespace redis --watch-namespace shop
  olmkit bundle manifests quay.io/example/redis-operator-bundle:v0.1.0 -n redis --webhook-certs cert-manager
  olmkit bundle manifests bundle --namespace redis --kustomize deploy";

impl Manifests {
    pub(super) fn run(self, output: Format) -> Result<Box<dyn Answer>, Failure> {
        let issuer = self.webhook_certs.map(|issuer| match issuer {
            IssuerFlag::CertManager => Issuer::CertManager,
            IssuerFlag::ServiceCa => Issuer::ServiceCa,
            IssuerFlag::SelfSigned => Issuer::SelfSigned,
        });
        let form = match (self.kustomize, self.helm_chart, self.format) {
            (Some(directory), ..) => Form::Kustomization(directory),
            (_, Some(directory), _) => Form::HelmChart(directory),
            // The objects are the answer: they come as any answer is asked for.
            (.., FormFlag::Json) => Form::Json,
            (.., FormFlag::Yaml) if output == Format::Json => Form::Json,
            (.., FormFlag::Yaml) => Form::Yaml,
        };
        let request = manifests::Request {
            bundle: self.bundle,
            namespace: self.namespace,
            watch_namespace: self.watch_namespace,
            issuer,
            config: self.config,
            form,
        };
        Ok(Box::new(manifests::run(&request, &self.registry.access()?)?))
    }
}
