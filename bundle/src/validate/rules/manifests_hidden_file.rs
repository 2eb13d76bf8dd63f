use crate::finding::{Code, Finding, Findings, Level};
use crate::load::Content;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "manifests-hidden-file",
        level: Level::Error,
        suite: OLM,
        docs: include_str!("manifests_hidden_file.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for file in facts.files.iter().filter(|file| !matches!(file.content, Content::Directory)) {
        let hidden = file.path.strip_prefix("manifests/.").is_some_and(|name| !name.contains('/'));
        if hidden {
            findings.push(
                Finding::new(&RULE.code, format!("`{}` is a hidden file", file.path))
                    .at(file.place())
                    .subject(file.path)
                    .help("remove it from `manifests/`; its name starts with a dot, so `ls -a` shows it"),
            );
        }
    }
}
