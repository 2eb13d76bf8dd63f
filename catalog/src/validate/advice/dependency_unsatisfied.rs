use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::requirements;
use crate::validate::{ADVICE, Rule, rule};

rule!("dependency-unsatisfied", Warning, ADVICE, "dependency_unsatisfied.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for missing in requirements::unmet(index.catalog) {
        let bundle = &index.catalog.bundles[missing.bundle];
        let property = &bundle.properties[missing.property];
        let message = format!("`{}` requires {}", bundle.name, missing.why);
        findings.push(
            index
                .finding(&RULE.code, bundle.at.with(property.span), message)
                .subject(bundle.name.to_string()),
        );
    }
}
