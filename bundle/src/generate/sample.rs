//! Examples of custom resources, held against the schema of their CRD: what a cluster would refuse is reported, and fields that
//! it would drop.

use super::codes;
use crate::finding::{Finding, Findings};
use crate::parse::Object;
use crate::schema::Schema;
use crate::schema::value;
use crate::suggest::did_you_mean;
use crate::yaml::Node;

/// More findings than this about one example are one fault repeated.
const MOST: usize = 20;

/// Reports where an example does not fit the schema.
pub(super) fn check(sample: &Object<'_, '_>, schema: &Node<'_>, findings: &mut Findings) {
    let checked = value::check(sample.root, Schema(schema), true);
    let refused = checked.problems.into_iter().map(|problem| {
        let message = format!("the sample does not fit its schema{}: {}", problem.place(), problem.message);
        (problem.span, message, None)
    });
    let dropped = checked.unknown.into_iter().map(|(problem, names)| {
        let key = problem.message.split('`').nth(1).unwrap_or_default();
        let help = did_you_mean(key, names.iter().map(String::as_str));
        let message = format!("the sample{}: {}: it would be dropped", problem.place(), problem.message);
        (problem.span, message, help)
    });
    for (span, message, help) in refused.chain(dropped).take(MOST) {
        let finding = Finding::new(&codes::SAMPLE_INVALID, message);
        let finding = finding.at(sample.place_at(span)).subject(sample.subject());
        findings.push(Finding { help, ..finding });
    }
}
