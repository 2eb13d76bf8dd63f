use crate::finding::{Finding, Findings};
use crate::load::Content;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("manifests-hidden-file", Error, OLM, "manifests_hidden_file.md");

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
