//! Namespaces, their OperatorGroups, and OLM itself.

use serde_json::json;

use super::{Observation, Scope, catalog, check, csv, diagnose, group, object, subscription};

#[test]
fn a_namespace_is_being_deleted() {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "here"},
        "status": {"phase": "Terminating", "conditions": [{
            "type": "NamespaceFinalizersRemaining", "status": "True", "message": "demos.example.com in 1 resource instances",
        }]},
    });
    check(
        "namespace-terminating",
        "namespace/here",
        "demos.example.com",
        vec![subscription(json!({})), group(), namespace],
    );
}

#[test]
fn olm_does_not_run() {
    let mut olm = object("apps/v1", "Deployment", "catalog-operator", json!({"status": {}}));
    olm["metadata"]["namespace"] = json!("olm");
    check(
        "olm-not-running",
        "deployment/catalog-operator",
        "no available pod",
        vec![subscription(json!({})), group(), catalog("READY"), olm],
    );
}

#[test]
fn a_version_says_that_its_operator_group_is_gone() {
    let failed = || csv("Failed", "NoOperatorGroup", "csv in namespace with no operatorgroups");
    // Without a Subscription, and without OperatorGroups in what was collected.
    let mut seen = Observation::new();
    seen.add(failed());
    let diagnosis = diagnose(&seen, &Scope::default());
    assert_eq!(diagnosis.causes[0].code, "no-operator-group", "{diagnosis:#?}");
    check("no-operator-group", "namespace/here", "no OperatorGroup", vec![failed()]);
    // A repair is one line, so that it can be pasted as it is shown.
    for one in &diagnosis.causes[0].repair {
        assert!(
            one.command.to_string().starts_with("echo '{") && !one.command.to_string().contains('\n'),
            "{}",
            one.command
        );
    }
}

#[test]
fn a_version_says_that_there_are_several_operator_groups() {
    let mut seen = Observation::new();
    seen.add(csv("Failed", "TooManyOperatorGroups", "csv created in namespace with multiple operatorgroups"));
    let diagnosis = diagnose(&seen, &Scope::default());
    assert_eq!(diagnosis.causes[0].code, "several-operator-groups", "{diagnosis:#?}");
}

#[test]
fn a_command_names_the_first_of_very_many_operator_groups() {
    let named = |number: usize| {
        let mut found = group();
        found["metadata"]["name"] = format!("group{number}").into();
        found
    };
    let mut objects: Vec<_> = (0..600).map(named).collect();
    objects.push(subscription(json!({})));
    let found = diagnose(&Observation::complete(objects, super::NOW), &Scope::default());
    let cause = &found.causes[0];
    assert_eq!(cause.code, "several-operator-groups", "{cause:#?}");
    let repair = &cause.repair[0];
    assert_eq!(repair.command.to_string().matches(" group").count(), 20, "{}", repair.command);
    let effect = repair.effect.to_string();
    assert!(effect.ends_with(": diagnose it again then, for the 579 others"), "{effect}");
}

#[test]
fn a_namespace_that_does_not_go_is_named_though_no_operator_is_left_in_it() {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "gone", "deletionTimestamp": "2026-01-01T00:30:00Z"},
        "status": {"phase": "Terminating", "conditions": [{
            "type": "NamespaceContentRemaining", "status": "True", "reason": "SomeResourcesRemain",
            "message": "Some resources are remaining: demos.example.com has 1 resource instances",
        }]},
    });
    let seen = Observation::complete([namespace], super::NOW);
    let scope = Scope { name: None, namespace: Some("gone".into()) };
    let found = diagnose(&seen, &scope);
    assert_eq!(found.causes[0].code, "namespace-terminating", "{found:#?}");
    assert!(found.causes[0].sentence.contains("demos.example.com has 1"), "{found:#?}");
    assert_eq!(found.state, super::State::Broken);
}
