use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule};
use crate::version::parse_tolerant;
use crate::yaml::steps;

rule!("csv-release-name-mismatch", Warning, STRICT, "csv_release_name_mismatch.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let (Some(csv), Some(annotations)) = (facts.csv(), facts.annotations()) else { return };
    let (spec, package) = (&csv.typed.spec, annotations.package());
    let Ok(version) = parse_tolerant(&spec.version) else { return };
    let expected = format!("{package}-v{version}-{}", spec.release);
    if spec.release.is_empty() || package.is_empty() || csv.typed.name() == expected {
        return;
    }
    let message = format!("the name is `{}`, expected `{expected}`", csv.typed.name());
    let finding = csv
        .object
        .finding(&RULE.code, message, steps!("metadata", "name"))
        .and(csv.object.place(steps!("spec", "release")));
    findings.push(finding.help("write `PACKAGE-vVERSION-RELEASE`, or leave out `spec.release`"));
}
