//! InstallPlan: the steps by which OLM brings ClusterServiceVersions into a namespace.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::{Approval, Condition, named, words};

words! {
    /// How far a plan is.
    InstallPlanPhase {
        /// It was just made.
        #[default]
        None = "",
        /// Its steps are being found.
        Planning = "Planning",
        /// Waits for explicit approval.
        RequiresApproval = "RequiresApproval",
        /// Its steps are done one after another.
        Installing = "Installing",
        /// Every step was done.
        Complete = "Complete",
        /// A step could not be done.
        Failed = "Failed",
    }
}

words! {
    /// How far a step is.
    StepStatus {
        /// Not begun.
        #[default]
        Unknown = "Unknown",
        /// Not there.
        NotPresent = "NotPresent",
        /// Was there, or is brought up to date.
        Present = "Present",
        /// Was made.
        Created = "Created",
        /// Could not be made.
        NotCreated = "NotCreated",
        /// A CRD that is not served yet.
        WaitingForApi = "WaitingForApi",
        /// A kind that OLM does not install.
        UnsupportedResource = "UnsupportedResource",
    }
}

/// Steps that belong together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstallPlan {
    /// Name, namespace, owners.
    pub metadata: ObjectMeta,
    /// What it installs, and its approval mode.
    pub spec: InstallPlanSpec,
    /// How far it is.
    pub status: InstallPlanStatus,
}

/// What a plan installs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstallPlanSpec {
    /// The ClusterServiceVersions, of every Subscription of the namespace that moves.
    pub cluster_service_version_names: Vec<String>,
    /// Its approval mode.
    pub approval: Approval,
    /// Whether yes was said.
    pub approved: bool,
    /// Counts the plans of the namespace.
    pub generation: i64,
}

/// How far a plan is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstallPlanStatus {
    /// In one word.
    pub phase: InstallPlanPhase,
    /// The steps.
    pub plan: Vec<Step>,
    /// Whether it is installed, and why not.
    pub conditions: Vec<Condition>,
    /// Why it does not get on.
    pub message: String,
    /// Where its bundles were unpacked from.
    #[serde(rename = "bundleLookups")]
    pub bundle_lookups: Vec<BundleLookup>,
}

/// Where a bundle was unpacked from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BundleLookup {
    /// Its image.
    pub path: String,
    /// Its ClusterServiceVersion.
    pub identifier: String,
    /// The CatalogSource, in whose namespace it was unpacked.
    pub catalog_source_ref: CatalogRef,
}

/// A reference to a CatalogSource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CatalogRef {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

/// One step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// The ClusterServiceVersion that it is for.
    pub resolving: String,
    /// The object that it makes.
    pub resource: StepResource,
    /// Whether OLM goes on where its API does not exist.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// How far it is.
    pub status: StepStatus,
}

/// An object that a step makes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepResource {
    /// The group of its kind.
    pub group: String,
    /// The version.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The object itself, or where it is, as JSON.
    pub manifest: String,
}

impl InstallPlan {
    /// Whether it will not move any more by itself.
    pub fn is_over(&self) -> bool {
        matches!(self.status.phase, InstallPlanPhase::Complete | InstallPlanPhase::Failed)
    }

    /// Whether it waits for somebody to say yes.
    pub fn waits_for_approval(&self) -> bool {
        self.spec.approval == Approval::Manual && !self.spec.approved && !self.is_over()
    }

    /// The ClusterServiceVersions that the resolver added as dependencies: those that come with a Subscription of their own.
    pub fn dependencies(&self) -> BTreeSet<&str> {
        let steps = self.status.plan.iter().filter(|step| step.resource.kind == "Subscription");
        steps.map(|step| step.resolving.as_str()).collect()
    }
}

named!(InstallPlan);
