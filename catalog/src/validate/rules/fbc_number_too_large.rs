use olmkit_bundle::finding::Findings;

use crate::index::Index;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-number-too-large", Error, OPM, "fbc_number_too_large.md");

/// The most of a number that is shown.
const SHOWN: usize = 20;

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for at in index.catalog.too_large_numbers() {
        let number = index.catalog.text(at);
        let shown = number.get(..SHOWN).map_or_else(|| number.to_owned(), |start| format!("{start}…"));
        let message = format!("the number `{shown}` is too large");
        findings.push(index.finding(&RULE.code, at, message).help("write it as a text, in quotes"));
    }
}
