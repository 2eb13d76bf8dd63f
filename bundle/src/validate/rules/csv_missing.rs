use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("csv-missing", Error, OLM, "csv_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    // An unreadable manifest may be the one that is missed.
    if facts.csv_object().is_some() || facts.manifests().next().is_none() || !facts.all_manifests_are_read() {
        return;
    }
    findings.push(
        Finding::new(&RULE.code, "there is no ClusterServiceVersion in `manifests/`")
            .at(facts.place())
            .subject(facts.name)
            .help("add the operator's ClusterServiceVersion; without it there is nothing to install"),
    );
}
