use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("yaml-syntax", Error, OLM, "yaml_syntax.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for file in facts.files.iter().filter(|file| facts.must_be_readable(file)) {
        let Some(Err(error)) = file.documents.first() else { continue };
        let finding =
            Finding::new(&RULE.code, error.message.clone()).at(file.place_at(error.span)).subject(file.path);
        findings.push(
            finding.help(
                "correct the YAML here or shortly before; until then no other rule can look at the file",
            ),
        );
    }
}
