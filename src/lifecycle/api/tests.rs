use serde_json::json;

use super::*;

#[test]
fn what_is_not_known_survives() {
    let document = json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "redis.v9", "namespace": "redis", "somethingNew": [1]},
        "spec": {"version": "9.0.0", "futureField": {"a": null}},
        "status": {"phase": "Meditating", "conditions": [{"phase": "Levitating", "x": 1}]},
    });
    let object = Object::<ClusterServiceVersion>::read(document.clone()).unwrap();
    assert_eq!(object.status.phase, CsvPhase::Other("Meditating".into()));
    assert_eq!(object.status.phase.to_string(), "Meditating");
    assert_eq!(serde_json::to_value(&object).unwrap(), document);
    assert_eq!(object.key().to_string(), "clusterserviceversion/redis.v9");
}

#[test]
fn a_misfit_names_the_object() {
    let document = json!({"kind": "Subscription", "metadata": {"name": "redis"}, "spec": {"channel": 7}});
    let error = Object::<Subscription>::read(document).unwrap_err();
    assert_eq!(error.to_string(), "`subscription/redis` does not have the fields of its kind");
}

#[test]
fn own_and_others_are_two_modes() {
    let needed = InstallModeKind::needed("a", &["a".into(), "b".into()]);
    assert_eq!(needed, [InstallModeKind::MultiNamespace, InstallModeKind::OwnNamespace]);
}
