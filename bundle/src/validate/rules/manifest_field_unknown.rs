use crate::finding::{Finding, Findings};
use crate::suggest::did_you_mean;
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule, typed};

rule!("manifest-field-unknown", Warning, STRICT, "manifest_field_unknown.md");

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
