use crate::finding::Findings;
use crate::names::check_csv_name;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-replaces-invalid", Error, OLM, "csv_replaces_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let replaces = csv.typed.spec.replaces.as_str();
    let Some(why) = check_csv_name(replaces).err().filter(|_| !replaces.is_empty()) else { return };
    let message = format!("`{replaces}` cannot name a ClusterServiceVersion: {why}");
    findings.push(
        csv.object
            .finding(&RULE.code, message, steps!("spec", "replaces"))
            .help("`spec.replaces` takes the `metadata.name` of the ClusterServiceVersion before this one"),
    );
}
