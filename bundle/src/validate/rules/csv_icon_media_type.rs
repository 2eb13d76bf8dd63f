use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule, rule};
use crate::yaml::steps;

rule!("csv-icon-media-type", Error, OPERATORHUB, "csv_icon_media_type.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let Some(media_type) = csv.typed.spec.icon.first().map(|icon| icon.media_type.as_str()) else { return };
    if !matches!(media_type, "" | "image/gif" | "image/jpeg" | "image/png" | "image/svg+xml") {
        let message = format!("`{}` is not a media type of icons", media_type.replace('`', "'"));
        let finding = csv.object.finding(&RULE.code, message, steps!("spec", "icon", 0, "mediatype"));
        findings.push(finding.help("write `image/svg+xml`, `image/png`, `image/jpeg` or `image/gif`"));
    }
}
