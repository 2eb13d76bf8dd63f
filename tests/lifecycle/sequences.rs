//! What is compared between a recording and the simulation: for each object what it went through, without repetitions, and
//! between objects who came first.

use std::collections::{BTreeMap, BTreeSet};

use olmkit::lifecycle::api::{
    Approval, CatalogSource, ClusterServiceVersion, InstallPlan, InstallPlanPhase, Key, Object, Subscription,
};
use serde_json::Value;

/// What was seen.
#[derive(Default)]
pub(crate) struct Sequences {
    /// By object; plans are numbered, since their names are random.
    pub(crate) objects: BTreeMap<String, Vec<String>>,
    /// Everything that orders are about, in the order it was first seen.
    pub(crate) timeline: Vec<String>,
    /// The numbers of plans by name.
    plans: BTreeMap<String, usize>,
    /// Which ClusterServiceVersion a plan brings, and what that one replaces.
    replaces: BTreeMap<String, String>,
}

impl Sequences {
    /// An object as it is after a change; `None` when it is gone.
    pub(crate) fn saw(&mut self, object: &Value, gone: bool) {
        let key = Key::of(object);
        match key.kind.as_str() {
            "Subscription" => {
                let found = Object::<Subscription>::read(object.clone()).unwrap();
                let status = &found.status;
                let line = format!("{} {} {}", status.state, status.current_csv, status.installed_csv);
                self.happened(format!("subscription {} installed {}", key.name, status.installed_csv));
                self.happened(format!("subscription {} at {}", key.name, status.current_csv));
                self.push(format!("subscription {}", key.name), line, gone);
            }
            "InstallPlan" => self.plan(object, &key, gone),
            "ClusterServiceVersion" => {
                let found = Object::<ClusterServiceVersion>::read(object.clone()).unwrap();
                let status = &found.status;
                self.happened(format!("csv {} created", key.name));
                self.happened(format!("csv {} {}", key.name, status.phase));
                if gone {
                    self.happened(format!("csv {} gone", key.name));
                }
                self.replaces.insert(key.name.clone(), found.spec.replaces.clone());
                // Rule 9 of the recordings: it comes and goes within seconds, or is not seen at all.
                if status.reason == "RequirementsNotMet" && !gone {
                    return;
                }
                self.push(
                    format!("clusterserviceversion {}", key.name),
                    format!("{} {}", status.phase, status.reason),
                    gone,
                );
            }
            "CatalogSource" => {
                let found = Object::<CatalogSource>::read(object.clone()).unwrap();
                if found.is_ready() {
                    self.happened("catalog ready".into());
                }
            }
            "CustomResourceDefinition" => self.happened(format!("crd {} created", key.name)),
            "Deployment" if !gone => {
                let owner = object.pointer("/metadata/labels/olm.owner").and_then(Value::as_str);
                self.happened(format!("deployment of {}", owner.unwrap_or("nobody")));
            }
            _ => {}
        }
    }

    fn plan(&mut self, object: &Value, key: &Key, gone: bool) {
        let next = self.plans.len() + 1;
        let number = *self.plans.entry(key.name.clone()).or_insert(next);
        let plan = Object::<InstallPlan>::read(object.clone()).unwrap();
        let id = format!("installplan {number}");
        self.happened(format!("{id} created"));
        if plan.spec.approval == Approval::Manual && plan.spec.approved {
            self.happened(format!("{id} approved"));
        }
        match plan.status.phase {
            InstallPlanPhase::Installing => self.happened(format!("{id} installs")),
            InstallPlanPhase::Complete => self.happened(format!("{id} complete")),
            _ => {}
        }
        // OLM walks through maps, so the order of ClusterServiceVersions in a plan is any.
        let names: BTreeSet<&String> = plan.spec.cluster_service_version_names.iter().collect();
        let mut steps: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for step in &plan.status.plan {
            let step_name = format!("{}/{}", step.resource.kind, step.resource.name);
            steps.entry(&step.resolving).or_default().push(step_name);
        }
        let line = format!(
            "{} {} approved={} {names:?} {steps:?}",
            plan.status.phase, plan.spec.approval, plan.spec.approved
        );
        self.push(id, line, gone);
    }

    fn push(&mut self, object: String, line: String, gone: bool) {
        let line = if gone { "gone".into() } else { line };
        let lines = self.objects.entry(object).or_default();
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }

    fn happened(&mut self, what: String) {
        if !self.timeline.contains(&what) {
            self.timeline.push(what);
        }
    }

    /// The orders of H.1, H.2 and D.4: pairs of which the first comes before the second.
    pub(crate) fn orders(&self) -> Vec<(String, String)> {
        let mut orders = Vec::new();
        let mut before = |first: &str, second: &str| orders.push((first.to_owned(), second.to_owned()));
        for number in self.plans.values() {
            let plan = format!("installplan {number}");
            before(&format!("{plan} created"), &format!("{plan} installs"));
            before(&format!("{plan} approved"), &format!("{plan} installs"));
            before(&format!("{plan} installs"), &format!("{plan} complete"));
        }
        for (csv, old) in &self.replaces {
            let at = |what: &str| format!("csv {csv} {what}");
            before(&at("created"), &at("Pending"));
            before(&at("Pending"), &at("InstallReady"));
            before(&at("InstallReady"), &format!("deployment of {csv}"));
            before(&format!("deployment of {csv}"), &at("Installing"));
            before(&at("Installing"), &at("Succeeded"));
            for subscription in self.objects.keys().filter(|key| key.starts_with("subscription ")) {
                before(&at("created"), &format!("{subscription} installed {csv}"));
                before(&format!("{subscription} at {csv}"), &format!("{subscription} installed {csv}"));
            }
            if !self.replaces.contains_key(old) {
                continue;
            }
            let of_old = |what: &str| format!("csv {old} {what}");
            before(&of_old("Succeeded"), &at("created"));
            before(&at("created"), &of_old("Replacing"));
            before(&of_old("Replacing"), &at("InstallReady"));
            before(&at("Succeeded"), &of_old("Deleting"));
            before(&of_old("Deleting"), &of_old("gone"));
            for next in self.replaces.iter().filter(|(_, old)| *old == csv).map(|(next, _)| next) {
                before(&of_old("gone"), &format!("csv {next} created"));
            }
        }
        orders
    }

    /// Whether something comes before something else; `None` when one of them was not seen.
    pub(crate) fn in_order(&self, first: &str, second: &str) -> Option<bool> {
        let at = |what: &str| self.timeline.iter().position(|seen| seen == what);
        Some(at(first)? < at(second)?)
    }
}
