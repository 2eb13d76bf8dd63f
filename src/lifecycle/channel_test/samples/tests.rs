//! What counts as a change of a custom resource.

use super::*;

fn sample(before: Value) -> Sample {
    let resource = Resource {
        group: "example.com".into(),
        version: "v1".into(),
        kind: "Demo".into(),
        plural: "demos".into(),
        namespaced: true,
    };
    let key = Key::new(&resource, "ns", "a");
    Sample { resource, key, crd: Some("demos.example.com".into()), before }
}

#[track_caller]
fn check_conditions(before: &[(&str, &str)], after: &[(&str, &str)], expected: Option<&str>) {
    let object = |list: &[(&str, &str)]| {
        let list: Vec<Value> =
            list.iter().map(|(kind, status)| json!({"type": kind, "status": status})).collect();
        json!({"status": {"conditions": list}})
    };
    let found = worsened(&sample(object(before)), &object(after)).map(|fault| fault.sentence);
    assert_eq!(found.as_deref(), expected);
}

#[test]
fn a_condition_that_was_good_has_to_stay_good() {
    check_conditions(&[("Ready", "True")], &[("Ready", "True"), ("New", "False")], None);
    check_conditions(
        &[("Ready", "True")],
        &[("Ready", "False")],
        Some("condition `Ready` of demo/a in ns was True and is False"),
    );
    check_conditions(
        &[("Ready", "True")],
        &[],
        Some("condition `Ready` of demo/a in ns was True and is gone"),
    );
    // What was not good before is no fault of the hop.
    check_conditions(&[("Ready", "False")], &[("Ready", "False")], None);
}

#[test]
fn a_condition_that_names_a_fault_is_good_when_it_does_not_hold() {
    check_conditions(&[("Degraded", "False")], &[], None);
    check_conditions(&[("Degraded", "False")], &[("Degraded", "Unknown")], None);
    check_conditions(
        &[("Degraded", "False")],
        &[("Degraded", "True")],
        Some("condition `Degraded` of demo/a in ns was False and is True"),
    );
}

#[test]
fn that_something_goes_on_is_neither_good_nor_bad() {
    check_conditions(&[("Progressing", "True")], &[("Progressing", "False")], None);
    check_conditions(&[("Reconciling", "False")], &[("Reconciling", "True")], None);
}

#[test]
fn what_was_in_a_spec_stays_and_what_is_added_is_no_change() {
    let mut found = Vec::new();
    let before = json!({"size": 3, "hosts": ["a", "b"], "mode": "fast", "deep": {"x": 1}});
    let after = json!({"size": 4, "hosts": ["a", "b"], "deep": {"x": 1, "y": 2}, "new": true});
    differ(&before, &after, "spec", &mut found);
    assert_eq!(found, ["spec.mode was \"fast\" and is gone", "spec.size was 3 and is 4"]);
}
