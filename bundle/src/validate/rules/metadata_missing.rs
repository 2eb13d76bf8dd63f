use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("metadata-missing", Error, OLM, "metadata_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    if facts.metadata().next().is_none() {
        let finding = Finding::new(&RULE.code, "there are no files in `metadata/`")
            .at(facts.place())
            .subject(facts.name);
        findings
            .push(finding.help("add `metadata/annotations.yaml`, which names the package and its channels"));
    }
}
