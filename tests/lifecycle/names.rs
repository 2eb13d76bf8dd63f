//! Names as people type them: as they are printed, of a version in place of its Subscription, with a slip, and of what is nowhere.

use std::fs;
use std::path::Path;

use olmkit::lifecycle::api::known;
use olmkit::lifecycle::engine::Options;
use serde_json::{Value, json};

use crate::command::{installed, olmkit, run, said};
use crate::world::{NS, World, told};

/// The verbs that take the name of an operator and change nothing of one that is up to date.
const VERBS: [&[&str]; 8] = [
    &["status"],
    &["describe"],
    &["doctor"],
    &["plan"],
    &["approve", "--dry-run"],
    &["upgrade", "--dry-run"],
    &["uninstall", "--dry-run"],
    &["rollback", "--to", "0.1.0", "--dry-run"],
];

/// A verb with a name; the verb is its first word.
fn with<'w>(verb: &[&'w str], name: &'w str) -> Vec<&'w str> {
    [&verb[..1], &[name], &verb[1..], &["--simulate", "c.json"]].concat()
}

#[test]
fn the_name_of_an_installed_version_means_its_subscription() {
    let root = installed();
    for verb in VERBS {
        let by_name = olmkit(root.path(), &with(verb, "demo"));
        let by_version = olmkit(root.path(), &with(verb, "demo.v0.1.0"));
        let both = [&by_name, &by_version]
            .map(|output| (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()));
        assert_eq!(both[0], both[1], "{verb:?}: {}", said(&by_version));
    }
}

#[test]
fn the_name_of_another_version_is_told_from_that_of_an_operator() {
    let root = installed();
    for verb in VERBS {
        let told = run(root.path(), &with(verb, "demo.v0.0.9"), 1);
        assert!(told.contains("`ns/demo`") && !told.contains("operator uninstall"), "{verb:?}: {told}");
    }
}

#[test]
fn a_name_that_matches_nothing_is_no_success() {
    let root = installed();
    for verb in VERBS {
        for name in ["nope", "dem", "ns/nope", "other/demo"] {
            let output = olmkit(root.path(), &with(verb, name));
            assert!(matches!(output.status.code(), Some(1 | 2)), "{verb:?} {name}: {}", said(&output));
            assert!(
                said(&output).contains("demo") || name.contains("nope"),
                "{verb:?} {name}: {}",
                said(&output)
            );
        }
    }
    for verb in [&["source", "remove"][..], &["source", "refresh"]] {
        run(root.path(), &[verb, &["nope", "--simulate", "c.json"]].concat(), 1);
    }
}

#[test]
fn a_name_is_taken_as_it_is_printed() {
    let root = installed();
    let listed = olmkit(root.path(), &["status", "demo", "--simulate", "c.json"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    let printed = listed.split(':').next().unwrap();
    assert_eq!(printed, "ns/demo");
    for verb in VERBS {
        let expected = olmkit(root.path(), &with(verb, "demo"));
        for name in [
            printed,
            "subscription/demo",
            "subscription.operators.coreos.com/demo",
            "clusterserviceversion/demo.v0.1.0",
        ] {
            let output = olmkit(root.path(), &with(verb, name));
            assert_eq!(output.status.code(), expected.status.code(), "{verb:?} {name}: {}", said(&output));
            assert_eq!(output.stdout, expected.stdout, "{verb:?} {name}: {}", said(&output));
        }
    }
    // What contradicts it is refused.
    for words in [
        &["status", "ns/demo", "-n", "other"][..],
        &["status", "ns/demo", "-A"],
        &["status", "a/b/c"],
        &["status", "ns/"],
    ] {
        run(root.path(), &[words, &["--simulate", "c.json"]].concat(), 2);
    }
    run(root.path(), &["status", "ns/demo", "-n", "ns", "--simulate", "c.json"], 0);
    run(root.path(), &["source", "refresh", "olm/catalog", "--simulate", "c.json"], 0);
    run(root.path(), &["source", "remove", "olm/catalog", "--force", "--dry-run", "--simulate", "c.json"], 0);
}

/// A Subscription to a package.
fn subscription(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"name": "demo", "channel": "stable", "source": "catalog", "sourceNamespace": "olm"},
    })
}

#[test]
fn of_six_hundred_candidates_ten_are_named() {
    let mut world = World::of("01");
    for number in 0..600 {
        world.cluster.store().create(subscription(&format!("ns-{number}"), "mine")).unwrap();
    }
    let said = told(world.run(|engine, _| engine.status("mine", None)).unwrap_err());
    assert!(said.starts_with("`mine` means 600 Subscriptions: ns-0/mine, "), "{said}");
    assert!(said.contains(" and 590 more\nname one of them as NAMESPACE/NAME") && said.len() < 300, "{said}");
    // A channel with many versions names those that are nearest.
    let root = tempfile::tempdir().unwrap();
    let mut catalog = "{schema: olm.package, name: demo, defaultChannel: stable}\n---\n".to_owned();
    let entries: Vec<String> = (0..600).map(|number| format!("{{name: demo.v1.{number}.0}}")).collect();
    let replaced = |number: usize| {
        if number == 0 { String::new() } else { format!(", replaces: demo.v1.{}.0", number - 1) }
    };
    let entries: Vec<String> = entries
        .iter()
        .enumerate()
        .map(|(number, entry)| format!("{}{}}}", entry.trim_end_matches('}'), replaced(number)))
        .collect();
    catalog +=
        &format!("{{schema: olm.channel, package: demo, name: stable, entries: [{}]}}\n", entries.join(", "));
    for number in 0..600 {
        catalog += &format!(
            "---\n{{schema: olm.bundle, package: demo, name: demo.v1.{number}.0, image: 'q.io/d@sha256:{number:064}', properties: [\
             {{type: olm.package, value: {{packageName: demo, version: 1.{number}.0}}}}]}}\n"
        );
    }
    fs::create_dir(root.path().join("cat")).unwrap();
    fs::write(root.path().join("cat/catalog.yaml"), catalog).unwrap();
    let words =
        ["install", "demo", "-n", "ns", "--version", "7", "--simulate", "c.json", "--catalog-from", "cat"];
    let told = run(root.path(), &words, 1);
    assert!(told.contains("it has 1.7.0, ") && told.contains(" and 590 more"), "{told}");
}

#[test]
fn a_catalog_that_is_nowhere_is_named_with_what_was_looked_for() {
    let root = installed();
    let cases: [&[&str]; 4] = [
        &["install", "demo", "-n", "b", "--simulate", "new.json", "--catalog-from", "nope"],
        &["upgrade", "demo", "--simulate", "c.json", "--catalog-from", "nope"],
        &["list", "--simulate", "c.json", "--catalog-from", "./nope"],
        &["test", "demo", "--simulate", "--catalog-from", "nope"],
    ];
    for words in cases {
        let output = olmkit(root.path(), words);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(3), "{words:?}: {told}");
        assert!(told.starts_with("error: there is no catalog at `"), "{words:?}: {told}");
        assert!(told.contains("nope`") && told.contains("--catalog-from"), "{words:?}: {told}");
    }
    assert!(!root.path().join("new.json").exists());
}

#[test]
fn a_directory_without_a_catalog_is_not_taken_for_an_empty_one() {
    let root = installed();
    let add = ["source", "add", "x", "bundles", "-n", "olm", "--simulate", "c.json"];
    let told = run(root.path(), &add, 1);
    assert!(told.starts_with("error: `bundles` is not a catalog: it has no package\n"), "{told}");
    let upgrade = ["upgrade", "demo", "--simulate", "c.json", "--catalog-from", "bundles"];
    let told = run(root.path(), &upgrade, 1);
    assert!(
        told.contains("is not a catalog: it has no package\n") && told.contains("--catalog-from"),
        "{told}"
    );
    // Of a catalog that was named it is told what it has.
    let install = ["install", "nix", "-n", "ns", "--catalog", "catalog", "--simulate", "c.json"];
    let told = run(root.path(), &install, 1);
    let expected =
        "error: the catalog `olm/catalog` does not offer a package `nix`\n  help: available packages: demo\n";
    assert_eq!(told, expected);
}

#[test]
fn a_flag_that_olm_would_not_honour_is_refused_before_anything_changes() {
    let root = installed();
    let before = fs::read(root.path().join("c.json")).unwrap();
    for words in [
        &["install", "demo", "-n", "ns", "--version", "0.1.0", "--approval", "Automatic"][..],
        &["upgrade", "demo", "--to", "0.2.0", "--approval", "Automatic"],
    ] {
        let told = run(root.path(), &[words, &["--simulate", "c.json"]].concat(), 1);
        assert!(told.contains("with --approval Automatic OLM does not stay at `demo.v0."), "{told}");
        assert!(
            told.contains("the channel's head, `demo.v0.3.0`") && told.contains("omit --approval"),
            "{told}"
        );
        assert_eq!(fs::read(root.path().join("c.json")).unwrap(), before, "{words:?}");
    }
    // To the head it is honoured.
    let words = ["upgrade", "demo", "--to", "0.3.0", "--approval", "Automatic", "--simulate", "c.json"];
    run(root.path(), &words, 0);
    let status = olmkit(root.path(), &["status", "demo", "--simulate", "c.json"]);
    assert!(String::from_utf8_lossy(&status.stdout).contains("approval Automatic"), "{status:?}");
}

/// The writes of a verb, without what only a real one can know.
fn writes(planned: &[olmkit::lifecycle::engine::Planned]) -> Vec<(String, Value)> {
    let bare = |one: &olmkit::lifecycle::engine::Planned| {
        let mut document = one.document.clone();
        if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
            if metadata.is_empty() {
                document.as_object_mut().unwrap().remove("metadata");
            }
        }
        let name = if one.key.kind == known::INSTALL_PLAN.kind { "plan" } else { &one.key.name };
        (format!("{} {}/{name}", one.verb, one.key.kind), document)
    };
    planned.iter().map(bare).collect()
}

#[test]
fn a_dry_run_prints_the_writes_that_are_made_then_and_no_others() {
    use olmkit::lifecycle::api::Approval;
    use olmkit::lifecycle::upgrade::Upgrade;

    let upgrade = |to: Option<&str>, approval: Option<Approval>| Upgrade {
        name: "demo".into(),
        namespace: Some(NS.into()),
        to: to.map(Into::into),
        approval,
        ..Upgrade::default()
    };
    for (name, request) in [
        ("to the head", upgrade(None, None)),
        ("to a version", upgrade(Some("0.2.0"), None)),
        ("where it is", upgrade(Some("0.1.0"), None)),
        ("with an approval", upgrade(None, Some(Approval::Automatic))),
    ] {
        for before in ["Manual", "Automatic"] {
            let mut world = crate::world::waiting();
            let key = olmkit::lifecycle::api::Key::new(&known::SUBSCRIPTION, NS, "demo");
            let patch = json!({"spec": {"installPlanApproval": before}});
            world.cluster.store().patch(&key, &patch).unwrap();
            let dry = Options { dry_run: true, ..Options::default() };
            let told = world.run_with(dry, |engine, _| {
                engine.upgrade(&request).unwrap();
                writes(&engine.planned)
            });
            let done = world.run(|engine, _| {
                engine.upgrade(&request).unwrap();
                writes(&engine.planned)
            });
            assert_eq!(told, done, "{name}, {before}");
        }
    }
    // And of an installation.
    for version in [None, Some("0.1.0")] {
        let request = crate::world::demo(version);
        let dry = Options { dry_run: true, ..Options::default() };
        let told = World::of("01").run_with(dry, |engine, _| {
            engine.install(&request).unwrap();
            writes(&engine.planned)
        });
        let done = World::of("01").run(|engine, _| {
            engine.install(&request).unwrap();
            writes(&engine.planned)
        });
        assert_eq!(told, done, "{version:?}");
    }
}

#[test]
fn a_backup_directory_that_is_none_is_refused_before_anything_changes() {
    let root = installed();
    run(root.path(), &["upgrade", "demo", "--simulate", "c.json"], 0);
    let before = fs::read(root.path().join("c.json")).unwrap();
    fs::write(root.path().join("file"), "mine").unwrap();
    for dir in ["file", "file/below"] {
        let words = ["rollback", "demo", "--to", "0.1.0", "--backup-dir", dir, "--simulate", "c.json"];
        for words in [&words[..], &[&words[..], &["--dry-run"]].concat()] {
            let told = run(root.path(), words, 3);
            assert!(told.starts_with("error: cannot keep the custom resources\n"), "{told}");
            assert!(told.contains(&format!("`{dir}`")) && told.contains("--backup-dir"), "{told}");
            assert!(!told.contains("gone"), "{told}");
        }
    }
    assert_eq!(fs::read(root.path().join("c.json")).unwrap(), before);
    assert_eq!(fs::read(root.path().join("file")).unwrap(), b"mine");
    assert!(!Path::new(&root.path().join("olmkit-backup")).exists());
}
