//! The version of the program, and of what it agrees with.

use std::io::{self, Write};

use super::{Answer, json, pretty};

/// The release of OLM whose behaviour the simulator, the doctor and the tests on clusters are held against.
pub const OLM: &str = "0.46.0";
/// The release of operator-registry (opm) whose catalogs and server are.
pub const OPERATOR_REGISTRY: &str = "1.73.0";
/// The release of Kubernetes whose API server decides whether manifests are valid.
pub const KUBERNETES: &str = "1.34";
/// The releases that the nodes of kind run in the tests, the newest last.
const ON_KIND: &[&str] = &["1.33", KUBERNETES];

/// What `olmkit version` says.
#[derive(Debug)]
pub struct VersionAnswer;

fn version() -> json::Version {
    json::Version {
        schema: "olmkit.version/v1",
        version: env!("CARGO_PKG_VERSION"),
        olm: OLM,
        operator_registry: OPERATOR_REGISTRY,
        kubernetes: KUBERNETES,
        kubernetes_versions: ON_KIND,
        bundle_format: "registry+v1",
        catalog_format: "file-based catalog",
    }
}

impl Answer for VersionAnswer {
    fn json(&self) -> String {
        pretty(&version())
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        let json::Version {
            version,
            olm,
            operator_registry,
            kubernetes_versions,
            bundle_format,
            catalog_format,
            ..
        } = version();
        let kubernetes = kubernetes_versions.join(" and ");
        writeln!(out, "olmkit {version}")?;
        writeln!(out, "tested with OLM {olm}, opm {operator_registry}, Kubernetes {kubernetes}")?;
        writeln!(out, "formats: bundles {bundle_format}, catalogs {catalog_format}")
    }
}
