//! OperatorGroup, OperatorCondition and OLMConfig: what decides where operators watch and whether they may be replaced.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::{Deserialize, Serialize};

use super::{Condition, named};

/// The namespaces that the operators of a namespace watch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorGroup {
    /// Name and namespace.
    pub metadata: ObjectMeta,
    /// Which namespaces are meant.
    pub spec: OperatorGroupSpec,
    /// Which they are.
    pub status: OperatorGroupStatus,
}

/// Which namespaces are meant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorGroupSpec {
    /// By name; counts before the selector.
    pub target_namespaces: Vec<String>,
    /// By label.
    pub selector: Option<LabelSelector>,
    /// The ServiceAccount that OLM installs as.
    pub service_account_name: String,
    /// `Default` or `TechPreviewUnsafeFailForward`.
    pub upgrade_strategy: String,
}

/// Which namespaces it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorGroupStatus {
    /// These; one empty name means all.
    pub namespaces: Vec<String>,
    /// What is wrong with it.
    pub conditions: Vec<Condition>,
}

impl OperatorGroup {
    /// The namespaces that it is about, as far as it says; one empty name means all.
    pub fn target_namespaces(&self) -> Vec<String> {
        let found = &self.status.namespaces;
        match (found.is_empty(), self.spec.target_namespaces.is_empty()) {
            (false, _) => found.clone(),
            (true, false) => self.spec.target_namespaces.clone(),
            (true, true) if self.spec.selector.is_none() => vec![String::new()],
            (true, true) => Vec::new(),
        }
    }
}

/// Which namespaces an operator watches, as install modes name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstallModeKind {
    /// Its own.
    OwnNamespace,
    /// One other.
    SingleNamespace,
    /// Several.
    MultiNamespace,
    /// All.
    AllNamespaces,
}

impl InstallModeKind {
    /// The mode of an operator in a namespace that watches others.
    ///
    /// ```
    /// use olmkit::lifecycle::api::InstallModeKind;
    /// assert_eq!(InstallModeKind::of("redis", &["".into()]), InstallModeKind::AllNamespaces);
    /// assert_eq!(InstallModeKind::of("redis", &["redis".into()]), InstallModeKind::OwnNamespace);
    /// ```
    pub fn of(own: &str, targets: &[String]) -> Self {
        match targets {
            [one] if one.is_empty() => Self::AllNamespaces,
            [] => Self::AllNamespaces,
            [one] if one == own => Self::OwnNamespace,
            [_] => Self::SingleNamespace,
            _ => Self::MultiNamespace,
        }
    }

    /// The modes that an operator must support to watch these namespaces: several of them, its own among them, are two.
    pub fn needed(own: &str, targets: &[String]) -> Vec<Self> {
        let mode = Self::of(own, targets);
        let also_own = mode == Self::MultiNamespace && targets.iter().any(|target| target == own);
        [Some(mode), also_own.then_some(Self::OwnNamespace)].into_iter().flatten().collect()
    }

    /// The word that install modes use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OwnNamespace => "OwnNamespace",
            Self::SingleNamespace => "SingleNamespace",
            Self::MultiNamespace => "MultiNamespace",
            Self::AllNamespaces => "AllNamespaces",
        }
    }
}

impl fmt::Display for InstallModeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an operator reports to OLM about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorCondition {
    /// The name of its ClusterServiceVersion, and the namespace.
    pub metadata: ObjectMeta,
    /// What the operator says, and what an administrator says instead.
    pub spec: OperatorConditionSpec,
    /// What OLM has read.
    pub status: OperatorConditionStatus,
}

/// What is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorConditionSpec {
    /// By an administrator; counts first.
    pub overrides: Vec<Condition>,
    /// By the operator.
    pub conditions: Vec<Condition>,
}

/// What OLM has read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorConditionStatus {
    /// The operator's conditions.
    pub conditions: Vec<Condition>,
}

impl OperatorCondition {
    /// Why the operator must not be replaced now, if it says so.
    pub fn not_upgradeable(&self) -> Option<&Condition> {
        let about = |condition: &&Condition| condition.kind == "Upgradeable";
        let said = self.spec.overrides.iter().find(about);
        let said = said.or_else(|| self.status.conditions.iter().find(about));
        said.filter(|condition| condition.status == "False")
    }
}

/// How OLM is set up on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OlmConfig {
    /// Its name is `cluster`.
    pub metadata: ObjectMeta,
    /// The settings.
    pub spec: OlmConfigSpec,
}

/// The settings of OLM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OlmConfigSpec {
    /// What is switched.
    pub features: OlmFeatures,
}

/// What is switched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OlmFeatures {
    /// Whether global operators are not copied into every namespace.
    #[serde(rename = "disableCopiedCSVs")]
    pub disable_copied_csvs: bool,
}

named!(OperatorGroup, OperatorCondition, OlmConfig);
