use crate::finding::{Finding, Findings};
use crate::parse::Role;
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule};

rule!("file-not-in-bundle", Warning, STRICT, "file_not_in_bundle.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for file in facts.files.iter().filter(|file| file.role == Role::Other && !file.path.starts_with("tests/"))
    {
        let text = file.source.text();
        let starts_line = |word: &str| text.lines().take(MOST_LINES).any(|line| line.starts_with(word));
        if starts_line("apiVersion:") && starts_line("kind:") {
            let finding =
                Finding::new(&RULE.code, "this object is outside of `manifests/`, where OLM does not look")
                    .at(file.place())
                    .subject(file.source.path());
            findings.push(finding.help("move it to `manifests/`, or out of the bundle's directory"));
        }
    }
}

/// An object says in its first lines what it is.
const MOST_LINES: usize = 50;
