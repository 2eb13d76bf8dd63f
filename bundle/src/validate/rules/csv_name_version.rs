use crate::finding::Findings;
use crate::validate::facts::Facts;
use crate::validate::{GOOD_PRACTICES, Rule, rule};
use crate::version::Version;
use crate::yaml::steps;

rule!("csv-name-version", Warning, GOOD_PRACTICES, "csv_name_version.md");

fn check(facts: &Facts<'_, '_>, findings: &mut Findings) {
    let Some(csv) = facts.csv() else { return };
    if version_at_end(csv.typed.name()).is_none_or(|version| Version::parse(version).is_err()) {
        let message = format!("`{}` does not end in a version with three numbers", csv.typed.name());
        let help = "name it `NAME.vX.Y.Z`, such as `redis-operator.v0.1.0`";
        findings.push(csv.object.finding(&RULE.code, message, steps!("metadata", "name")).help(help));
    }
}

/// The longest end of a name that looks like a version.
fn version_at_end(name: &str) -> Option<&str> {
    // Longer names are refused anyway, and cannot make this slow.
    let name = &name[name.ceil_char_boundary(name.len().saturating_sub(256))..];
    let starts = name.char_indices().filter(|(_, c)| c.is_ascii_digit());
    starts.map(|(at, _)| &name[at..]).find(|end| looks_like_a_version(end))
}

fn looks_like_a_version(text: &str) -> bool {
    let words = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (numbers, pre) = text.split_once('-').map_or((text, None), |(numbers, pre)| (numbers, Some(pre)));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(words))
        && build.is_none_or(words)
}
