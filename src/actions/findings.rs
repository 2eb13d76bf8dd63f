//! Every kind of finding that a command may report.

use olmkit_bundle::finding::Code;
use olmkit_bundle::{diff, generate, validate};

use super::validate::external::CUSTOM_CHECK;

/// Every kind of finding, sorted by suite and name.
pub fn codes() -> Vec<&'static Code> {
    let rules = validate::rules().iter().map(|rule| &rule.code);
    let catalog_rules = olmkit_catalog::validate::rules().iter().chain(olmkit_catalog::validate::advice());
    let catalog_rules = catalog_rules.map(|rule| &rule.code);
    let mut codes: Vec<_> = rules
        .chain(generate::codes::ALL.iter().copied())
        .chain(diff::codes::ALL.iter().copied())
        .chain(catalog_rules)
        .chain([&CUSTOM_CHECK])
        .collect();
    codes.sort_by_key(|code| (code.suite, code.name));
    codes
}
