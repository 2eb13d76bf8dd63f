use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{INSTALL, Rule, rule};
use crate::yaml::steps;

rule!("csv-icon-data-url", Warning, INSTALL, "csv_icon_data_url.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (index, icon) in csv.typed.spec.icon.iter().enumerate() {
        if icon.data.trim_start().starts_with("data:") {
            let path = steps!("spec", "icon", index, "base64data");
            let message = "the icon is a `data:` URL, and consoles expect base64 alone";
            let help = "remove everything up to `base64,`: the media type is in `mediatype`";
            findings.push(csv.object.finding(&RULE.code, message, path).help(help));
        }
    }
}
