use olmkit_bundle::finding::Findings;
use olmkit_bundle::version::{Version, VersionRange};

use crate::index::Index;
use crate::validate::{ADVICE, Rule, rule};

rule!("channel-skip-range-odd", Warning, ADVICE, "channel_skip_range_odd.md");

fn check(index: &Index<'_, '_>, findings: &mut Findings) {
    for package in index.packages.values() {
        for channel in &package.channels {
            for entry in &channel.blob.entries {
                let Ok(range) = entry.skip_range.parse::<VersionRange>() else { continue };
                let Some(own) = package.version(&entry.name) else { continue };
                let mut next = own.version.clone();
                (next.major, next.pre) = (next.major.saturating_add(1), Default::default());
                let why = if range.is_empty() {
                    "holds no version"
                } else if range.contains(&next) || range.contains(&Version::new(u64::MAX, 0, 0)) {
                    "holds versions above its own"
                } else if range.contains(&own.version) {
                    "holds its own version"
                } else {
                    continue;
                };
                let message = format!("the `skipRange` of `{}` {why}", entry.name);
                let help = format!("end it below its own version, as in `<{}`", own.version);
                let finding = index
                    .finding(&RULE.code, channel.blob.at.with(entry.skip_range.span), message)
                    .subject(channel.id());
                findings.push(finding.help(help));
            }
        }
    }
}
