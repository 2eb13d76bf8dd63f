//! What an InstallPlan will change: each version with what is new in it, then the objects, then the policy.

use std::io::{self, Write};

use super::printable;
use crate::lifecycle::policy::Violation;
use crate::lifecycle::preview::{Change, PlannedCsv, Preview};

pub(super) fn text(
    preview: &Preview,
    violations: Option<&[Violation]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let state = if preview.approved { "approved" } else { "waits for approval" };
    line(out, 0, &format!("installplan/{} in {}: {state}", preview.name, preview.namespace))?;
    for csv in &preview.csvs {
        version(csv, out)?;
    }
    for change in [Change::Create, Change::Change, Change::Unknown] {
        let of = preview.steps.iter().filter(|step| step.change == change);
        for step in of {
            let place =
                if step.namespace.is_empty() { String::new() } else { format!(" in {}", step.namespace) };
            line(out, 1, &format!("{} {}/{}{place}", change.as_str(), step.kind.to_lowercase(), step.name))?;
        }
    }
    let kept = preview.steps.iter().filter(|step| step.change == Change::Keep).count();
    if kept > 0 {
        let objects =
            if kept == 1 { "1 object as it is".to_owned() } else { format!("{kept} objects as they are") };
        line(out, 1, &format!("keep {objects}"))?;
    }
    for why in &preview.not_read {
        line(out, 0, &format!("not read: {why}"))?;
    }
    for what in &preview.not_checked {
        line(out, 0, &format!("not checked: {what}"))?;
    }
    let Some(violations) = violations else { return Ok(()) };
    if violations.is_empty() {
        return line(out, 0, "the plan meets the policy");
    }
    line(out, 0, "the plan does not meet the policy:")?;
    violations.iter().try_for_each(|one| line(out, 1, &format!("{} [{}]", one.sentence, one.rule)))
}

fn version(csv: &PlannedCsv, out: &mut dyn Write) -> io::Result<()> {
    let whose = match csv.subscription.as_str() {
        "" => "dependency".to_owned(),
        name => format!("subscription/{name}"),
    };
    let way = match csv.replaces.as_str() {
        "" => format!("install {}", csv.name),
        replaces => format!("upgrade {replaces} -> {}", csv.name),
    };
    line(out, 1, &format!("{way} ({whose})"))?;
    for image in &csv.new_images {
        line(out, 2, &format!("new image {image}"))?;
    }
    for rule in &csv.new_cluster_rules {
        line(out, 2, &format!("new rights: {rule}"))?;
    }
    for rule in &csv.lost_cluster_rules {
        line(out, 2, &format!("lost rights: {rule}"))?;
    }
    for webhook in &csv.new_webhooks {
        line(out, 2, &format!("new webhook {webhook}"))?;
    }
    for one in &csv.findings {
        line(out, 2, &format!("{}[{}]: {}", one.level, one.code, one.message))?;
    }
    csv.blockers.iter().try_for_each(|one| line(out, 2, &format!("blocked: {one}")))
}

fn line(out: &mut dyn Write, level: usize, text: &str) -> io::Result<()> {
    writeln!(out, "{}{}", "  ".repeat(level), printable(&text.replace('\n', " ")))
}
