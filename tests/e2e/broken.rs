//! Upgrades that cannot succeed under the real OLM: what is known before is refused before anything changes, and for the rest
//! `upgrade` ends with the cause soon after the cluster shows it. What served goes on serving.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::cluster::{Namespace, message};
use crate::harness::{Company, part, trial_with};
use crate::olm::{Told, needed, push_catalog, serve};
use crate::small::{PLAIN, Version, published};

/// From the moment at which the cluster shows a fault to the end of `upgrade`.
const SOON: Duration = Duration::from_secs(10);
/// The same where the fault can pass by itself, as an image that is pushed a moment later.
const AFTER_A_WHILE: Duration = Duration::from_secs(30);

/// What goes wrong in an upgrade. The package is called as its code.
struct Fault {
    /// The test's name, and the code.
    names: (&'static str, &'static str),
    /// Text of the manifests, and what replaces it.
    change: (&'static str, &'static str),
    /// What happens between installation and upgrade, and at last: words for kubectl.
    between: &'static [&'static str],
    after: &'static [&'static str],
    /// What is there before the upgrade.
    beside: &'static str,
    /// Objects that show it, in which text, and how long it may take from then on.
    shown: (&'static str, &'static str, Duration),
}

const NONE: Fault = Fault {
    names: ("", ""),
    change: ("no such text", ""),
    between: &[],
    after: &[],
    beside: "",
    shown: ("", "", SOON),
};

/// Two CRDs of one kind.
const OTHER_CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cogs.broken.example.com}
spec: {group: broken.example.com, scope: Namespaced, names: {kind: Gear, plural: cogs}, versions: [{name: v1, served: true, \
     storage: true, schema: {openAPIV3Schema: {type: object}}}]}
";
const NEW_CRD: &str = "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.broken.example.com}
spec: {group: broken.example.com, scope: Namespaced, names: {kind: Gear, plural: gears}, versions: [{name: v1, served: true, \
     storage: true, schema: {openAPIV3Schema: {type: object}}}]}
---
apiVersion: apps/v1";

const FAULTS: [Fault; 5] = [
    Fault {
        names: ("a_missing_image_is_named_under_olm", "image-pull"),
        change: ("/e2e/probe:latest", "/e2e/nothing:latest"),
        shown: ("pods", "ErrImagePull", AFTER_A_WHILE),
        ..NONE
    },
    Fault {
        names: ("a_missing_secret_is_named_under_olm", "container-config"),
        change: (
            "command: [/probe, pause]",
            "command: [/probe, pause], envFrom: [{secretRef: {name: absent}}]",
        ),
        shown: ("pods", "CreateContainerConfigError", AFTER_A_WHILE),
        ..NONE
    },
    // The catalog's pod and the operator's are there: that of the unpacking Job is refused.
    Fault {
        names: ("a_quota_is_named_under_olm", "quota-exceeded"),
        between: &["create", "quota", "two", "--hard=pods=2"],
        shown: ("events", "exceeded quota", AFTER_A_WHILE),
        ..NONE
    },
    Fault {
        names: ("pod_security_is_named_under_olm", "pod-security"),
        between: &["label", "namespace", "{}", "pod-security.kubernetes.io/enforce=restricted"],
        shown: ("events", "violates PodSecurity", SOON),
        ..NONE
    },
    Fault {
        names: ("taken_names_of_a_crd_are_said_under_olm", "crd-names-taken"),
        change: ("---\napiVersion: apps/v1", NEW_CRD),
        beside: OTHER_CRD,
        shown: ("customresourcedefinitions", "KindConflict", SOON),
        after: &[
            "delete",
            "customresourcedefinitions",
            "cogs.broken.example.com",
            "gears.broken.example.com",
        ],
        ..NONE
    },
];

/// An upgrade that cannot succeed, which is known before it: a channel with its one version after the first.
struct Refusal {
    channel: &'static str,
    /// More of the package file.
    more: &'static str,
    /// Text of the manifests and of the package file, and what replaces it.
    change: (&'static str, &'static str),
    /// An object that somebody adds to the bundle.
    extra: &'static str,
    /// What is said.
    said: &'static str,
}

const REFUSALS: [Refusal; 8] = [
    Refusal {
        channel: "immutable-field",
        change: ("app: solid", "app: other"),
        said: "--accept immutable-field",
        ..NOT_REFUSED
    },
    Refusal {
        channel: "dependency-missing",
        more: "dependencies: [{type: olm.package, value: {packageName: nowhere, version: '>=1.0.0'}}]\n",
        said: "--accept dependency-missing",
        ..NOT_REFUSED
    },
    Refusal {
        channel: "api-missing",
        more: "requiredCrds: [{name: gadgets.nowhere.example.com, kind: Gadget, version: v1}]\n",
        said: "it requires the API `Gadget.nowhere.example.com/v1`",
        ..NOT_REFUSED
    },
    Refusal {
        channel: "monitoring-missing",
        change: ("---\napiVersion: apps/v1", MONITOR),
        said: "--accept required-api-missing",
        ..NOT_REFUSED
    },
    Refusal {
        channel: "kubernetes-too-old",
        more: "minKubeVersion: 9.9.9\n",
        said: "--accept kubernetes-too-old",
        ..NOT_REFUSED
    },
    Refusal {
        channel: "unsupported-install-mode",
        change: ("[OwnNamespace, SingleNamespace]", "[AllNamespaces]"),
        said: "--accept unsupported-install-mode",
        ..NOT_REFUSED
    },
    Refusal {
        channel: "unsupported-kind",
        extra: "{apiVersion: v1, kind: LimitRange, metadata: {name: solid}, spec: {limits: []}}",
        said: "--accept unsupported-kind",
        ..NOT_REFUSED
    },
    Refusal { channel: APART, said: "the channel has no edge from there", ..NOT_REFUSED },
];

const NOT_REFUSED: Refusal =
    Refusal { channel: "", more: "", change: ("no such text", ""), extra: "", said: "" };

/// The channel that the first version is not in.
const APART: &str = "preview";

/// A package, and one that it needs and whose image is missing.
const HUNGRY: [Version<'static>; 2] = [
    Version { package: "food", change: ("/e2e/probe:latest", "/e2e/nothing:latest"), ..PLAIN },
    Version {
        package: "hungry",
        more: "dependencies: [{type: olm.package, value: {packageName: food, version: '>=1.0.0'}}]\n",
        ..PLAIN
    },
];

const MONITOR: &str = "---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: solid}
spec: {selector: {matchLabels: {app: solid}}, endpoints: [{port: metrics}]}
---
apiVersion: apps/v1";

pub(crate) fn trials() -> Vec<Trial> {
    let olm_trial = |name, test| trial_with(name, Company::Any, Some(needed()), test);
    vec![
        olm_trial("upgrades_that_fail_are_explained_under_olm", all as fn(&Namespace) -> Result<(), Failed>),
        olm_trial("upgrades_that_cannot_succeed_are_refused_under_olm", refusals),
    ]
}

/// Nothing is changed by an upgrade that cannot succeed.
fn refusals(namespace: &Namespace) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let numbers: Vec<String> = (0..REFUSALS.len()).map(|number| format!("2.0.{number}")).collect();
    let channels: Vec<&str> = REFUSALS.iter().map(|refusal| refusal.channel).collect();
    let [own @ .., APART] = channels.as_slice() else { return Err("the last channel is another".into()) };
    let channels = format!("stable,{}", own.join(","));
    let first = Version { package: "solid", channels: &channels, ..PLAIN };
    let others = REFUSALS.iter().zip(&numbers).map(|(refusal, version)| {
        let Refusal { channel: channels, more, change, extra, .. } = *refusal;
        Version { version, channels, more, change, extra, ..first }
    });
    let versions = [first].into_iter().chain(others).chain(HUNGRY);
    published(namespace, dir, &versions.collect::<Vec<_>>())?;
    serve(namespace, "small", &push_catalog(dir, &namespace.image("catalog:v1"))?)?;
    let told = &mut Told { namespace, dir, text: String::new() };
    told.operator(&["install", "solid", "--version", "1.0.0", "--watch", &namespace.name, "--settle", "1s"])?;
    let before = state(namespace)?;
    for Refusal { channel, said, .. } in &REFUSALS {
        let words = ["upgrade", "solid", "--channel", channel, "--timeout", "60s", "--accept-missing-images"];
        let refused = told.refused(&words)?;
        assert!(refused.contains(said), "{channel}: {refused}");
        assert_eq!(state(namespace)?, before, "something was changed\n{refused}");
    }
    told.operator(&["uninstall", "solid"])?;
    // What is installed is up, and what it needs is not.
    let words =
        ["install", "hungry", "--accept-dependencies", "--watch", &namespace.name, "--timeout", "150s"];
    let failed = told.refused(&[&words[..], &["--accept-missing-images"]].concat())?;
    assert!(failed.contains("[image-pull]") && failed.contains("food.v1.0.0"), "{failed}");
    told.operator(&["uninstall", "hungry"])?;
    Ok(())
}

fn all(namespace: &Namespace) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let versions = FAULTS.iter().flat_map(|fault| {
        let sound = Version { package: fault.names.1, ..PLAIN };
        [sound, Version { version: "2.0.0", change: fault.change, ..sound }]
    });
    published(namespace, dir, &versions.collect::<Vec<_>>())?;
    let catalog = push_catalog(dir, &namespace.image("catalog:v1"))?;
    let run = |fault: &Fault| {
        part(fault.names.0, |namespace| {
            serve(namespace, "small", &catalog)?;
            fails(fault, &mut Told { namespace, dir, text: String::new() })
        })
    };
    // Two at a time: each has a catalog of its own to start.
    let (one, other) = FAULTS.split_at(FAULTS.len() / 2);
    let failures: Vec<String> = thread::scope(|scope| {
        let half =
            |faults: &'static [Fault]| faults.iter().filter_map(|fault| run(fault).err()).collect::<Vec<_>>();
        let other = scope.spawn(move || half(other).iter().map(message).collect::<Vec<_>>());
        let mut failures: Vec<_> = half(one).iter().map(message).collect();
        failures.extend(other.join().unwrap_or_else(|_| vec!["a test panicked".into()]));
        failures
    });
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n\n").into()) }
}

fn fails(fault: &Fault, told: &mut Told<'_>) -> Result<(), Failed> {
    let (namespace, code) = (told.namespace, fault.names.1);
    told.operator(&["install", code, "--version", "1.0.0", "--watch", &namespace.name, "--settle", "1s"])?;
    if !fault.beside.is_empty() {
        namespace.apply(fault.beside)?;
    }
    if !fault.between.is_empty() {
        let words: Vec<_> =
            fault.between.iter().map(|word| if *word == "{}" { &namespace.name } else { *word }).collect();
        namespace.kubectl(&words)?;
    }
    let (failed, after) = while_it_shows(fault, namespace, || {
        told.refused(&["upgrade", code, "--timeout", "150s", "--accept-missing-images"])
    })?;
    assert!(failed.contains(&format!("[{code}]")), "{failed}");
    let after = after.ok_or_else(|| format!("the cluster never showed it\n{failed}"))?;
    assert!(after <= fault.shown.2, "it took {after:?}\n{failed}");
    let diagnosis: Value = serde_json::from_str(&told.refused(&["doctor", code, "--output", "json"])?)?;
    assert_eq!(diagnosis["causes"][0]["code"], code, "{diagnosis:#}");
    // Installing it again must not advise to delete the version that serves.
    let (_, again) = told.run(&["install", code, "--dry-run"])?;
    assert!(!again.contains("without a Subscription") && !again.contains("kubectl delete"), "{again}");
    let available = ["get", "deployment", code, "--output", "jsonpath={.status.availableReplicas}"];
    assert_eq!(namespace.kubectl(&available)?, "1", "the version before does not serve any more");
    told.operator(&["uninstall", code])?;
    if !fault.after.is_empty() {
        namespace.kubectl(fault.after)?;
    }
    Ok(())
}

/// Subscriptions and plans, as they were written.
fn state(namespace: &Namespace) -> Result<String, Failed> {
    let path = "jsonpath={range .items[*]}{.kind}/{.metadata.name}: {.spec}{end}";
    namespace.kubectl(&[
        "get",
        "subscriptions.operators.coreos.com,installplans.operators.coreos.com",
        "--output",
        path,
    ])
}

/// Runs something, and says how long it went on after the cluster showed the fault.
fn while_it_shows(
    fault: &Fault,
    namespace: &Namespace,
    run: impl FnOnce() -> Result<String, Failed>,
) -> Result<(String, Option<Duration>), Failed> {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let shown = scope.spawn(|| {
            let (kind, text, _) = fault.shown;
            while !ended.load(Ordering::Relaxed) {
                let found = namespace.kubectl(&["get", kind, "--output", "json"]).unwrap_or_default();
                if found.contains(text) {
                    return Some(Instant::now());
                }
                thread::sleep(Duration::from_millis(500));
            }
            None
        });
        let said = run();
        let end = Instant::now();
        ended.store(true, Ordering::Relaxed);
        let shown = shown.join().unwrap_or(None);
        Ok((said?, shown.map(|shown| end.duration_since(shown))))
    })
}
