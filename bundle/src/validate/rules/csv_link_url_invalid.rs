use crate::finding::Findings;
use crate::url::Url;
use crate::validate::facts::Facts;
use crate::validate::{OPERATORHUB, Rule, rule};
use crate::yaml::steps;

rule!("csv-link-url-invalid", Error, OPERATORHUB, "csv_link_url_invalid.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    for (index, link) in csv.typed.spec.links.iter().enumerate() {
        let url = link.url.as_str();
        let Some(why) = Url::parse_request(url).err().filter(|_| !url.is_empty()) else { continue };
        let message = format!("`{}` is not an address on the web: {why}", url.replace('`', "'"));
        let finding = csv.object.finding(&RULE.code, message, steps!("spec", "links", index, "url"));
        findings.push(finding.help("write the whole address, such as `https://example.com/docs`"));
    }
}
