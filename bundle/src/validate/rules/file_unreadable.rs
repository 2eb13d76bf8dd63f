use crate::finding::{Finding, Findings};
use crate::load::Content;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("file-unreadable", Error, OLM, "file_unreadable.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for file in facts.files.iter().filter(|file| facts.must_be_readable(file)) {
        let (message, help) = match file.content {
            Content::Text(_) | Content::Directory => continue,
            Content::Unread(why) => {
                (format!("the file could not be read: {why}"), "put a plain, readable file there")
            }
            Content::Binary { bytes, valid_up_to } => (
                format!("the file is not text in UTF-8, from byte {valid_up_to} of {bytes} on"),
                "save the file in UTF-8; what is not YAML does not belong here",
            ),
        };
        findings.push(Finding::new(&RULE.code, message).at(file.place()).subject(file.path).help(help));
    }
}
