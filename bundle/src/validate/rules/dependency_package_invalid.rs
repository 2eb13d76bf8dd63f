use crate::finding::Findings;
use crate::validate::dependencies::PACKAGE;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::version::VersionRange;
use crate::yaml::steps;

rule!("dependency-package-invalid", Error, OLM, "dependency_package_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (dependency, fields) in facts.dependencies_of(PACKAGE) {
        if fields.text(&["packageName"]).is_empty() {
            let message = "a dependency on a package has no `packageName`";
            let finding = dependency.finding(&RULE.code, message, steps!("value", "packageName"));
            findings.push(finding.help("name the package as catalogs do"));
        }
        let message = match fields.text(&["version"]) {
            "" => "a dependency on a package has no `version`".to_owned(),
            range => match range.parse::<VersionRange>() {
                Ok(_) => continue,
                Err(error) => error.to_string(),
            },
        };
        let finding = dependency.finding(&RULE.code, message, steps!("value", "version"));
        findings.push(finding.help("write a range of full versions, such as `>=1.2.0 <2.0.0` or `1.x`"));
    }
}
