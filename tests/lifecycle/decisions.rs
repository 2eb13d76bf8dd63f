//! What is decided at every moment of every recording.

use std::collections::BTreeMap;

use olmkit::lifecycle::api::{Approval, InstallPlanPhase, Key, Named as _};
use olmkit::lifecycle::decide::{Awaited, Decision, Goal, Step, decide};
use olmkit::lifecycle::observe::{Observed, kinds};
use serde_json::{Value, json};

use crate::trace::{Trace, What};

/// The goal of a recording's administrator: what OLM resolved for the Subscription, one after another.
fn goal(trace: &Trace, namespace: &str, subscription: &str, approve: bool) -> Goal {
    let mut way: Vec<String> = Vec::new();
    for entry in &trace.entries {
        let What::Modified(object) = &entry.what else { continue };
        let key = Key::of(object);
        if (key.kind.as_str(), key.namespace.as_str(), key.name.as_str())
            == ("Subscription", namespace, subscription)
        {
            let current = object.pointer("/status/currentCSV").and_then(Value::as_str).unwrap_or("");
            if !current.is_empty() && way.iter().all(|name| name != current) {
                way.push(current.to_owned());
            }
        }
    }
    if way.is_empty() {
        way.push("demo.v0.1.0".into());
    }
    Goal { way, approve, ..Goal::default() }
}

/// The Subscription that a recording is about.
fn subject(trace: &Trace) -> (String, String) {
    let made = trace.entries.iter().find_map(|entry| match &entry.what {
        What::Added(object) if object["kind"] == "Subscription" => Some(Key::of(object)),
        _ => None,
    });
    made.map(|key| (key.namespace, key.name)).unwrap()
}

/// Decides at every moment, and hands each decision with what it was made of to `look`.
fn at_every_moment(
    trace: &Trace,
    mut look: impl FnMut(u64, &Observed, Option<&str>, &dyn Fn(bool) -> Decision),
) {
    let (namespace, subscription) = subject(trace);
    let goals = [false, true].map(|approve| goal(trace, &namespace, &subscription, approve));
    let mut objects: BTreeMap<Key, Value> = BTreeMap::new();
    for entry in &trace.entries {
        let mut action = None;
        match &entry.what {
            What::Added(object) | What::Modified(object) | What::Deleted(object)
                if !kinds().iter().any(|kind| object["kind"] == kind.kind.as_str()) =>
            {
                continue;
            }
            What::Added(object) | What::Modified(object) => {
                objects.insert(Key::of(object), object.clone());
            }
            What::Deleted(object) => {
                objects.remove(&Key::of(object));
            }
            What::Action(text) => action = Some(text.as_str()),
            What::Log => {}
        }
        let observed = Observed::of(objects.values(), &namespace, &subscription);
        look(entry.at, &observed, action, &|approve| decide(&goals[usize::from(approve)], &observed));
    }
}

#[test]
fn nothing_that_olm_forbids_is_ever_proposed() {
    let mut approvals = 0;
    for trace in Trace::all() {
        at_every_moment(&trace, |at, observed, _, decide| {
            for approve in [false, true] {
                let place = format!("{} at {at}", trace.name);
                let Decision::Act(step) = decide(approve) else { continue };
                let subscription = observed.subscription.as_ref().unwrap();
                assert!(approve, "{place}: {step:?} though nothing was to be approved");
                match step {
                    Step::Hold { remember, .. } => {
                        assert_eq!(
                            remember.as_ref(),
                            Some(&subscription.spec.install_plan_approval),
                            "{place}"
                        );
                        assert_eq!(remember, Some(Approval::Automatic), "{place}");
                    }
                    Step::Approve { plan, csvs } => {
                        approvals += 1;
                        let plan = observed.plans.iter().find(|found| found.name() == plan).unwrap();
                        assert_eq!(plan.status.phase, InstallPlanPhase::RequiresApproval, "{place}");
                        assert!(!plan.spec.approved, "{place}: approved already");
                        assert_eq!(plan.spec.cluster_service_version_names, csvs, "{place}");
                        assert_eq!(csvs.len(), 1, "{place}: {csvs:?}");
                        // What is installed must be up, or OLM leaves the new one pending for ever.
                        let installed = observed.installed();
                        assert!(installed.is_none_or(|csv| csv.succeeded()), "{place}");
                    }
                }
            }
        });
    }
    assert!(approvals >= 3, "the recordings with approvals were not seen");
}

/// The decision right before the administrator began to mend things, or at the end.
fn verdict(trace: &Trace) -> String {
    let mut last = String::new();
    let mut mended = false;
    at_every_moment(trace, |_, _, action, decide| {
        mended |=
            action.is_some_and(|action| action.contains("repair") || action.starts_with("what remains"));
        if !mended {
            last = match decide(false) {
                Decision::Arrived => "arrived".into(),
                Decision::Act(step) => format!("{step:?}"),
                Decision::Wait(awaited) => format!("waits for {awaited:?}"),
                Decision::Suspect(_, stuck) => format!("perhaps stuck: {}", stuck.code),
                Decision::Stuck(stuck) => format!("stuck: {}", stuck.code),
            };
        }
    });
    last
}

#[test]
fn the_right_verdict_before_anything_was_mended() {
    let lines: Vec<String> =
        Trace::all().iter().map(|trace| format!("{}: {}", trace.name, verdict(trace))).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// Right after the channel was changed, OLM still has the plan of the old one.
#[test]
fn the_plan_of_the_channel_before_is_not_the_end() {
    let documents = [
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": "demo", "namespace": "ns"},
            "spec": {"name": "demo", "channel": "fast", "source": "c", "sourceNamespace": "ns", "installPlanApproval": "Manual"},
            "status": {"state": "UpgradePending", "currentCSV": "demo.v0.3.0", "installedCSV": "demo.v0.1.0"},
        }),
        json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "g", "namespace": "ns"}}),
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": {"name": "install-old", "namespace": "ns"},
            "spec": {"approval": "Manual", "approved": false, "clusterServiceVersionNames": ["demo.v0.3.0"]},
            "status": {"phase": "RequiresApproval"},
        }),
    ];
    let observed = Observed::of(documents.iter(), "ns", "demo");
    let goal = Goal { way: vec!["demo.v0.4.0".into()], approve: true, ..Goal::default() };
    let Decision::Suspect(awaited, stuck) = decide(&goal, &observed) else {
        panic!("{:?}", decide(&goal, &observed))
    };
    assert_eq!((awaited, stuck.code), (Awaited::Plan("demo.v0.4.0".into()), "plan-leads-elsewhere"));
}
