//! ClusterServiceVersion as it stands on a cluster: what the bundle says, and how the operator is doing.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use olmkit_bundle::csv::{ClusterServiceVersionSpec, InstallMode};
use serde::{Deserialize, Serialize};

use super::{Named, label, named, words};

words! {
    /// How far the operator is.
    CsvPhase {
        /// OLM has not seen it yet.
        #[default]
        None = "",
        /// Requirements are being checked.
        Pending = "Pending",
        /// They are met.
        InstallReady = "InstallReady",
        /// Deployments come up.
        Installing = "Installing",
        /// They are up.
        Succeeded = "Succeeded",
        /// Something is wrong; not always for good.
        Failed = "Failed",
        /// OLM cannot tell.
        Unknown = "Unknown",
        /// A newer one takes over.
        Replacing = "Replacing",
        /// A newer one took over.
        Deleting = "Deleting",
    }
}

/// Reasons for a phase that decisions hang on.
pub mod reason {
    /// On copies in other namespaces.
    pub const COPIED: &str = "Copied";
    /// The predecessor says that it must not be replaced now.
    pub const NOT_UPGRADEABLE: &str = "OperatorConditionNotUpgradeable";
    /// Reasons of `Failed` that nothing but a change from outside leaves, with what to change.
    pub const TERMINAL: [(&str, &str); 11] = [
        (
            "UnsupportedOperatorGroup",
            "choose target namespaces that an install mode of the operator supports",
        ),
        ("InvalidInstallModes", "the bundle's install modes contradict each other"),
        ("NoOperatorGroup", "create an OperatorGroup in the namespace"),
        ("TooManyOperatorGroups", "leave one OperatorGroup in the namespace"),
        ("NoTargetNamespaces", "the OperatorGroup selects no namespace"),
        (
            "InterOperatorGroupOwnerConflict",
            "another OperatorGroup with the same namespaces provides the same APIs",
        ),
        (
            "CannotModifyStaticOperatorGroupProvidedAPIs",
            "the OperatorGroup does not let the operator provide its APIs",
        ),
        ("OwnerConflict", "another operator of the namespace owns the same CRD"),
        ("InvalidWebhookDescription", "the bundle describes a webhook that OLM refuses"),
        ("InvalidInstallStrategy", "the bundle's install strategy cannot be read"),
        ("InstallComponentFailedNoRetry", "the bundle's deployments cannot be created; see the message"),
    ];
}

/// An operator's version on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterServiceVersion {
    /// Name, namespace, annotations.
    pub metadata: ObjectMeta,
    /// What the bundle says, `replaces` set by OLM to what was installed.
    pub spec: ClusterServiceVersionSpec,
    /// How it is doing.
    pub status: CsvStatus,
}

/// How an operator is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsvStatus {
    /// In one word.
    pub phase: CsvPhase,
    /// In two.
    pub reason: String,
    /// In a sentence.
    pub message: String,
    /// The phases that it went through, the newest last.
    pub conditions: Vec<CsvCondition>,
    /// What it needs, and whether that is there.
    pub requirement_status: Vec<RequirementStatus>,
}

/// A phase that it went through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CsvCondition {
    /// The phase.
    pub phase: CsvPhase,
    /// Why.
    pub reason: String,
    /// In a sentence.
    pub message: String,
}

/// Something that the operator needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequirementStatus {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// `Present`, `NotPresent`, `PresentNotSatisfied`, `DependentStatus…`.
    pub status: String,
    /// In a sentence.
    pub message: String,
}

impl ClusterServiceVersion {
    /// Whether it is a copy of one in another namespace.
    pub fn is_copied(&self) -> bool {
        self.label(label::COPIED_FROM).is_some() || self.status.reason == reason::COPIED
    }

    /// Whether the operator is up.
    pub fn succeeded(&self) -> bool {
        self.status.phase == CsvPhase::Succeeded && !self.is_being_deleted()
    }

    /// What is missing.
    pub fn unmet(&self) -> impl Iterator<Item = &RequirementStatus> {
        self.status
            .requirement_status
            .iter()
            .filter(|found| !matches!(found.status.as_str(), "Present" | "Satisfied" | ""))
    }

    /// The install modes.
    pub fn install_modes(&self) -> &[InstallMode] {
        &self.spec.install_modes
    }
}

named!(ClusterServiceVersion);
