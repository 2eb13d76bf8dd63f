use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-conversion-install-modes", Error, OLM, "csv_conversion_install_modes.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let spec = &csv.typed.spec;
    let mut modes = spec.install_modes.iter().enumerate();
    let Some((at, mode)) = modes.find(|(_, mode)| (mode.kind == "AllNamespaces") != mode.supported) else {
        return;
    };
    let found = if mode.supported { "is" } else { "is not" };
    let message = format!(
        "a conversion webhook needs `AllNamespaces` as the only supported install mode, but `{}` {found} supported",
        mode.kind
    );
    for (index, webhook) in spec.webhook_definitions.iter().enumerate() {
        if !webhook.conversion_crds.is_empty() {
            let finding = csv
                .object
                .finding(
                    &RULE.code,
                    message.as_str(),
                    steps!("spec", "webhookdefinitions", index, "conversionCRDs"),
                )
                .and(csv.object.place(steps!("spec", "installModes", at, "supported")));
            findings.push(finding.help("support `AllNamespaces` and no other install mode"));
        }
    }
}
