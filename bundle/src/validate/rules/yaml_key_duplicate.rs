use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule};
use crate::yaml::Note;

rule!("yaml-key-duplicate", Warning, STRICT, "yaml_key_duplicate.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for file in &facts.files {
        for note in file.documents.iter().flatten().flat_map(|document| &document.notes) {
            if let Note::DuplicateKey { key, first, second } = note {
                let finding = Finding::new(
                    &RULE.code,
                    format!("duplicate key `{}`: the last value is used", key.replace('`', "'")),
                )
                .at(file.place_at(*second).label("this counts"))
                .and(file.place_at(*first).label("this is overwritten"))
                .subject(file.source.path());
                findings.push(finding.help("remove one of them"));
            }
        }
    }
}
