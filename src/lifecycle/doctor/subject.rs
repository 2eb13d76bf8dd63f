//! One operator: its Subscription is followed from what it needs to what it runs, until something does not go on.

use super::doc::Doc;
use super::observation::Observation;
use super::relations::{is_replaced, left_behind};
use super::step::Step;
use super::{Cause, catalogs, codes, groups, namespaces, plans, resolution, uncollected, unpack, versions};
use crate::moment;
use crate::shell::command;

/// How long a Subscription may have nothing to show.
const UNRESOLVED: i64 = 600_000;

/// A Subscription and what is around it.
pub(super) struct Subject<'o> {
    pub(super) seen: &'o Observation,
    pub(super) subscription: Doc<'o>,
}

/// How an operator is doing.
pub(super) enum Verdict {
    Healthy,
    Progressing,
    /// The root cause first.
    Found(Vec<Cause>),
}

impl<'o> Subject<'o> {
    /// How the operator is doing.
    pub(super) fn examine(&self) -> Verdict {
        let verdict = self.follow();
        let unknown = match verdict {
            Verdict::Healthy => uncollected::resolution(self.seen, self.subscription),
            Verdict::Progressing => uncollected::cause(self.seen, self.subscription),
            Verdict::Found(_) => None,
        };
        unknown.map_or(verdict, |cause| Verdict::Found(vec![cause]))
    }

    /// Follows the Subscription.
    fn follow(&self) -> Verdict {
        let (seen, subscription) = (self.seen, self.subscription);
        if subscription.is_going() {
            let stuck = namespaces::blocked(seen, subscription)
                .or_else(|| namespaces::overdue(seen, subscription.namespace()));
            return stuck.map_or(Verdict::Progressing, |cause| Verdict::Found(vec![cause]));
        }
        let stopped = namespaces::terminating(seen, subscription.namespace())
            .or_else(|| groups::fault(seen, subscription))
            .or_else(|| self.copied());
        if let Some(cause) = stopped {
            return Verdict::Found(vec![cause]);
        }
        let status = |field: &str| subscription.text(&format!("/status/{field}"));
        let (current, installed) = (status("currentCSV"), status("installedCSV"));
        let csv = |name: &str| seen.get("ClusterServiceVersion", subscription.namespace(), name);
        let plan = plans::of(seen, subscription);
        // A plan that fails explains the version that it has begun to install.
        let planned = plan.and_then(|plan| plans::fault(seen, plan)).filter(|cause| {
            let is_waiting = cause.code == codes::APPROVAL_REQUIRED.name;
            !is_waiting || current.is_empty() || csv(current).is_none() || current != installed
        });
        let mut causes = Vec::new();
        let is_under_way =
            csv(current).is_none() && planned.is_none() && plan.is_some_and(|plan| !plans::is_over(plan));
        if is_under_way {
            return Verdict::Progressing;
        }
        let version = csv(current).or_else(|| csv(installed));
        match (planned, version.map(|csv| versions::examine(seen, csv))) {
            (Some(plan), version) => {
                // What is installed may be ill, or gone, while the next one waits.
                let is_next = csv(current).is_none();
                if version.is_none() && plan.code == codes::APPROVAL_REQUIRED.name {
                    causes.extend(self.gone(installed));
                }
                causes.extend(version.filter(|_| is_next).and_then(Step::cause));
                causes.push(plan);
            }
            (None, Some(Step::Found(cause))) => causes.push(*cause),
            (None, Some(Step::Progressing)) => match self.unplanned(csv(current)) {
                Some(cause) => causes.push(cause),
                None => return Verdict::Progressing,
            },
            (None, Some(Step::Done) | None) => {}
        }
        if causes.is_empty() && !current.is_empty() && csv(current).is_none() {
            match self.lost(plan) {
                Some(cause) => causes.push(cause),
                None if version.is_none() => return Verdict::Progressing,
                None => {}
            }
        }
        if causes.is_empty() {
            causes.extend(self.upstream().or_else(|| self.replaced(csv(current)?)));
        }
        if !causes.is_empty() {
            return Verdict::Found(causes);
        }
        // What the Subscription has not written down yet does not count: the objects do.
        let is_settled = csv(current).is_some() && plan.is_none_or(plans::is_over);
        match (version, is_settled) {
            (Some(_), true) => Verdict::Healthy,
            (None, _) if current.is_empty() => self.unresolved(),
            _ => Verdict::Progressing,
        }
    }

    /// A copy from another namespace that the Subscription holds for its own.
    fn copied(&self) -> Option<Cause> {
        let subscription = self.subscription;
        let installed = subscription.text("/status/installedCSV");
        let name = if installed.is_empty() { subscription.text("/status/currentCSV") } else { installed };
        let csv = self
            .seen
            .get("ClusterServiceVersion", subscription.namespace(), name)
            .filter(|csv| csv.is_copy())?;
        let home = match csv.label(crate::lifecycle::api::label::COPIED_FROM) {
            "" => "another namespace",
            home => home,
        };
        let (namespace, own) = (subscription.namespace(), subscription.name());
        let text = format!(
            "the Subscription `{own}` in the namespace `{namespace}` took the copy of `{name}` for its own, but the operator belongs to the namespace `{home}`: OLM never upgrades it from here"
        );
        Some(
            Cause::new(&codes::COPIED_CSV, subscription.reference(), text)
                .shown(subscription, "status.installedCSV", name, None)
                .shown(csv, "status.reason", "Copied", csv.created())
                .repair(
                    command!("kubectl -n {} delete subscription.operators.coreos.com {}", namespace, own),
                    format!("removes the Subscription that manages nothing; the operator in `{home}` runs on. Install the operator into a namespace that `{home}` does not watch if you need a second one"),
                ),
        )
    }

    /// The version that the Subscription knows is gone, and its plan does not bring it back.
    fn lost(&self, plan: Option<Doc<'o>>) -> Option<Cause> {
        let (seen, subscription) = (self.seen, self.subscription);
        let current = subscription.text("/status/currentCSV");
        let installed = subscription.text("/status/installedCSV");
        let was_there =
            installed == current || plan.is_some_and(|plan| plan.text("/status/phase") == "Complete");
        if !seen.looked_at("ClusterServiceVersion")
            || !was_there
            || plan.is_some_and(|plan| !plans::is_over(plan))
            || is_replaced(seen, subscription.namespace(), current)
        {
            return None;
        }
        let (name, namespace) = (subscription.name(), subscription.namespace());
        let text = format!(
            "the ClusterServiceVersion `{current}` was deleted, but the Subscription `{name}` still records it as installed, so OLM does not install it again"
        );
        let state = subscription.text("/status/state");
        let mut cause = Cause::new(&codes::CSV_DELETED, subscription.reference(), text)
            .shown(subscription, "status.installedCSV", installed, subscription.moment("/status/lastUpdated"))
            .shown(subscription, "status.state", state, subscription.moment("/status/lastUpdated"));
        if let Some(old) = left_behind(seen, subscription) {
            let since = old.moment("/status/lastTransitionTime");
            cause = cause.shown(old, "status.message", old.text("/status/message"), since);
            cause.consequences.push(format!(
                "clusterserviceversion/{} stays Replacing: OLM does not take it back",
                old.name()
            ));
            let patch = serde_json::json!({"status": {"installedCSV": old.name(), "currentCSV": old.name(), "state": "AtLatestKnown", "lastUpdated": moment::format(seen.now())}});
            cause = cause.repair(
                command!("kubectl -n {} patch subscription.operators.coreos.com {} --subresource status --type merge -p {}", namespace, name, patch),
                format!("if the channel has a newer version with an edge from `{}`: OLM installs that one about 10 seconds later, and nothing is installed from scratch", old.name()),
            );
        }
        Some(plans::reinstall_of(seen, subscription, cause))
    }

    /// What was installed is gone, and the next version waits for approval.
    fn gone(&self, installed: &str) -> Option<Cause> {
        let (seen, subscription) = (self.seen, self.subscription);
        if installed.is_empty()
            || !seen.looked_at("ClusterServiceVersion")
            || is_replaced(seen, subscription.namespace(), installed)
        {
            return None;
        }
        let text = format!(
            "the ClusterServiceVersion `{installed}` was deleted, but the Subscription `{}` still records it as installed, so OLM does not install it again",
            subscription.name()
        );
        let since = subscription.moment("/status/lastUpdated");
        let cause = Cause::new(&codes::CSV_DELETED, subscription.reference(), text).shown(
            subscription,
            "status.installedCSV",
            installed,
            since,
        );
        Some(plans::reinstall_of(seen, subscription, cause))
    }

    /// The version that was replaced, if something keeps it: OLM resolves nothing new until it is gone.
    fn replaced(&self, csv: Doc<'o>) -> Option<Cause> {
        let old = self.seen.get("ClusterServiceVersion", csv.namespace(), csv.text("/spec/replaces"))?;
        namespaces::blocked(self.seen, old)
    }

    /// A version that waits for objects of a plan that is gone.
    fn unplanned(&self, csv: Option<Doc<'o>>) -> Option<Cause> {
        let (seen, subscription, csv) = (self.seen, self.subscription, csv?);
        let named = subscription.text("/status/installPlanRef/name");
        let namespace = subscription.namespace();
        let is_unmet =
            csv.text("/status/phase") == "Pending" && csv.text("/status/reason") == "RequirementsNotMet";
        let has_plan = seen.within("InstallPlan", namespace).any(|plan| plans::carries(plan, csv.name()));
        if !seen.looked_at("InstallPlan") || named.is_empty() || has_plan || !is_unmet {
            return None;
        }
        let unmet = csv.list("/status/requirementStatus").map(Doc);
        let unmet = unmet.filter(|one| !matches!(one.text("/status"), "Present" | "Satisfied" | ""));
        let unmet: Vec<String> = unmet
            .map(|one| format!("{} {}: {}", one.text("/kind"), one.text("/name"), one.text("/message")))
            .collect();
        let text = format!(
            "installplan/{named} was deleted before it was complete, so `{}` never gets what it needs: {}",
            csv.name(),
            unmet.join("; ")
        );
        let mut cause = Cause::new(&codes::PLAN_DELETED, subscription.reference(), text)
            .shown(subscription, "status.installPlanRef.name", named, None)
            .shown(
                csv,
                "status.requirementStatus[].message",
                unmet.join("; "),
                csv.moment("/status/lastTransitionTime"),
            );
        if let Some(found) = subscription.holding("InstallPlanMissing") {
            cause = cause.shown(
                subscription,
                "status.conditions[InstallPlanMissing].reason",
                found.reason,
                found.since,
            );
        }
        Some(plans::reinstall_of(seen, subscription, cause))
    }

    /// What keeps a new version from being found or unpacked.
    fn upstream(&self) -> Option<Cause> {
        let (seen, subscription) = (self.seen, self.subscription);
        let own = seen.get(
            "CatalogSource",
            subscription.text("/spec/sourceNamespace"),
            subscription.text("/spec/source"),
        );
        let beside = seen.within("CatalogSource", subscription.namespace());
        catalogs::missing(seen, subscription)
            .or_else(|| {
                own.and_then(|catalog| catalogs::fault(seen, catalog)).map(|cause| self.blocked(cause))
            })
            .or_else(|| resolution::fault(seen, subscription))
            .or_else(|| unpack::fault(seen, subscription))
            .or_else(|| {
                beside
                    .into_iter()
                    .find_map(|catalog| catalogs::fault(seen, catalog))
                    .map(|cause| self.blocked(cause))
            })
    }

    /// What a catalog's fault does to the Subscription.
    fn blocked(&self, cause: Cause) -> Cause {
        let mut cause = cause;
        if let Some(found) = self
            .subscription
            .holding("ResolutionFailed")
            .filter(|found| resolution::catalog_of(found.message).is_some())
        {
            cause = cause.shown(
                self.subscription,
                "status.conditions[ResolutionFailed].message",
                found.message,
                found.since,
            );
        }
        cause.consequences.push(format!("subscription/{} cannot be resolved", self.subscription.name()));
        cause
    }

    /// Nothing was resolved yet, and nothing says why.
    fn unresolved(&self) -> Verdict {
        let (seen, subscription) = (self.seen, self.subscription);
        if let Some(cause) = namespaces::olm(seen) {
            return Verdict::Found(vec![cause]);
        }
        let since = subscription.created().max(subscription.moment("/status/lastUpdated"));
        if !seen.has_lasted(since, UNRESOLVED) {
            return Verdict::Progressing;
        }
        let (name, namespace) = (subscription.name(), subscription.namespace());
        let text = format!(
            "OLM has done nothing for the Subscription `{name}` in the namespace `{namespace}` for more than ten minutes"
        );
        let cause = Cause::new(&codes::NO_PROGRESS, subscription.reference(), text)
            .shown(subscription, "status.lastUpdated", subscription.text("/status/lastUpdated"), since)
            .repair(
                "kubectl get pods -A -l 'app in (olm-operator,catalog-operator)'",
                "shows whether OLM runs; the log of catalog-operator shows what it is waiting for",
            );
        Verdict::Found(vec![cause])
    }
}
