//! What a failed test leaves to find its cause: objects, events and the logs of pods.

use std::fs;
use std::path::Path;

use libtest_mimic::Failed;

use crate::cluster::{Namespace, message};

/// Lines of events that the failure itself shows; all of them are in the file.
const SHOWN: usize = 25;

/// Writes everything in a namespace to a directory, and gives back the part to be shown at once.
pub(crate) fn collect(namespace: &Namespace, dir: &Path) -> String {
    let text = |result: Result<String, Failed>| result.unwrap_or_else(|failed| message(&failed));
    let pods = text(namespace.kubectl(&["get", "pods", "--output", "wide"]));
    let events = text(namespace.kubectl(&["get", "events", "--sort-by=.metadata.creationTimestamp"]));
    let written = write(namespace, dir, &events);
    let lines: Vec<&str> = events.lines().collect();
    let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
    let place = match written {
        Ok(()) => format!("objects, events and logs: {}", dir.display()),
        Err(failed) => format!("{}: {}", dir.display(), message(&failed)),
    };
    format!("--- pods\n{pods}--- events\n{last}\n--- {place}")
}

fn write(namespace: &Namespace, dir: &Path, events: &str) -> Result<(), Failed> {
    fs::create_dir_all(dir.join("pods"))?;
    fs::write(dir.join("events.txt"), events)?;
    let kinds = namespace.kubectl(&["api-resources", "--namespaced", "--verbs=list", "--output=name"])?;
    let kinds: Vec<&str> =
        kinds.lines().filter(|kind| !kind.starts_with("events") && *kind != "secrets").collect();
    let objects =
        namespace.kubectl(&["get", &kinds.join(","), "--output=yaml", "--show-managed-fields=false"])?;
    fs::write(dir.join("objects.yaml"), objects)?;
    for pod in namespace.kubectl(&["get", "pods", "--output=name"])?.lines() {
        let mut log = String::new();
        for which in ["--previous=true", "--previous=false"] {
            // Most containers have no earlier one; those that did not start have no log.
            log += &namespace
                .kubectl(&[
                    "logs",
                    pod,
                    "--all-containers",
                    "--prefix",
                    "--ignore-errors",
                    "--tail=5000",
                    which,
                ])
                .unwrap_or_default();
        }
        let described = namespace.kubectl(&["describe", pod])?;
        let name = pod.trim_start_matches("pod/");
        fs::write(dir.join(format!("pods/{name}.log")), log)?;
        fs::write(dir.join(format!("pods/{name}.txt")), described)?;
    }
    Ok(())
}
