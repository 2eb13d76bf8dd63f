//! The objects that OLM and its users write, as typed views.
//!
//! A view holds the fields that we read. What else an object has, of this OLM or of a later one, stays in the document that
//! [`Object`] keeps beside the view; phases and states that we do not know are kept as the text they are. Changes are sent
//! as merge patches, so that a field we do not know is never written over.

mod catalog_source;
mod csv;
mod install_plan;
mod operator_group;
mod package_manifest;
pub mod pod_config;
mod resource;
mod subscription;

use std::ops::Deref;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

pub use catalog_source::{CatalogSource, CatalogSourceSpec, CatalogSourceStatus, ConnectionState};
pub use csv::{
    ClusterServiceVersion, CsvCondition, CsvPhase, CsvStatus, RequirementStatus, reason as csv_reason,
};
pub use install_plan::{
    BundleLookup, CatalogRef, InstallPlan, InstallPlanPhase, InstallPlanSpec, InstallPlanStatus, Step,
    StepResource, StepStatus,
};
pub use operator_group::{
    InstallModeKind, OlmConfig, OperatorCondition, OperatorConditionSpec, OperatorGroup, OperatorGroupSpec,
    OperatorGroupStatus,
};
pub use package_manifest::{PackageChannel, PackageManifest, PackageManifestStatus};
pub use resource::{Key, Resource, known, resource_of};
pub use subscription::{
    Approval, Subscription, SubscriptionSpec, SubscriptionState, SubscriptionStatus, condition,
};

/// Annotations and labels that OLM, its tools or we give a meaning to.
pub mod label {
    /// On everything that OLM manages.
    pub const MANAGED: &str = "olm.managed";
    /// The name of the owner of an object in a ClusterServiceVersion's service.
    pub const OWNER: &str = "olm.owner";
    /// The owner's namespace.
    pub const OWNER_NAMESPACE: &str = "olm.owner.namespace";
    /// The owner's kind.
    pub const OWNER_KIND: &str = "olm.owner.kind";
    /// On copies of a ClusterServiceVersion: the namespace of the original.
    pub const COPIED_FROM: &str = "olm.copiedFrom";
    /// On the ConfigMap, Job and rights that unpack a bundle.
    pub const UNPACK: &str = "operatorframework.io/bundle-unpack-ref";
    /// The properties of an installed bundle.
    pub const PROPERTIES: &str = "operatorframework.io/properties";
    /// On a Subscription that was made for a dependency: the InstallPlan that made it.
    pub const GENERATED_BY: &str = "olm.generated-by";
    /// On what `olmkit` made itself, so that it knows what to take away again.
    pub const CREATED_BY: &str = "app.kubernetes.io/created-by";
    /// The value of [`CREATED_BY`].
    pub const OLMKIT: &str = "olmkit";
    /// What an object is a part of.
    pub const PART_OF: &str = "app.kubernetes.io/part-of";
    /// On a Subscription while it is being upgraded: the approval that it had, to be restored at the end.
    pub const APPROVAL_BEFORE: &str = "olmkit.io/approval-before";
    /// On a Subscription for a moment, so that OLM looks at it again.
    pub const LOOK_AGAIN: &str = "olmkit.io/look-again";
    /// On a Subscription that a rollback has made: what was installed before.
    pub const ROLLED_BACK_FROM: &str = "olmkit.io/rolled-back-from";
}

/// Whether an object was made by this tool, and may be removed by it.
pub fn made_here(document: &Value) -> bool {
    document.pointer("/metadata/labels").is_some_and(|labels| labels[label::CREATED_BY] == label::OLMKIT)
}

/// An object: a typed view, and the document it was read from.
#[derive(Clone, Debug, PartialEq)]
pub struct Object<T> {
    document: Value,
    view: T,
}

/// An object that does not fit its type.
#[derive(Debug, thiserror::Error)]
#[error("`{key}` does not have the fields of its kind")]
pub struct MisfitError {
    /// The object.
    pub key: Box<Key>,
    /// Why.
    #[source]
    pub source: serde_json::Error,
}

impl<T: DeserializeOwned> Object<T> {
    /// Reads a document.
    ///
    /// ```
    /// use olmkit::lifecycle::api::{Object, Subscription, SubscriptionState};
    /// let document = serde_json::json!({"status": {"state": "Pondering", "mood": 7}});
    /// let object = Object::<Subscription>::read(document.clone()).unwrap();
    /// assert_eq!(object.status.state, SubscriptionState::Other("Pondering".into()));
    /// assert_eq!(serde_json::to_value(&object).unwrap(), document);
    /// ```
    ///
    /// # Errors
    /// A field that we read has another type than it must have.
    pub fn read(document: Value) -> Result<Self, MisfitError> {
        match T::deserialize(&document) {
            Ok(view) => Ok(Self { document, view }),
            Err(source) => Err(MisfitError { key: Box::new(Key::of(&document)), source }),
        }
    }
}

impl<T> Object<T> {
    /// Everything, as it was read.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// What the object is called.
    pub fn key(&self) -> Key {
        Key::of(&self.document)
    }
}

impl<T> Deref for Object<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.view
    }
}

impl<T> Serialize for Object<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document.serialize(serializer)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// What every object has.
pub trait Named {
    /// Its metadata.
    fn metadata(&self) -> &ObjectMeta;

    /// Its name; empty if missing.
    fn name(&self) -> &str {
        self.metadata().name.as_deref().unwrap_or("")
    }

    /// Its namespace; empty if missing.
    fn namespace(&self) -> &str {
        self.metadata().namespace.as_deref().unwrap_or("")
    }

    /// An annotation's value.
    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata().annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// A label's value.
    fn label(&self, key: &str) -> Option<&str> {
        self.metadata().labels.as_ref()?.get(key).map(String::as_str)
    }

    /// Whether it is being deleted.
    fn is_being_deleted(&self) -> bool {
        self.metadata().deletion_timestamp.is_some()
    }
}

/// A condition in an object's status; OLM leaves out fields that Kubernetes demands of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// A word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl Condition {
    /// Whether it holds.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}

/// Declares a word of OLM's with the ones that are known, and a place for those that are not.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$word_doc])* $word,)+
            /// What a newer OLM may say.
            Other(String),
        }

        impl $name {
            /// The word as OLM writes it.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$word => $text,)+
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$word,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self::from(<std::borrow::Cow<'de, str>>::deserialize(deserializer)?.as_ref()))
            }
        }
    };
}

macro_rules! named {
    ($($name:ident),+) => {$(
        impl $crate::lifecycle::api::Named for $name {
            fn metadata(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }
        }
    )+};
}

pub(crate) use {named, words};

#[cfg(test)]
mod tests;
