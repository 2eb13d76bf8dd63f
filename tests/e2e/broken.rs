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
use crate::small::{Version, published};

/// From the moment at which the cluster shows a fault to the end of `upgrade`.
const SOON: Duration = Duration::from_secs(10);
/// The same where the fault can pass by itself, as an image that is pushed a moment later.
const AFTER_A_WHILE: Duration = Duration::from_secs(30);

/// What is wrong with an upgrade. The package is called as its code.
struct Fault {
    /// The test's name, and the code.
    names: (&'static str, &'static str),
    /// More of the package file.
    more: &'static str,
    /// Text of the manifests, and what replaces it.
    change: (&'static str, &'static str),
    /// What happens to the namespace between installation and upgrade: words for kubectl.
    between: &'static [&'static str],
    /// Objects of the namespace that show it, in which text, and how long it may take from then on; none if it is known before.
    shown: Option<(&'static str, &'static str, Duration)>,
}

const NONE: Fault =
    Fault { names: ("", ""), more: "", change: ("no such text", ""), between: &[], shown: None };

const FAULTS: [Fault; 7] = [
    Fault {
        names: ("a_missing_image_is_named_under_olm", "image-pull"),
        change: ("/e2e/probe:latest", "/e2e/nothing:latest"),
        shown: Some(("pods", "ErrImagePull", AFTER_A_WHILE)),
        ..NONE
    },
    Fault {
        names: ("a_missing_secret_is_named_under_olm", "container-config"),
        change: (
            "command: [/probe, pause]",
            "command: [/probe, pause], envFrom: [{secretRef: {name: absent}}]",
        ),
        shown: Some(("pods", "CreateContainerConfigError", AFTER_A_WHILE)),
        ..NONE
    },
    // The catalog's pod and the operator's are there: that of the unpacking Job is refused.
    Fault {
        names: ("a_quota_is_named_under_olm", "quota-exceeded"),
        between: &["create", "quota", "two", "--hard=pods=2"],
        shown: Some(("events", "exceeded quota", AFTER_A_WHILE)),
        ..NONE
    },
    Fault {
        names: ("pod_security_is_named_under_olm", "pod-security"),
        between: &["label", "namespace", "{}", "pod-security.kubernetes.io/enforce=restricted"],
        shown: Some(("events", "violates PodSecurity", SOON)),
        ..NONE
    },
    Fault {
        names: ("an_immutable_selector_is_refused_before_olm", "immutable-field"),
        change: ("app: immutable-field", "app: other"),
        ..NONE
    },
    Fault {
        names: ("a_missing_dependency_is_refused_before_olm", "dependency-missing"),
        more: "dependencies: [{type: olm.package, value: {packageName: nowhere, version: '>=1.0.0'}}]\n",
        ..NONE
    },
    Fault {
        names: ("an_old_kubernetes_is_refused_before_olm", "kubernetes-too-old"),
        more: "minKubeVersion: 9.9.9\n",
        ..NONE
    },
];

pub(crate) fn trials() -> Vec<Trial> {
    let name = "upgrades_that_cannot_succeed_are_named_under_olm";
    vec![trial_with(name, Company::Any, Some(needed()), all)]
}

fn all(namespace: &Namespace) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let versions = FAULTS.iter().flat_map(|fault| {
        let sound = Version { package: fault.names.1, ..Version::default() };
        [sound, Version { version: "2.0.0", more: fault.more, change: fault.change, ..sound }]
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
    if !fault.between.is_empty() {
        let words: Vec<_> =
            fault.between.iter().map(|word| if *word == "{}" { &namespace.name } else { *word }).collect();
        namespace.kubectl(&words)?;
    }
    let before = state(namespace)?;
    let (failed, after) = while_it_shows(fault, namespace, || {
        told.refused(&["upgrade", code, "--timeout", "150s", "--accept-missing-images"])
    })?;
    let named = if fault.shown.is_some() { format!("[{code}]") } else { format!("--accept {code}") };
    assert!(failed.contains(&named), "{failed}");
    if let Some((.., limit)) = fault.shown {
        let after = after.ok_or_else(|| format!("the cluster never showed it\n{failed}"))?;
        assert!(after <= limit, "it took {after:?}\n{failed}");
        let diagnosis: Value = serde_json::from_str(&told.refused(&["doctor", code, "--output", "json"])?)?;
        assert_eq!(diagnosis["causes"][0]["code"], code, "{diagnosis:#}");
    } else {
        assert_eq!(state(namespace)?, before, "something was changed\n{failed}");
    }
    let available = ["get", "deployment", code, "--output", "jsonpath={.status.availableReplicas}"];
    assert_eq!(namespace.kubectl(&available)?, "1", "the version before does not serve any more");
    told.operator(&["uninstall", code])?;
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
            let (kind, text, _) = fault.shown?;
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
