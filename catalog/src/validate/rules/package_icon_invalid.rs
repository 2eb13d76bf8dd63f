use olmkit_bundle::finding::Findings;

use crate::base64::decode;
use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("package-icon-invalid", Error, OPM, "package_icon_invalid.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in &index.catalog.packages {
        let Some(icon) = &package.icon else { continue };
        if let Err(error) = decode(&icon.data) {
            let message = format!("the icon is not in base64: {error}");
            let finding = index.finding(&RULE.code, package.at.with(icon.data.span), message);
            findings.push(finding.subject(package.name.as_str()));
        }
    }
}
