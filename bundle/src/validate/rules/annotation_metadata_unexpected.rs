use crate::annotations::{METADATA, METADATA_DIR, is_directory};
use crate::finding::{Code, Finding, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "annotation-metadata-unexpected",
        level: Level::Warning,
        suite: STRICT,
        docs: include_str!("annotation_metadata_unexpected.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(annotations) = facts.annotations() else { return };
    let value = annotations.get(METADATA).filter(|value| !is_directory(value, METADATA_DIR));
    let Some(value) = value else { return };
    findings.push(
        Finding::new(&RULE.code, format!("the metadata directory is `{value}`, expected `{METADATA_DIR}`"))
            .at(annotations.place(METADATA))
            .subject(annotations.file.path)
            .help(format!("write `{METADATA}: {METADATA_DIR}`")),
    );
}
