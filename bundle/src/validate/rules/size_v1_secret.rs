use crate::finding::{Finding, Findings};
use crate::validate::facts::{Facts, packed};
use crate::validate::{Rule, SIZE, rule};

rule!("size-v1-secret", Warning, SIZE, "size_v1_secret.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let texts = || facts.manifests().map(|file| file.source.text());
    // Most bundles are so small that nothing need be compressed.
    if texts().map(|text| text.len() as u64).sum::<u64>() * 2 <= MAX_SECRET_BYTES {
        return;
    }
    let bytes: u64 = texts().map(packed).sum::<u64>() * 2;
    if bytes > MAX_SECRET_BYTES {
        let finding = Finding::new(
            &RULE.code,
            format!("the release of OLM v1 takes about {bytes} bytes, and a Secret holds {MAX_SECRET_BYTES}"),
        )
        .at(facts.place())
        .subject(facts.name);
        findings.push(finding.help("shorten the descriptions of CRDs"));
    }
}

/// What a Secret holds.
const MAX_SECRET_BYTES: u64 = 1 << 20;
