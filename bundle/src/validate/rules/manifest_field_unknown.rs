use crate::finding::{Code, Finding, Findings, Level};
use crate::suggest::did_you_mean;
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, typed};

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "manifest-field-unknown",
        level: Level::Warning,
        suite: STRICT,
        docs: include_str!("manifest_field_unknown.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for object in facts.objects() {
        for unknown in typed::unknown_fields(object) {
            let help = did_you_mean(&unknown.key, unknown.expected.iter().copied());
            findings.push(
                Finding::new(&RULE.code, format!("`{}` is not a field here", unknown.key.replace('`', "'")))
                    .at(object.place_at(unknown.span))
                    .subject(object.subject())
                    .help(help.unwrap_or_else(|| "remove it, or move it to where it belongs".into())),
            );
        }
    }
}
