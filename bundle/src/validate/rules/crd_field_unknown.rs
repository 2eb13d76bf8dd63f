use crate::finding::{Finding, Findings};
use crate::suggest::did_you_mean;
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule};

rule!("crd-field-unknown", Warning, STRICT, "crd_field_unknown.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    for (object, fit) in facts.crd_fits() {
        for unknown in &fit.unknown {
            let within = if unknown.path.is_empty() {
                String::new()
            } else {
                format!(" of `{}`", unknown.path.replace('`', "'"))
            };
            let help = did_you_mean(&unknown.key, unknown.within.fields.iter().map(|field| field.name));
            findings.push(
                Finding::new(
                    &RULE.code,
                    format!("`{}` is not a field{within}", unknown.key.replace('`', "'")),
                )
                .at(object.place_at(unknown.span))
                .subject(object.subject())
                .help(help.unwrap_or_else(|| "remove it, or move it to where it belongs".into())),
            );
        }
    }
}
