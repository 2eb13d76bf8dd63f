use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule};
use crate::yaml::Note;

rule!("yaml-old-syntax", Warning, STRICT, "yaml_old_syntax.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for file in &facts.files {
        for note in file.documents.iter().flatten().flat_map(|document| &document.notes) {
            if let Note::OldSyntax { message, span } = note {
                let finding = Finding::new(
                    &RULE.code,
                    format!("this is not YAML 1.2: {}", message.replace('`', "'").replace('\n', " ")),
                )
                .at(file.place_at(*span))
                .subject(file.source.path());
                findings.push(finding.help("indent the lines of the text more than its key"));
            }
        }
    }
}
