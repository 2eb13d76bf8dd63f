//! The base ClusterServiceVersion: what its author wrote by hand, and what of it the manifests know better.
//!
//! operator-sdk keeps such a base in `config/manifests/bases`. All of it is kept, fields that OLM does not know included;
//! what the manifests decide is laid over it, and an entry of it that they contradict is reported.

use super::draft::{By, Draft, Origin};
use super::input::Manifests;
use super::{Compat, codes};
use crate::csv;
use crate::finding::Finding;
use crate::parse::Object;
use crate::yaml::steps;

/// A ClusterServiceVersion to start from.
#[derive(Clone, Copy, Debug)]
pub struct Base<'m> {
    pub(super) object: Object<'m, 'm>,
    /// Whether nobody named it: one among the manifests counts more.
    found: bool,
    /// The file that it stands in; none where it is one of the manifests.
    file: Option<&'m Manifests<'m>>,
}

impl<'m> Base<'m> {
    /// The ClusterServiceVersion of a base file.
    ///
    /// # Errors
    /// Returns a finding if the file has no ClusterServiceVersion or is not valid YAML.
    pub fn of(manifests: &'m Manifests<'m>) -> Result<Self, Box<Finding>> {
        if let Some(finding) = manifests.first_error() {
            return Err(Box::new(finding));
        }
        let mut objects = manifests.objects();
        match objects.find(|object| object.kind() == csv::KIND) {
            Some(object) => Ok(Self { file: Some(manifests), ..Self::named(object) }),
            None => {
                let finding =
                    Finding::new(&codes::BASE_INVALID, "there is no ClusterServiceVersion in the base");
                let finding = finding.help("give a file with an object of kind `ClusterServiceVersion`");
                Err(Box::new(match manifests.objects().next() {
                    Some(object) => finding.at(object.place(steps!("kind"))),
                    None => finding,
                }))
            }
        }
    }

    /// The same as one that was found beside the manifests: one among them counts more, as it does for operator-sdk.
    #[must_use]
    pub fn found(self) -> Self {
        Self { found: true, ..self }
    }

    pub(super) fn named(object: Object<'m, 'm>) -> Self {
        Self { object, found: false, file: None }
    }

    pub(super) fn is_found(self) -> bool {
        self.found
    }

    pub(super) fn is_named(self, name: &str) -> bool {
        self.object.name() == name
    }

    /// What its file says twice.
    pub(super) fn duplicate_keys(self) -> Vec<Finding> {
        self.file.map(Manifests::duplicate_keys).unwrap_or_default()
    }

    /// Whether an object is this ClusterServiceVersion, given once more.
    pub(super) fn is_same(self, object: &Object<'_, '_>) -> bool {
        self.object.root.to_json() == object.root.to_json()
    }

    /// Its version, where it says one that is meant.
    pub(super) fn version(&self) -> Option<(&'m str, Origin<'m>)> {
        let path = steps!("spec", "version");
        let text = self.object.text(path);
        let origin = Origin::written(By::Base, self.object.source, self.object.root.locate(path));
        // The scaffold's placeholder.
        (!text.is_empty() && text != "0.0.0").then_some((text, origin))
    }

    /// The version of the operator that it is of, where it says one that is meant.
    pub fn operator_version(&self) -> Option<&'m str> {
        self.version().map(|(text, _)| text)
    }

    /// Everything that it says, but for what only a cluster says.
    pub(super) fn draft(self, compat: Option<Compat>) -> Draft<'m> {
        let mut draft = Draft::node(self.object.root, self.object.source, By::Base);
        draft.remove("status");
        if let Some(metadata) = draft.at_mut(&["metadata"]) {
            for key in ["creationTimestamp", "managedFields", "resourceVersion", "uid", "generation"] {
                metadata.remove(key);
            }
            // OLM decides on the namespace; operator-sdk's scaffold says `placeholder`.
            if compat.is_none() {
                metadata.remove("namespace");
            }
        }
        draft
    }
}
