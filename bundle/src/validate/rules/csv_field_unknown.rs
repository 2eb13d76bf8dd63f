use crate::finding::{Finding, Findings};
use crate::suggest::did_you_mean;
use crate::validate::facts::Facts;
use crate::validate::{Rule, STRICT, rule};

rule!("csv-field-unknown", Warning, STRICT, "csv_field_unknown.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for unknown in csv.unknown {
        // Fields that OLM has and we have no use for.
        let above = unknown.expected;
        let is_field = match unknown.key.as_str() {
            "status" => above.contains(&"metadata"),
            "cleanup" | "selector" => above.contains(&"install"),
            _ => false,
        };
        if is_field {
            continue;
        }
        let help = did_you_mean(&unknown.key, above.iter().copied());
        findings.push(
            Finding::new(&RULE.code, format!("`{}` is not a field here", unknown.key.replace('`', "'")))
                .at(csv.object.place_at(unknown.span))
                .subject(csv.object.subject())
                .help(help.unwrap_or_else(|| "remove it, or move it to where it belongs".into())),
        );
    }
}
