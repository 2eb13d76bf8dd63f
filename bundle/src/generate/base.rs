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
pub struct Base<'m>(pub(super) Object<'m, 'm>);

impl<'m> Base<'m> {
    /// The ClusterServiceVersion of a base file.
    ///
    /// # Errors
    /// A finding when there is none in it.
    pub fn of(manifests: &'m Manifests<'m>) -> Result<Self, Box<Finding>> {
        let mut objects = manifests.objects();
        match objects.find(|object| object.kind() == csv::KIND) {
            Some(object) => Ok(Self(object)),
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

    /// Its version, where it says one that is meant.
    pub(super) fn version(&self) -> Option<(&'m str, Origin<'m>)> {
        let path = steps!("spec", "version");
        let text = self.0.text(path);
        let origin = Origin::written(By::Base, self.0.source, self.0.root.locate(path));
        // The scaffold's placeholder.
        (!text.is_empty() && text != "0.0.0").then_some((text, origin))
    }

    /// Everything that it says, but for what only a cluster says.
    pub(super) fn draft(self, compat: Option<Compat>) -> Draft<'m> {
        let mut draft = Draft::node(self.0.root, self.0.source, By::Base);
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
