//! An operator in one row of a table: its Subscription and what has become of it.

use schemars::JsonSchema;
use serde::Serialize;

use super::api::{ClusterServiceVersion, InstallModeKind, Named as _, Object, Subscription};
use super::doctor::{Diagnosis, OperatorState, State};
use super::health;
use super::observe::Observed;
use super::properties::package_of;
use crate::shell::Reach;

/// An operator: a Subscription and what has become of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operator {
    /// The Subscription; empty for a ClusterServiceVersion without one, which is shown when the doctor says something of it.
    pub subscription: String,
    /// Its namespace.
    pub namespace: String,
    /// The package.
    pub package: String,
    /// The channel; empty for the package's default.
    pub channel: String,
    /// The CatalogSource, as `NAMESPACE/NAME`.
    pub catalog: String,
    /// `Automatic` or `Manual`.
    pub approval: String,
    /// The Subscription's state.
    pub state: String,
    /// What OLM resolved last.
    #[serde(rename = "currentCSV")]
    pub current_csv: String,
    /// What is installed, healthy or not.
    #[serde(rename = "installedCSV")]
    pub installed_csv: String,
    /// How that is doing, in a word; empty when it is not there.
    pub csv_phase: String,
    /// How that is doing, in two.
    pub csv_reason: String,
    /// The channel's head; empty when the catalog cannot be read.
    pub head: String,
    /// The plan that is not over.
    pub pending_plan: Option<PendingPlan>,
    /// Which namespaces it watches, as install modes name it; empty without an OperatorGroup.
    pub install_mode: String,
    /// These namespaces; one empty name means all.
    pub target_namespaces: Vec<String>,
    /// What is wrong besides the phase of what is installed: the sentence of the doctor's root cause, a Deployment that is
    /// missing, a rollback that was interrupted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// How it is doing, as the doctor says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<State>,
    /// Why it does not go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<RootCause>,
}

/// Why an operator does not go on, in brief.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RootCause {
    /// The code; `docs/doctor.md` has a section for each.
    pub code: &'static str,
    /// What failed, where, and why.
    pub sentence: String,
}

/// A plan that is not over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PendingPlan {
    /// Its name.
    pub name: String,
    /// What it brings.
    pub csvs: Vec<String>,
    /// Whether it was approved.
    pub approved: bool,
}

impl Operator {
    /// The row of a Subscription; `head` is the channel's, and `reach` how commands reach the cluster.
    pub fn of(observed: &Observed, subscription: &Object<Subscription>, head: String, reach: &Reach) -> Self {
        let spec = &subscription.spec;
        let status = &subscription.status;
        let csv = observed.csv(&status.installed_csv);
        let plan = observed.plans.iter().find(|plan| {
            let owners = plan.metadata.owner_references.iter().flatten();
            let mut owners = owners.map(|owner| owner.name.as_str());
            !plan.is_over()
                && (plan.name() == status.plan() || owners.any(|name| name == subscription.name()))
        });
        Self {
            subscription: subscription.name().to_owned(),
            namespace: subscription.namespace().to_owned(),
            package: spec.package.clone(),
            channel: spec.channel.clone(),
            catalog: format!("{}/{}", spec.source_namespace, spec.source),
            approval: spec.install_plan_approval.to_string(),
            state: status.state.to_string(),
            current_csv: status.current_csv.clone(),
            installed_csv: status.installed_csv.clone(),
            csv_phase: csv.map(|csv| csv.status.phase.to_string()).unwrap_or_default(),
            csv_reason: csv.map(|csv| csv.status.reason.clone()).unwrap_or_default(),
            head,
            pending_plan: plan.map(|plan| PendingPlan {
                name: plan.name().to_owned(),
                csvs: plan.spec.cluster_service_version_names.clone(),
                approved: plan.spec.approved,
            }),
            problems: health::problems(observed, reach),
            ..Self::watching(observed)
        }
    }

    /// Which namespaces the operators of a namespace watch.
    fn watching(observed: &Observed) -> Self {
        let targets = observed.groups.first().map(|group| group.target_namespaces()).unwrap_or_default();
        let mode = match observed.groups.len() {
            1 => InstallModeKind::of(&observed.namespace, &targets).to_string(),
            _ => String::new(),
        };
        Self { install_mode: mode, target_namespaces: targets, ..Self::default() }
    }

    /// The row of a version without a Subscription.
    pub(super) fn without_subscription(observed: &Observed, csv: &Object<ClusterServiceVersion>) -> Self {
        Self {
            namespace: observed.namespace.clone(),
            package: package_of(csv).unwrap_or_default(),
            installed_csv: csv.name().to_owned(),
            csv_phase: csv.status.phase.to_string(),
            csv_reason: csv.status.reason.clone(),
            ..Self::watching(observed)
        }
    }

    /// Its name in messages: the Subscription, or the version that has none.
    pub fn title(&self) -> &str {
        if self.subscription.is_empty() { &self.installed_csv } else { &self.subscription }
    }

    /// Adds what the doctor says. What waits for somebody is no problem.
    pub(super) fn examined(mut self, diagnosis: &Diagnosis) -> Self {
        let mut all = diagnosis.operators.iter();
        let is_own = |one: &&OperatorState| {
            (&one.subscription, &one.namespace) == (&self.subscription, &self.namespace)
                && (!one.subscription.is_empty() || one.version == self.installed_csv)
        };
        let Some(own) = all.find(is_own) else { return self };
        self.health = Some(own.state);
        self.cause = own.code.zip(own.sentence.clone()).map(|(code, sentence)| RootCause { code, sentence });
        let problem = self.cause.as_ref().filter(|_| own.state == State::Broken);
        self.problems.splice(0..0, problem.map(|cause| cause.sentence.clone()));
        self
    }

    /// Whether it is healthy: installed and up, and nothing failed on the way to a newer version. A plan that waits for
    /// approval is no fault.
    pub fn is_well(&self) -> bool {
        self.csv_phase == "Succeeded" && self.problems.is_empty()
    }
}
