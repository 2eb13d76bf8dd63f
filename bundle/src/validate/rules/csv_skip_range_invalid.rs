use crate::csv::annotation;
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::version::VersionRange;
use crate::yaml::steps;

rule!("csv-skip-range-invalid", Error, INSTALL, "csv_skip_range_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let annotations = csv.typed.metadata.annotations.as_ref();
    let Some(range) = annotations.and_then(|all| all.get(annotation::SKIP_RANGE)) else { return };
    let Err(error) = range.parse::<VersionRange>() else { return };
    let range = range.replace('`', "'");
    let message = format!("`{range}` is not a range of versions: {}", error.to_string().replace('`', "'"));
    let path = steps!("metadata", "annotations", annotation::SKIP_RANGE);
    let finding = csv.object.finding(&RULE.code, message, path);
    findings.push(finding.help("write it as `>=0.1.0 <0.2.0`"));
}
