use crate::finding::{Finding, Findings};
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};

rule!("annotations-missing", Error, OLM, "annotations_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let mut files = facts.metadata();
    let is_annotations = |path: &str| path.starts_with("metadata/annotations.");
    // A file of that name which cannot be read has been reported as such.
    let found =
        facts.annotations().is_some() || files.any(|file| is_annotations(file.path) && !file.is_read());
    let Some(any) = facts.metadata().next().filter(|_| !found) else { return };
    let file = facts.metadata().find(|file| is_annotations(file.path));
    findings.push(
        Finding::new(&RULE.code, "no file in `metadata/` has a map `annotations`")
            .at(file.map_or(facts.place(), |file| file.place()))
            .subject(file.unwrap_or(any).path)
            .help("list the bundle's annotations under `annotations` in `metadata/annotations.yaml`"),
    );
}
