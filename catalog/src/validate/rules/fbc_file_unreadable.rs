use olmkit_bundle::finding::Findings;

use crate::fbc::FaultKind;
use crate::index::Index;
use crate::load::OUTSIDE;
use crate::validate::{OPM, Rule, rule};

rule!("fbc-file-unreadable", Error, OPM, "fbc_file_unreadable.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for fault in &index.catalog.faults {
        if let FaultKind::NoText(why) = &fault.kind {
            let ignore = "name it in `.indexignore` if it does not belong to the catalog";
            let help = match why == OUTSIDE {
                true => format!("replace the link with a copy of the file, or {ignore}"),
                false => ignore.to_owned(),
            };
            let finding = index.finding(&RULE.code, fault.at, format!("the file cannot be read: {why}"));
            findings.push(finding.help(help));
        }
    }
}
