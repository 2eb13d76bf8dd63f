//! `olm status` as a command: on an API server with an OLM whose API of packages is absent, down, or does not answer.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::dead::{Answer, SOON, StandIn, interrupt, kubeconfig, said};

/// What the server says of OLM's API of packages.
#[derive(Clone, Copy, PartialEq)]
enum Packages {
    Served,
    /// The kind is not known.
    Absent,
    /// The APIService says that nobody answers, and the server does as well.
    Down,
    /// There is no APIService to look at, and the server says that it cannot ask.
    Unavailable,
    Silent,
}

/// An API server with an OLM that runs.
fn olm(packages: Packages) -> StandIn {
    StandIn::start(move |path| {
        let list = |items: Vec<Value>| {
            Answer::Json(
                json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "7"}, "items": items}),
            )
        };
        let path = path.split('?').next().unwrap();
        match path.rsplit('/').next().unwrap() {
            "deployments" => list(
                ["olm-operator", "catalog-operator", "packageserver"]
                    .map(|name| {
                        json!({
                            "metadata": {"name": name, "namespace": "olm"}, "spec": {"replicas": 1},
                            "status": {"availableReplicas": 1, "updatedReplicas": 1},
                        })
                    })
                    .to_vec(),
            ),
            "customresourcedefinitions" => list(
                [
                    "catalogsources",
                    "clusterserviceversions",
                    "installplans",
                    "olmconfigs",
                    "operatorconditions",
                    "operatorgroups",
                    "operators",
                    "subscriptions",
                ]
                .map(|name| {
                    json!({
                        "metadata": {"name": format!("{name}.operators.coreos.com")},
                        "spec": {"versions": [{"name": "v1", "served": true}]},
                        "status": {"conditions": [{"type": "Established", "status": "True"}]},
                    })
                })
                .to_vec(),
            ),
            "clusterserviceversions" | "catalogsources" => list(Vec::new()),
            "v1.packages.operators.coreos.com" if packages == Packages::Down => Answer::Json(json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": "v1.packages.operators.coreos.com"},
                "status": {"conditions": [{
                    "type": "Available", "status": "False", "reason": "FailedDiscoveryCheck", "message": "no endpoints",
                }]},
            })),
            "packagemanifests" => match packages {
                Packages::Served => list(Vec::new()),
                Packages::Absent => Answer::Status(404),
                Packages::Down | Packages::Unavailable => Answer::Status(503),
                Packages::Silent => Answer::Silence,
            },
            _ => Answer::Status(404),
        }
    })
}

fn status(server: &StandIn, words: &[&str]) -> (std::process::Output, Duration) {
    let (_dir, config) = kubeconfig(server.port);
    let begun = Instant::now();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_olmkit"));
    let output =
        command.args(["olm", "status"]).args(words).arg("--kubeconfig").arg(config).output().unwrap();
    (output, begun.elapsed())
}

#[test]
fn olm_status_says_why_the_api_of_packages_does_not_answer_and_shows_the_rest() {
    for (packages, words, why) in [
        (
            Packages::Absent,
            &[][..],
            ": the cluster does not serve `packagemanifests.packages.operators.coreos.com`",
        ),
        (
            Packages::Down,
            &[],
            ": apiservice/v1.packages.operators.coreos.com is not available (FailedDiscoveryCheck): no endpoints",
        ),
        (Packages::Unavailable, &["--timeout", "2s"], ": timed out after 2 s trying to list"),
        (Packages::Silent, &["--timeout", "6s"], ": the cluster at "),
    ] {
        let (output, took) = status(&olm(packages), words);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}{}", said(&output));
        assert!(told.contains(&format!("the API of packages does not answer{why}")), "{told}");
        assert!(told.contains("catalog-operator"), "{told}");
        assert!(took < SOON, "{took:?}");
    }
    let (output, _) = status(&olm(Packages::Served), &[]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn ctrl_c_while_the_api_of_packages_is_asked_is_no_status() {
    let server = olm(Packages::Silent);
    let (_dir, config) = kubeconfig(server.port);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.args(["olm", "status", "--kubeconfig"]).arg(config);
    let child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    server.until("/packagemanifests");
    interrupt(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(output.stdout.is_empty(), "{output:?}");
}
