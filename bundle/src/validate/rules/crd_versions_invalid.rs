use std::collections::BTreeSet;

use crate::crd::Crd;
use crate::finding::Findings;
use crate::names::check_dns_1035_label;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::{Node, steps};

rule!("crd-versions-invalid", Error, OLM, "crd_versions_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, crd) in facts.readable_crds() {
        let mut report = |path: &[_], message: String, help: &str| {
            findings.push(object.finding(&RULE.code, message, path).help(help));
        };
        let versions = crd.list(steps!("spec", "versions"));
        let mut names = BTreeSet::new();
        let mut stored = Vec::new();
        for (index, version) in versions.iter().enumerate() {
            let view = Crd(version);
            let name = view.text(steps!("name"));
            if let Err(why) = check_dns_1035_label(&name) {
                let message = format!("`{name}` cannot be the name of a version: {why}");
                report(
                    steps!("spec", "versions", index, "name"),
                    message,
                    "write `v1`, `v1beta1` or the like",
                );
            }
            if view.get(steps!("storage")).and_then(Node::as_bool) == Some(true) {
                stored.push(name.clone());
            }
            if let Some(why) = warning_problem(view) {
                let path = steps!("spec", "versions", index, "deprecationWarning");
                report(
                    path,
                    format!("the deprecation warning of `{name}` {why}"),
                    "shorten, correct or remove it",
                );
            }
            if !names.insert(name.clone()) {
                let message = format!("the version `{name}` is listed twice");
                report(steps!("spec", "versions", index, "name"), message, "remove one of them");
            }
        }
        let single = crd.text(steps!("spec", "version"));
        if !crd.is_v1() && !single.is_empty() {
            let first = versions.first().map(|version| Crd(version).text(steps!("name")));
            if let Err(why) = check_dns_1035_label(&single) {
                let message = format!("`{single}` cannot be the name of a version: {why}");
                report(steps!("spec", "version"), message, "write `v1`, `v1beta1` or the like");
            } else if let Some(first) = first.filter(|first| *first != single) {
                let message =
                    format!("`spec.version` is `{single}`, but the first of `spec.versions` is `{first}`");
                report(steps!("spec", "version"), message, "remove `spec.version`");
            }
            if versions.is_empty() {
                continue;
            }
        }
        if stored.len() != 1 {
            let found = if stored.is_empty() {
                "none is".to_owned()
            } else {
                format!("`{}` are", stored.join("`, `"))
            };
            let message = format!("exactly one version is stored in the cluster, {found} marked so");
            report(
                steps!("spec", "versions"),
                message,
                "write `storage: true` for one version, and `false` for the others",
            );
        }
    }
}

/// What is wrong with the warning that users of a deprecated version get.
fn warning_problem(version: Crd<'_, '_>) -> Option<&'static str> {
    let warning = version.get(steps!("deprecationWarning"))?.to_text()?;
    if version.get(steps!("deprecated")).and_then(Node::as_bool) != Some(true) {
        Some("is set on a version that is not deprecated")
    } else if warning.is_empty() {
        Some("is empty")
    } else if warning.len() > 256 {
        Some("is longer than 256 characters")
    } else if warning.contains(|c: char| c.is_control() || c.is_whitespace() && c != ' ') {
        Some("has a character that cannot be printed")
    } else {
        None
    }
}
