use crate::finding::{Finding, Findings};
use crate::validate::facts::{Facts, MAX_PACKED_BYTES};
use crate::validate::{Rule, SIZE, rule};

rule!("size-manifest", Warning, SIZE, "size_manifest.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (file, bytes) in facts.packed_files().iter().filter(|(_, bytes)| *bytes > MAX_PACKED_BYTES) {
        let finding = Finding::new(
            &RULE.code,
            format!("the manifest takes {bytes} bytes when packed, of {MAX_PACKED_BYTES} that are allowed"),
        )
        .at(file.place())
        .subject(file.source.path());
        findings.push(finding.help("shorten the descriptions, or split the object"));
    }
}
