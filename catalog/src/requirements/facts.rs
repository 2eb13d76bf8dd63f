//! What is known of a bundle that others may require.

use std::cell::OnceCell;

use olmkit_bundle::cel::constraint::Properties;
use olmkit_bundle::go;
use olmkit_bundle::version::{Version, parse_tolerant};
use serde_json::Value as Json;

use super::{Gvk, Requirement};
use crate::fbc::{self, property};

/// What is known of a bundle.
#[derive(Debug, Default)]
pub(crate) struct Facts<'q> {
    pub(crate) version: Option<Version>,
    /// Packages and versions by `olm.package` properties.
    pub(crate) packages: Vec<(String, Option<Version>)>,
    pub(crate) gvks: Vec<Gvk>,
    pub(crate) labels: Vec<String>,
    pub(crate) requirements: Vec<Result<Requirement, String>>,
    pub(crate) is_deprecated: bool,
    /// All properties that expressions may ask about.
    all: Vec<(&'q str, Json)>,
    /// The same as expressions see them, once one has asked.
    seen: OnceCell<Properties>,
}

/// Manifests and what consoles show never reach the resolver.
fn is_visible_to_resolver(kind: &str) -> bool {
    kind != property::BUNDLE_OBJECT && kind != property::CSV_METADATA
}

impl<'q> Facts<'q> {
    pub(crate) fn of_bundle(bundle: &'q fbc::Bundle<'_>) -> Self {
        let properties = bundle.properties.iter().filter(|property| is_visible_to_resolver(&property.kind));
        let json =
            |found: &'q fbc::Property<'_>| found.value.as_ref().map_or(Json::Null, fbc::Value::to_json);
        Self::new(None, properties.map(|found| (&*found.kind, json(found))))
    }

    pub(crate) fn new(version: Option<Version>, properties: impl Iterator<Item = (&'q str, Json)>) -> Self {
        let mut facts = Self { version, all: properties.collect(), ..Self::default() };
        for (kind, value) in &facts.all {
            let text = |key: &str| go::value_of(value, key).and_then(Json::as_str).unwrap_or("").to_owned();
            match *kind {
                property::PACKAGE => {
                    let version = text("version");
                    facts.packages.push((text("packageName"), version.parse().ok()));
                    facts.version = facts.version.or_else(|| parse_tolerant(&version).ok());
                }
                property::GVK => facts.gvks.push(Gvk::of(value)),
                "olm.label" => facts.labels.push(text("label")),
                "olm.deprecated" => facts.is_deprecated = true,
                kind => facts.requirements.extend(Requirement::of(kind, value).transpose()),
            }
        }
        facts
    }

    /// The properties, as expressions see them.
    pub(crate) fn properties(&self) -> &Properties {
        self.seen.get_or_init(|| Properties::new(self.all.iter().map(|(kind, value)| (*kind, value))))
    }
}
