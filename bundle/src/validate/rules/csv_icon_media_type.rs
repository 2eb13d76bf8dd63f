use crate::finding::{Code, Findings, Level};
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule};
use crate::yaml::steps;

pub(crate) static RULE: Rule = Rule {
    code: Code {
        name: "csv-icon-media-type",
        level: Level::Error,
        suite: OPERATORHUB,
        docs: include_str!("csv_icon_media_type.md"),
    },
    check,
};

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    let Some(media_type) = csv.typed.spec.icon.first().map(|icon| icon.media_type.as_str()) else { return };
    if !matches!(media_type, "" | "image/gif" | "image/jpeg" | "image/png" | "image/svg+xml") {
        let message = format!("`{}` is not a media type of icons", media_type.replace('`', "'"));
        findings.push(
            csv.object
                .finding(&RULE.code, message, steps!("spec", "icon", 0, "mediatype"))
                .help("write `image/svg+xml`, `image/png`, `image/jpeg` or `image/gif`"),
        );
    }
}
