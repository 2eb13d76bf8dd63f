use crate::finding::{Finding, Findings};
use crate::load::Content;
use crate::validate::dependencies;
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule};

rule!("metadata-file-ignored", Warning, STRICT, "metadata_file_ignored.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let is_yaml = |path: &str| [".yaml", ".yml", ".json"].iter().any(|extension| path.ends_with(extension));
    for file in facts.metadata().filter(|file| is_yaml(file.path) && !facts.must_be_readable(file)) {
        let (message, place) = match (file.content, file.documents.first()) {
            (Content::Unread(why), _) => (why.clone(), file.place()),
            (Content::Binary { .. }, _) => ("it is not UTF-8".into(), file.place()),
            (_, Some(Err(error))) => (error.message.clone(), file.place_at(error.span)),
            _ => match dependencies::read_file(file) {
                Err(node) => (format!("`dependencies` holds {}", node.value), file.place_at(node.span)),
                Ok(_) => continue,
            },
        };
        let finding =
            Finding::new(&RULE.code, format!("`{}` is ignored, it cannot be read: {message}", file.path))
                .at(place)
                .subject(file.path);
        findings.push(finding.help("correct the file, or remove it: OLM ignores its contents"));
    }
}
