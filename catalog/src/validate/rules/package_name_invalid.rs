use olmkit_bundle::finding::Findings;
use olmkit_bundle::names::check_label;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("package-name-invalid", Error, OPM, "package_name_invalid.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in &index.catalog.packages {
        if package.name.is_empty() && index.is_faulty(package.at) {
            continue;
        }
        if let Err(why) = check_label(&package.name) {
            let message = match package.name.is_empty() {
                true => "the package has no name".to_owned(),
                false => format!("`{}` is not a package name: {why}", package.name),
            };
            let finding = index
                .finding(&RULE.code, package.at.with(package.name.span), message)
                .subject(package.name.as_str());
            findings.push(finding.help("use lower case letters, digits and `-`, at most 63 characters"));
        }
    }
}
