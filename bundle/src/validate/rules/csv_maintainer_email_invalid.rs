use crate::email::check_address;
use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule, rule};
use crate::yaml::steps;

rule!("csv-maintainer-email-invalid", Error, OPERATORHUB, "csv_maintainer_email_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (index, maintainer) in csv.typed.spec.maintainers.iter().enumerate() {
        let email = maintainer.email.as_str();
        let Some(why) = check_address(email).err().filter(|_| !email.is_empty()) else { continue };
        let message = format!("`{}` is not an address of mail: {why}", email.replace('`', "'"));
        let finding = csv.object.finding(&RULE.code, message, steps!("spec", "maintainers", index, "email"));
        findings.push(finding.help("write one address, such as `redis@example.com`"));
    }
}
