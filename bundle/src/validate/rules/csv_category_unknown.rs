use crate::csv::annotation::CATEGORIES as KEY;
use crate::finding::Findings;
use crate::suggest::nearest;
use crate::validate::facts::Facts;
use crate::validate::{CATEGORIES, Rule, rule};
use crate::yaml::steps;

rule!("csv-category-unknown", Error, CATEGORIES, "csv_category_unknown.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let known = |category: &str| match &facts.options.categories {
        Some(own) => own.contains(category),
        None => STANDARD.contains(&category),
    };
    let all = || match &facts.options.categories {
        Some(own) => own.iter().map(String::as_str).collect(),
        None => STANDARD.to_vec(),
    };
    let text = csv.typed.annotation(KEY);
    for category in text.into_iter().flat_map(|text| text.split(',')).map(str::trim) {
        if known(category) {
            continue;
        }
        let help = match nearest(category, all()) {
            Some(category) => format!("did you mean `{category}`?"),
            None => format!("write one of `{}`", all().join("`, `")),
        };
        let message = format!("`{}` is not a category", category.replace('`', "'"));
        findings
            .push(csv.object.finding(&RULE.code, message, steps!("metadata", "annotations", KEY)).help(help));
    }
}

const STANDARD: [&str; 16] = [
    "AI/Machine Learning",
    "Application Runtime",
    "Big Data",
    "Cloud Provider",
    "Database",
    "Developer Tools",
    "Integration & Delivery",
    "Logging & Tracing",
    "Modernization & Migration",
    "Monitoring",
    "Networking",
    "Observability",
    "OpenShift Optional",
    "Security",
    "Storage",
    "Streaming & Messaging",
];
