use std::collections::BTreeSet;

use crate::crd::Crd;
use crate::finding::{Finding, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::steps;

rule!("crd-conversion-unmatched", Warning, INSTALL, "crd_conversion_unmatched.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let spec = &csv.typed.spec;
    let converts = |name: &str| {
        let mut webhooks = spec.webhook_definitions.iter();
        webhooks.any(|webhook| webhook.conversion_crds.iter().any(|crd| crd == name))
    };
    for object in facts.crds() {
        let crd = Crd::from(object);
        let name = crd.name();
        if crd.text(steps!("spec", "conversion", "strategy")) == "Webhook" && !converts(&name) {
            let message = format!(
                "a webhook converts `{}`, and the ClusterServiceVersion has none for it",
                plain(&name)
            );
            let path = steps!("spec", "conversion", "strategy");
            let finding = object.finding(&RULE.code, message, path);
            findings.push(finding.help("add a `ConversionWebhook` with the CRD in `conversionCRDs` to `spec.webhookdefinitions`: OLM then makes its Service and certificate"));
        }
        let served = crd.versions().iter().filter(|version| version.is_served()).count();
        if converts(&name) && served > 1 && crd.text(steps!("spec", "conversion", "strategy")) != "Webhook" {
            let message = format!(
                "a webhook converts `{}`, and the CRD has no `spec.conversion`: during each upgrade Kubernetes converts without it for some seconds, and a write in another version than the stored one loses fields",
                plain(&name)
            );
            let finding = object.finding(&RULE.code, message, steps!("spec", "conversion"));
            findings.push(finding.help("set `spec.conversion` with `strategy: Webhook` in the CRD: OLM puts its own Service and certificate there"));
        }
        if converts(&name) && crd.preserves_unknown_fields() {
            let message =
                format!("`{}` preserves unknown fields, and then no webhook can convert it", plain(&name));
            let finding = object.finding(&RULE.code, message, steps!("spec", "preserveUnknownFields"));
            findings.push(Finding {
                level: Level::Error,
                ..finding.help("set `spec.preserveUnknownFields: false`")
            });
        }
    }
    let owned: BTreeSet<_> =
        spec.custom_resource_definitions.owned.iter().map(|crd| crd.name.as_str()).collect();
    for (index, webhook) in spec.webhook_definitions.iter().enumerate() {
        for (at, name) in webhook.conversion_crds.iter().enumerate() {
            if !owned.contains(name.as_str()) {
                let path = steps!("spec", "webhookdefinitions", index, "conversionCRDs", at);
                let message = format!("`{}` is converted by a webhook and not owned", plain(name));
                let finding = csv.object.finding(&RULE.code, message, path);
                let help = "list it under `spec.customresourcedefinitions.owned`";
                findings.push(Finding { level: Level::Error, ..finding.help(help) });
            }
        }
    }
}

fn plain(text: &str) -> String {
    text.replace('`', "'")
}
