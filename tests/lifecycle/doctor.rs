//! What the doctor says at every moment of every recording, with the lines of the administrator and of logs left out.

use std::fmt::Write as _;

use olmkit::lifecycle::doctor::{Cause, Diagnosis, Recorder, Repair, Scope, State, diagnose, replay};
use olmkit::report::json::DiagnosisReport;
use serde_json::Value;

/// The recordings, by name.
pub(crate) fn recordings() -> Vec<(String, String)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/olm-traces");
    let mut all: Vec<(String, String)> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    all.sort();
    assert!(all.len() > 50, "recordings are missing");
    all
}

/// Diagnoses after every event, and hands each diagnosis to `look`.
fn at_every_moment(text: &str, mut look: impl FnMut(i64, &Diagnosis)) {
    let mut recorder = Recorder::new();
    let events: Vec<(i64, &str)> = text
        .lines()
        .filter_map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            value.get("type").is_some().then(|| (value["t"].as_i64().unwrap(), line))
        })
        .collect();
    for (at, (time, line)) in events.iter().enumerate() {
        recorder.feed(line, None).unwrap();
        // Events of one moment are one state.
        if events.get(at + 1).is_some_and(|(next, _)| next == time) {
            continue;
        }
        look(*time, &diagnose(recorder.observation(), &Scope::default()));
    }
}

fn verdict(diagnosis: &Diagnosis) -> String {
    let causes: Vec<String> =
        diagnosis.causes.iter().map(|cause| format!(" {} {}", cause.code, cause.object.short())).collect();
    format!("{}{}", diagnosis.state.as_str(), causes.join(","))
}

/// One walk through all of them, since a diagnosis of each moment takes long.
#[test]
fn every_moment_of_every_recording() {
    let schema: Value = serde_json::from_str(include_str!("../../docs/schemas/diagnosis-v1.json")).unwrap();
    let mut told = String::new();
    for (name, text) in recordings() {
        writeln!(told, "{name}").unwrap();
        let is_fine = FINE.iter().any(|number| name.split('-').next() == Some(*number));
        let mut last = String::new();
        at_every_moment(&text, |at, diagnosis| {
            state_and_causes_agree(&name, at, diagnosis);
            if is_fine {
                assert!(diagnosis.causes.is_empty(), "{name} at {at}: {diagnosis:#?}");
                assert!(matches!(diagnosis.state, State::Healthy | State::Progressing), "{name} at {at}");
            }
            let verdict = verdict(diagnosis);
            if verdict != last {
                writeln!(told, "  {at} {verdict}").unwrap();
                let report = DiagnosisReport { schema: "olmkit.diagnosis/v1", diagnosis };
                let report = serde_json::to_value(report).unwrap();
                follows(&report, &schema, &schema).unwrap_or_else(|error| panic!("{name} at {at}: {error}"));
                last = verdict;
            }
        });
    }
    insta::assert_snapshot!(told);
    let unread: &[&str] = &[];
    let report = diagnose(&replay(unread.iter().copied(), None).unwrap(), &Scope::default());
    let report = serde_json::to_value(DiagnosisReport { schema: "olmkit.diagnosis/v1", diagnosis: &report });
    follows(&report.unwrap(), &schema, &schema).unwrap();
}

fn state_and_causes_agree(name: &str, at: i64, diagnosis: &Diagnosis) {
    let is_stuck = matches!(diagnosis.state, State::Broken | State::Waiting);
    assert_eq!(is_stuck, !diagnosis.causes.is_empty(), "{name} at {at}: {diagnosis:?}");
    for Cause { code, sentence, evidence, repair, .. } in &diagnosis.causes {
        assert!(!evidence.is_empty() && !repair.is_empty(), "{name} at {at}: {code}");
        assert!(!sentence.contains('\n'), "{name} at {at}: {sentence}");
    }
}

/// What an expert would say: the recording, a moment at which it is stuck, the code, the object, and words of the sentence.
const EXPERT: &[(&str, i64, &str, &str, &[&str])] = &[
    (
        "06b",
        60_000,
        "channel-not-found",
        "subscription/demo",
        &["no operators found in channel no-such-channel of package demo"],
    ),
    (
        "08",
        150_000,
        "image-pull",
        "pod/demo-controller-",
        &["cannot pull", "demo-controller:v0.1.0", "not found"],
    ),
    ("08", 361_000, "image-pull", "pod/demo-controller-", &["not found"]),
    (
        "09",
        90_000,
        "crashing",
        "pod/demo-controller-",
        &["container `manager`", "CrashLoopBackOff", "exit code 1"],
    ),
    ("10", 70_000, "unschedulable", "pod/demo-controller-", &["0/1 nodes are available: 1 Insufficient cpu"]),
    ("11a", 400_000, "image-pull", "pod/demo-controller-", &["`demo.v0.2.0`", "no-such-image:v0.2.0"]),
    ("11a", 650_000, "image-pull", "pod/demo-controller-", &["`demo.v0.2.0`"]),
    ("11a", 750_000, "csv-deleted", "subscription/demo", &["`demo.v0.2.0` was deleted"]),
    ("11b", 540_000, "image-pull", "pod/demo-controller-", &["no-such-image:v0.2.0"]),
    ("11c", 400_000, "image-pull", "pod/demo-controller-", &["`demo.v0.2.0`", "not found"]),
    ("11e", 310_000, "image-pull", "pod/demo-controller-", &["`demo.v0.2.0`", "not found"]),
    ("12a", 60_000, "bundle-image-pull", "pod/", &["demo-bundle:v0.1.0", "ErrImagePull", "not found"]),
    ("12a", 140_000, "bundle-image-pull", "job/", &["demo-bundle:v0.1.0", "not found"]),
    ("12c", 66_000, "bundle-image-pull", "job/", &["demo-bundle:v0.1.0", "not found"]),
    (
        "13a",
        77_800,
        "bundle-invalid",
        "pod/",
        &["container `pull`", "lstat /metadata/annotations.yaml: no such file or directory"],
    ),
    ("13b", 31_000, "bundle-without-csv", "configmap/", &["demo-bundle:v0.1.0", "no ClusterServiceVersion"]),
    ("13c", 50_000, "unsupported-kind", "installplan/", &["Ingress", "UnsupportedResource"]),
    (
        "13c",
        99_000,
        "unsupported-kind",
        "installplan/",
        &["Ingress", "the InstallPlan contains invalid data"],
    ),
    ("14a", 60_000, "catalog-image-pull", "pod/catalog-", &["catalog:no-such-tag", "not found"]),
    (
        "14b",
        80_000,
        "catalog-crashing",
        "pod/catalog-",
        &["multiple channel heads found in graph: demo.v0.1.0, demo.v0.2.0"],
    ),
    ("15a", 60_000, "no-operator-group", "namespace/", &["found 0 operatorGroups, expected 1"]),
    ("15b", 80_000, "no-operator-group", "namespace/", &["no OperatorGroup"]),
    (
        "16a",
        60_000,
        "several-operator-groups",
        "operatorgroup/second",
        &["found 2 operatorGroups, expected 1"],
    ),
    (
        "17a",
        100_000,
        "unsupported-install-mode",
        "clusterserviceversion/solo.v0.1.0",
        &["AllNamespaces InstallModeType not supported"],
    ),
    ("18a", 45_000, "package-not-found", "subscription/demo", &["no operators found in package demos"]),
    ("18b", 45_000, "channel-not-found", "subscription/demo", &["in channel stabel of package demo"]),
    ("18d", 75_000, "catalog-not-found", "subscription/demo", &["no operators found from catalog catalogue"]),
    (
        "19a",
        30_000,
        "dependency-missing",
        "subscription/demo",
        &["requires an operator with package: cache-db and with version in range: >=1.0.0"],
    ),
    (
        "20a",
        35_000,
        "api-conflict",
        "subscription/rival",
        &["provide the same API Demo", "demo.v0.1.0", "rival.v0.1.0"],
    ),
    (
        "20b",
        115_000,
        "operator-group-conflict",
        "clusterserviceversion/rival.v0.1.0",
        &["intersecting operatorgroups provide the same apis"],
    ),
    (
        "21",
        95_000,
        "csv-orphaned",
        "clusterserviceversion/demo.v0.1.0",
        &["exists and is not referenced by a subscription"],
    ),
    (
        "21b",
        95_000,
        "csv-orphaned",
        "clusterserviceversion/demo.v0.1.0",
        &["not referenced by a subscription"],
    ),
    (
        "22a",
        90_000,
        "crd-invalidates-resources",
        "installplan/",
        &["error validating existing CRs", "spec.size"],
    ),
    ("22a", 150_000, "crd-invalidates-resources", "installplan/", &["should be less than or equal to 9"]),
    ("22c", 250_000, "crd-invalidates-resources", "installplan/", &["updated validation is too restrictive"]),
    (
        "23a",
        60_000,
        "kubernetes-too-old",
        "clusterserviceversion/demo.v0.1.0",
        &["minKubeVersion (1.99.0) > server version (1.34.4)"],
    ),
    (
        "23b",
        22_000,
        "dependency-missing",
        "subscription/demo",
        &["requires an operator providing an API", "kind: Queue"],
    ),
    (
        "23c",
        60_000,
        "required-api-missing",
        "clusterserviceversion/demo.v0.1.0",
        &["ServiceMonitor", "Native API does not exist"],
    ),
    (
        "24",
        130_000,
        "not-upgradeable",
        "operatorcondition/demo.v0.1.0",
        &["a data migration is running; do not upgrade"],
    ),
    (
        "26",
        65_000,
        "approval-required",
        "installplan/",
        &["RequiresApproval", "`demo.v0.1.0` and `cache-db.v1.0.0`"],
    ),
    ("32", 80_000, "csv-deleted", "subscription/demo", &["`demo.v0.1.0` was deleted"]),
    ("32", 140_000, "csv-deleted", "subscription/demo", &["does not install it again"]),
    ("33", 40_000, "installer-account-missing", "operatorgroup/t33", &["`installer`", "not found"]),
    ("33", 110_000, "installer-account-missing", "operatorgroup/t33", &["`installer`"]),
    ("35", 100_000, "image-pull", "pod/demo-controller-", &["no-such-image:v0.2.0", "not found"]),
];

pub(crate) fn recording(number: &str) -> String {
    let mut all = recordings().into_iter();
    all.find(|(name, _)| name.starts_with(&format!("{number}-")))
        .unwrap_or_else(|| panic!("no recording {number}"))
        .1
}

/// The events of a recording without the lines of its administrator.
pub(crate) fn events_of(text: &str) -> String {
    text.lines().filter(|line| line.contains("\"type\":\"")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_cause_that_an_expert_would_quote() {
    for (number, at, code, object, words) in EXPERT {
        let text = events_of(&recording(number));
        let diagnosis = diagnose(&replay(text.lines(), Some(*at)).unwrap(), &Scope::default());
        let place = format!("{number} at {at}: {diagnosis:#?}");
        assert_eq!(diagnosis.causes.len(), 1, "{place}");
        let cause = &diagnosis.causes[0];
        assert_eq!(cause.code, *code, "{place}");
        assert!(cause.object.short().starts_with(object), "{place}");
        words.iter().for_each(|word| assert!(cause.sentence.contains(word), "no `{word}` in {place}"));
    }
}

#[test]
fn the_repairs_are_the_ones_that_worked() {
    for (number, at, part) in [
        ("08", 150_000, "delete pod demo-controller-"),
        ("11e", 310_000, "olmkit operator rollback demo -n t11e --to 0.1.0"),
        (
            "12a",
            140_000,
            "delete job/666762415e692fcfc489c037131ab7ef66c0a73d39313094bf5ba088903f0da configmap/666762415e692fcfc489c037131ab7ef66c0a73d39313094bf5ba088903f0da",
        ),
        ("14a", 60_000, "edit catalogsource.operators.coreos.com catalog"),
        ("15a", 60_000, "\"kind\":\"OperatorGroup\""),
        ("16a", 60_000, "delete operatorgroup.operators.coreos.com second"),
        ("17a", 100_000, "{\"spec\":{\"targetNamespaces\":[\"t17a\"]}}"),
        ("18d", 75_000, "{\"spec\":{\"source\":\"catalog\",\"sourceNamespace\":\"t18d\"}}"),
        ("20a", 35_000, "olmkit operator uninstall rival -n t20a"),
        (
            "20b",
            115_000,
            "patch operatorgroup.operators.coreos.com t20b --type merge -p '{\"spec\":{\"targetNamespaces\":[\"t20b\"]}}'",
        ),
        ("21", 95_000, "delete clusterserviceversion.operators.coreos.com demo.v0.1.0"),
        ("21b", 95_000, "\"installedCSV\":\"demo.v0.1.0\""),
        ("22a", 150_000, "--subresource status --type merge -p '{\"status\":{\"phase\":\"Installing\"}}'"),
        ("24", 130_000, "\"type\":\"Upgradeable\",\"status\":\"True\""),
        ("26", 65_000, "olmkit operator approve "),
        ("32", 80_000, "delete subscription.operators.coreos.com/demo"),
        ("33", 40_000, "create serviceaccount installer"),
    ] {
        let text = recording(number);
        let diagnosis = diagnose(&replay(text.lines(), Some(at)).unwrap(), &Scope::default());
        let repairs: Vec<String> =
            diagnosis.causes[0].repair.iter().map(|one| one.command.to_string()).collect();
        assert!(
            repairs.iter().any(|command| command.contains(part)),
            "{number}: no `{part}` in {repairs:#?}"
        );
    }
}

/// What the doctor offers at a moment of a recording.
fn repairs(number: &str, at: i64) -> Vec<Repair> {
    let text = events_of(&recording(number));
    let mut causes = diagnose(&replay(text.lines(), Some(at)).unwrap(), &Scope::default()).causes;
    assert_eq!(causes.len(), 1, "{number} at {at}: {causes:#?}");
    causes.remove(0).repair
}

#[test]
fn a_version_that_was_deleted_half_way_is_not_pinned() {
    for (number, at) in [("11a", 720_000), ("35", 140_000)] {
        let repairs = repairs(number, at);
        let [adopt, anew] = &repairs[..] else { panic!("{number}: {repairs:#?}") };
        assert!(
            adopt.command.to_string().contains("\"installedCSV\":\"demo.v0.1.0\""),
            "{number}: {adopt:#?}"
        );
        assert!(anew.command.to_string().contains(
            "delete subscription.operators.coreos.com/demo clusterserviceversion.operators.coreos.com/demo.v0.1.0 && echo"
        ), "{number}: {anew:#?}");
        assert!(!anew.command.to_string().contains("startingCSV") && !anew.safe, "{number}: {anew:#?}");
    }
}

#[test]
fn alternatives_say_instead() {
    for (number, at, count) in
        [("11a", 600_000, 2), ("11a", 720_000, 2), ("16a", 90_000, 2), ("35", 120_000, 3), ("35", 140_000, 2)]
    {
        let repairs = repairs(number, at);
        let alternatives =
            repairs.iter().filter(|one| one.effect.to_string().starts_with("instead, ")).count();
        assert_eq!((repairs.len(), alternatives), (count, count - 1), "{number} at {at}: {repairs:#?}");
        assert!(!repairs[0].effect.to_string().starts_with("instead"), "{number} at {at}: {repairs:#?}");
    }
    let groups: Vec<String> = repairs("16a", 90_000).into_iter().map(|one| one.effect.to_string()).collect();
    assert!(groups[0].contains("deletes `second` and keeps the OperatorGroup `t16a`"), "{groups:#?}");
    assert!(groups[1].contains("deletes `t16a` and keeps the OperatorGroup `second`"), "{groups:#?}");
    // Nothing is deleted by two repairs unless the later one is an alternative, and no two repairs do the same.
    for (number, at, ..) in EXPERT {
        let repairs = repairs(number, *at);
        for (place, one) in repairs.iter().enumerate() {
            let earlier = &repairs[..place];
            assert!(
                !earlier.iter().any(|other| other.command == one.command),
                "{number} at {at}: {repairs:#?}"
            );
            let deletes = |repair: &Repair| repair.command.to_string().contains(" delete ");
            assert!(
                one.effect.to_string().starts_with("instead, ")
                    || !deletes(one)
                    || !earlier.iter().any(deletes),
                "{number} at {at}: {repairs:#?}"
            );
        }
    }
}

/// Whether a value is as a schema says, as far as our schemas say anything.
fn follows(value: &Value, schema: &Value, root: &Value) -> Result<(), String> {
    if let Some(path) = schema["$ref"].as_str() {
        return follows(value, root.pointer(path.trim_start_matches('#')).unwrap(), root);
    }
    if let Some(known) = schema["oneOf"].as_array() {
        return known
            .iter()
            .any(|one| one["const"] == *value)
            .then_some(())
            .ok_or(format!("not known: {value}"));
    }
    let is_a = |kind: &Value| match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        kind => panic!("no such type: {kind}"),
    };
    let is_of_type = match &schema["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(is_a),
        kind => is_a(kind),
    };
    if !is_of_type {
        return Err(format!("not of type {}: {value}", schema["type"]));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        value.get(name).ok_or(format!("no `{name}` in {value}"))?;
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        let schema = schema["properties"].get(name).ok_or(format!("`{name}` is not in the schema"))?;
        follows(field, schema, root).map_err(|error| format!("{name}: {error}"))?;
    }
    value.as_array().into_iter().flatten().try_for_each(|item| follows(item, &schema["items"], root))
}

/// Every recording in which nothing goes wrong.
const FINE: &[&str] = &[
    "01", "02", "03", "04", "05", "06a", "07a", "07b", "19b", "20c", "25a", "25b", "27", "28", "29", "30",
    "31",
];

/// The recording, words with which the cluster first shows a cause, and its code.
const SHOWN: &[(&str, &str, &str)] = &[
    ("06b", "no-such-channel of package", "channel-not-found"),
    ("08", "ErrImagePull", "image-pull"),
    ("09", "CrashLoopBackOff", "crashing"),
    ("10", "Unschedulable", "unschedulable"),
    ("11a", "ErrImagePull", "image-pull"),
    ("11e", "ErrImagePull", "image-pull"),
    ("12a", "ErrImagePull", "bundle-image-pull"),
    ("13a", "lstat /metadata", "bundle-invalid"),
    ("13c", "UnsupportedResource", "unsupported-kind"),
    ("14a", "ErrImagePull", "catalog-image-pull"),
    ("14b", "multiple channel heads", "catalog-crashing"),
    ("15b", "NoOperatorGroup", "no-operator-group"),
    ("16a", "MultipleOperatorGroupsFound", "several-operator-groups"),
    ("17a", "UnsupportedOperatorGroup", "unsupported-install-mode"),
    ("18a", "no operators found in package demos", "package-not-found"),
    ("18b", "in channel stabel", "channel-not-found"),
    ("18d", "no operators found from catalog", "catalog-not-found"),
    ("19a", "requires an operator with package", "dependency-missing"),
    ("20a", "provide Demo", "api-conflict"),
    ("20b", "intersecting operatorgroups", "operator-group-conflict"),
    ("21", "not referenced by a subscription", "csv-orphaned"),
    ("22a", "updated validation is too restrictive", "crd-invalidates-resources"),
    ("23a", "minKubeVersion (", "kubernetes-too-old"),
    ("23b", "requires an operator providing", "dependency-missing"),
    ("23c", "Native API does not", "required-api-missing"),
    ("24", "OperatorConditionNotUpgradeable", "not-upgradeable"),
    ("26", "RequiresApproval", "approval-required"),
    ("33", "ServiceAccountNotFound", "installer-account-missing"),
    ("35", "ErrImagePull", "image-pull"),
    ("22c", "updated validation is too", "crd-invalidates-resources"),
    ("11b", "ErrImagePull", "image-pull"),
    ("11c", "ErrImagePull", "image-pull"),
    ("12c", "ErrImagePull", "bundle-image-pull"),
];

/// How often a wait asks the doctor.
const ASKING: i64 = 3_000;

#[test]
fn a_wait_ends_within_ten_seconds_of_the_moment_that_shows_the_cause() {
    for (number, words, code) in SHOWN {
        let text = events_of(&recording(number));
        let line =
            text.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{number}: {words}"));
        let shown = serde_json::from_str::<serde_json::Value>(line).unwrap()["t"].as_i64().unwrap();
        let named = (0..120).map(|step| step * 250).find_map(|after| {
            let seen = replay(text.lines(), Some(shown + after)).unwrap();
            let causes = diagnose(&seen, &Scope::default()).causes;
            causes.into_iter().find(|cause| cause.code == *code).map(|cause| (after, cause))
        });
        let Some((after, cause)) = named else { panic!("{number}: no {code} within 30 s of {shown}") };
        let milliseconds = |time: std::time::Duration| i64::try_from(time.as_millis()).unwrap();
        let ended = after + milliseconds(cause.patience()) + ASKING;
        let limit = milliseconds(cause.promised_within());
        assert!(
            ended <= limit,
            "{number}: {code} is named after {after} ms, and ends a wait after {ended} ms"
        );
    }
}
