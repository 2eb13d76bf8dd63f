use std::path::Path;

use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("manifests-missing", Error, OLM, "manifests_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    if facts.manifests().next().is_none() {
        let finding = Finding::new(&RULE.code, "there are no files in `manifests/`")
            .at(facts.place())
            .subject(facts.name);
        findings.push(finding.help(help(facts.name)));
    }
}

fn help(name: &str) -> String {
    let path = Path::new(name);
    if path.file_name().is_some_and(|name| name == "manifests" || name == "metadata") {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return format!(
            "give the bundle's directory, which holds `manifests/` and `metadata/`; here it may be `{}`",
            parent.display()
        );
    }
    "put the ClusterServiceVersion and the CRDs into `manifests/`, right below the bundle's directory"
        .to_owned()
}
