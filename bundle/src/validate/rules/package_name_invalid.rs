use crate::annotations;
use crate::finding::{Finding, Findings};
use crate::names::check_label;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};

rule!("package-name-invalid", Error, INSTALL, "package_name_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(annotations) = facts.annotations() else { return };
    let package = annotations.package();
    // One that is missing or empty is `annotation-missing` or `annotation-empty`.
    let Some(why) = check_label(&package).err().filter(|_| !package.is_empty()) else { return };
    let message = format!("`{}` is not a package name: {why}", package.replace('`', "'"));
    let finding = Finding::new(&RULE.code, message).at(annotations.place(annotations::PACKAGE));
    findings.push(finding.subject(annotations.file.path).help("use a name such as `redis-operator`"));
}
