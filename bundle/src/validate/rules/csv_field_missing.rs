use crate::csv::ClusterServiceVersionSpec;
use crate::finding::Findings;
use crate::parse::Csv;
use crate::validate::facts::Facts;
use crate::validate::{OLM, Rule, rule};
use crate::yaml::{Step, steps};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

rule!("csv-field-missing", Error, OLM, "csv_field_missing.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let mut missing = |path: &[Step<'_>], help: &str| {
        let field = path.iter().map(Step::to_string).collect::<Vec<_>>().join(".");
        let message = format!("the required field `{field}` is missing");
        findings.push(csv.object.finding(&RULE.code, message, path).help(help));
    };
    let spec = &csv.typed.spec;
    if csv.typed.metadata == ObjectMeta::default() {
        missing(steps!("metadata"), "add `metadata.name`, such as `redis-operator.v1.2.3`");
    }
    // Like the tools, nothing is said of fields in what is missing as a whole.
    if *spec == ClusterServiceVersionSpec::default() {
        missing(steps!("spec"), "describe the operator and its installation under `spec`");
        return;
    }
    if spec.display_name.is_empty() {
        missing(steps!("spec", "displayName"), "name the operator as people should see it");
    }
    let strategy_is_set = ["deployments", "permissions", "clusterPermissions"].map(|field| has(csv, field));
    match (spec.install.strategy.is_empty(), strategy_is_set) {
        (true, [false, false, false]) => {
            missing(steps!("spec", "install"), "add `strategy: deployment` and the operator's deployments");
        }
        (true, _) => {
            missing(steps!("spec", "install", "strategy"), "the one strategy there is: `deployment`")
        }
        _ => {}
    }
    if let [false, true, _] | [false, _, true] = strategy_is_set {
        missing(steps!("spec", "install", "spec", "deployments"), "list the operator's deployments");
    }
}

/// Whether a field of the install strategy has a value, be it an empty list.
fn has(csv: Csv<'_, '_>, field: &str) -> bool {
    let path = steps!("spec", "install", "spec", field);
    csv.object.root.at_folded(path).is_some_and(|node| !node.is_null())
}
