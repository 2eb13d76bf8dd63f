//! Subscription: the wish for a package from a channel, and how far OLM is with it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Condition, named, words};

/// The conditions that a Subscription may have.
pub mod condition {
    /// Nothing could be resolved; goes stale.
    pub const RESOLUTION_FAILED: &str = "ResolutionFailed";
    /// A bundle is being unpacked; goes stale.
    pub const BUNDLE_UNPACKING: &str = "BundleUnpacking";
    /// A bundle could not be unpacked.
    pub const BUNDLE_UNPACK_FAILED: &str = "BundleUnpackFailed";
    /// The plan failed.
    pub const INSTALL_PLAN_FAILED: &str = "InstallPlanFailed";
}

words! {
    /// Approval mode of InstallPlans.
    Approval {
        /// OLM does.
        #[default]
        Automatic = "Automatic",
        /// Somebody has to.
        Manual = "Manual",
    }
}

words! {
    /// How far OLM is.
    SubscriptionState {
        /// Nothing was resolved yet.
        #[default]
        None = "",
        /// There is something newer.
        UpgradeAvailable = "UpgradeAvailable",
        /// A plan waits or runs.
        UpgradePending = "UpgradePending",
        /// The ClusterServiceVersion that was resolved exists; whether it is well is another question.
        AtLatestKnown = "AtLatestKnown",
        /// The plan failed.
        UpgradeFailed = "UpgradeFailed",
    }
}

/// The wish for a package.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subscription {
    /// Name, namespace, annotations.
    pub metadata: ObjectMeta,
    /// The wish.
    pub spec: SubscriptionSpec,
    /// How far OLM is.
    pub status: SubscriptionStatus,
}

/// What is wished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionSpec {
    /// The CatalogSource.
    pub source: String,
    /// Its namespace.
    pub source_namespace: String,
    /// The package.
    #[serde(rename = "name")]
    pub package: String,
    /// The channel; empty for the package's default.
    pub channel: String,
    /// The version to begin with; none for the channel's head.
    #[serde(rename = "startingCSV")]
    pub starting_csv: String,
    /// Approval mode of InstallPlans.
    pub install_plan_approval: Approval,
    /// What is changed in the operator's pods.
    pub config: Option<Value>,
}

/// How far OLM is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionStatus {
    /// In one word.
    pub state: SubscriptionState,
    /// What was resolved last.
    #[serde(rename = "currentCSV")]
    pub current_csv: String,
    /// What exists, healthy or not.
    #[serde(rename = "installedCSV")]
    pub installed_csv: String,
    /// The plan.
    pub install_plan_ref: Option<ObjectName>,
    /// What is going on; some of them go stale.
    pub conditions: Vec<Condition>,
}

/// A reference to an object by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectName {
    /// The name.
    pub name: String,
}

impl SubscriptionStatus {
    /// A condition that holds.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind && condition.is_true())
    }

    /// The name of the plan; empty if missing.
    pub fn plan(&self) -> &str {
        self.install_plan_ref.as_ref().map_or("", |plan| plan.name.as_str())
    }
}

named!(Subscription);
