use olmkit_bundle::finding::{Code, Findings, Level};

use crate::index::Index;
use crate::requirements;
use crate::validate::{ADVICE, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "dependency-unsatisfied",
        level: Level::Warning,
        suite: ADVICE,
        docs: include_str!("dependency_unsatisfied.md"),
    },
    check,
};

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
