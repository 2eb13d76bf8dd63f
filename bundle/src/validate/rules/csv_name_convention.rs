use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{GOOD_PRACTICES, Rule, rule};
use crate::yaml::{Step, steps};

const RELEASE: &[Step<'_>] = &[Step::Key("spec"), Step::Key("release")];

rule!("csv-name-convention", Warning, GOOD_PRACTICES, "csv_name_convention.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let name = csv.typed.name();
    if name.matches(".v").count() != 1 {
        let message = format!("`{name}` is not an operator's name, `.v` and a version");
        let help = "name it `NAME.vX.Y.Z`, such as `redis-operator.v0.1.0`";
        let mut finding = csv.object.finding(&RULE.code, message, steps!("metadata", "name")).help(help);
        // A name with a release has no `.v`.
        if let Some(place) = finding.place.as_mut().filter(|_| !csv.object.text(RELEASE).is_empty()) {
            place.made_by = csv.object.made_by(RELEASE);
        }
        findings.push(finding);
    }
}
