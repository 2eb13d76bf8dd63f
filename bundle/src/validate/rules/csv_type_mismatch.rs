use k8s_openapi::api::core::v1::{Container, PodSpec};

use crate::finding::{Finding, Findings};
use crate::parse::Csv;
use crate::quantity;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::steps;

rule!("csv-type-mismatch", Error, OLM, "csv_type_mismatch.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    if let Some((csv, error)) = facts.csv_error() {
        let message = format!("the ClusterServiceVersion cannot be read: {error}");
        let place = csv.place_at(error.span.unwrap_or(csv.root.span));
        let help = if error.too_large {
            "shorten the list or map; until then many rules cannot check the file"
        } else {
            "use the type that OLM expects for the field; until then many rules cannot check the file"
        };
        findings.push(Finding::new(&RULE.code, message).at(place).subject(csv.subject()).help(help));
    }
    let Some(csv) = facts.csv() else { return };
    for (index, deployment) in csv.typed.spec.install.spec.deployments.iter().enumerate() {
        let Some(PodSpec { containers, init_containers, .. }) = &deployment.spec.template.spec else {
            continue;
        };
        check_quantities(csv, index, "containers", containers, findings);
        check_quantities(csv, index, "initContainers", init_containers.as_deref().unwrap_or(&[]), findings);
    }
}

/// Quantities are texts in the typed value; OLM's tools read them as numbers with units.
fn check_quantities(
    csv: Csv<'_, '_>,
    deployment: usize,
    list: &str,
    containers: &[Container],
    findings: &mut Findings,
) {
    for (index, container) in containers.iter().enumerate() {
        let Some(resources) = &container.resources else { continue };
        for (kind, quantities) in [("limits", &resources.limits), ("requests", &resources.requests)] {
            for (name, quantity) in quantities.iter().flatten() {
                let Err(why) = quantity::check(&quantity.0) else { continue };
                let pod =
                    steps!("spec", "install", "spec", "deployments", deployment, "spec", "template", "spec");
                let path = [pod.as_slice(), steps!(list, index, "resources", kind, name.as_str())].concat();
                let message = format!("`{}` is not a quantity: {why}", quantity.0);
                let finding = csv.object.finding(&RULE.code, message, &path);
                findings
                    .push(finding.help("write a number with a unit, such as `100m`, `0.5`, `30Mi` or `1Gi`"));
            }
        }
    }
}
