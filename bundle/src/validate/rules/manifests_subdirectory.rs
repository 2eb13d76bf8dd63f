use std::collections::BTreeSet;

use crate::finding::{Finding, Findings, Place};
use crate::load::Content;
use crate::parse::Role;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("manifests-subdirectory", Error, OLM, "manifests_subdirectory.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let names = facts.files.iter().filter(|file| file.role == Role::Manifest).filter_map(|file| {
        let below = file.path.strip_prefix("manifests/")?;
        let directory = below.split_once('/').map(|(directory, _)| directory);
        directory.or_else(|| matches!(file.content, Content::Directory).then_some(below))
    });
    for name in names.collect::<BTreeSet<_>>() {
        let path = format!("manifests/{name}");
        let finding = Finding::new(&RULE.code, format!("`{path}` is a directory, expected only manifests"))
            .at(Place::file(format!("{}/{path}", facts.name.trim_end_matches('/'))))
            .subject(path);
        findings.push(finding.help("move its files up into `manifests/`, or out of it"));
    }
}
