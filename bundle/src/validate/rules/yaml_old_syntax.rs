use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT};
use crate::yaml::Note;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "yaml-old-syntax",
        level: Level::Warning,
        suite: STRICT,
        docs: include_str!("yaml_old_syntax.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for file in &facts.files {
        for note in file.documents.iter().flatten().flat_map(|document| &document.notes) {
            if let Note::OldSyntax { message, span } = note {
                findings.push(
                    Finding::new(
                        &RULE.code,
                        format!("this is not YAML 1.2: {}", message.replace('`', "'").replace('\n', " ")),
                    )
                    .at(file.place_at(*span))
                    .subject(file.source.path())
                    .help("indent the lines of the text more than its key"),
                );
            }
        }
    }
}
