//! Operators on clusters: what happens to them as it happens, and how they are.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::table::{Table, dash};
use super::{Answer, json, pretty, printable};
use crate::actions::operator::Outcome;
use crate::exit::Exit;
use crate::lifecycle::doctor::APPROVAL_REQUIRED;
use crate::lifecycle::engine::{Planned, Progress};
use crate::lifecycle::look::Description;
use crate::lifecycle::observe::Row;
use crate::lifecycle::operator::Operator;
use crate::lifecycle::sources::Source;
use crate::lifecycle::uninstall::{Removed, UNFINISHED};
use crate::progress::{screen, tell};

/// Shows what happens to an operator in the way that standard error asks for: a live view on a terminal, a line for each
/// change of state elsewhere.
pub fn operators() -> Box<dyn Progress + Sync> {
    let bars = screen();
    Box::new(Live { bars, rows: Mutex::default() })
}

struct Live {
    bars: Option<MultiProgress>,
    rows: Mutex<Vec<Shown>>,
}

/// A row on the screen.
struct Shown {
    object: String,
    state: String,
    bar: ProgressBar,
}

impl Live {
    fn line(&self, text: &str) {
        tell(self.bars.as_ref(), text);
    }
}

impl Progress for Live {
    fn state(&self, _: Duration, object: &str, state: &str) {
        if self.bars.is_none() {
            self.line(&format!("{object}: {state}"));
        }
    }

    fn said(&self, _: Duration, text: &str) {
        self.line(text);
    }

    /// Each row with the time since its state changed, in the order of OLM's work.
    fn looked(&self, rows: &[Row]) {
        let Some(bars) = &self.bars else { return };
        let mut shown = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        shown.retain(|old| {
            let stays = rows.iter().any(|row| row.object == old.object);
            if !stays {
                old.bar.finish_and_clear();
                bars.remove(&old.bar);
            }
            stays
        });
        for (at, row) in rows.iter().enumerate() {
            let is_it = |old: &Shown| old.object == row.object;
            let at = match shown.iter().position(is_it) {
                Some(at) => at,
                None => {
                    let at = at.min(shown.len());
                    let bar = bars.insert(at, spinner(row));
                    shown.insert(at, Shown { object: row.object.clone(), state: String::new(), bar });
                    at
                }
            };
            shown[at].show(row);
        }
    }
}

impl Shown {
    fn show(&mut self, row: &Row) {
        let bar = &self.bar;
        if self.state != row.state {
            self.state.clone_from(&row.state);
            bar.reset();
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        let detail = if row.detail.is_empty() { String::new() } else { format!(", {}", row.detail) };
        let text = printable(&format!("{}{detail}", row.state)).into_owned();
        if row.done {
            bar.finish_with_message(text);
        } else {
            bar.set_message(text);
        }
    }
}

fn spinner(row: &Row) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {prefix} {wide_msg} {elapsed:>5}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner()).tick_chars("|/-\\+");
    let name = format!("{}{}", "  ".repeat(row.level), row.object);
    // Not drawn before it is among the others.
    ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
        .with_style(style)
        .with_prefix(printable(&format!("{name:56}")).into_owned())
}

impl Answer for Outcome {
    fn json(&self) -> String {
        outcome_json(self)
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        outcome_text(self, out)
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Status(operator) if !operator.is_well() => Exit::Failed,
            Self::Diagnosis(diagnosis) => super::doctor::diagnosis_exit(diagnosis),
            Self::Plan(_, Some(violations)) if !violations.is_empty() => Exit::Failed,
            _ => Exit::Success,
        }
    }
}

fn outcome_json(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Operator(operator) | Outcome::Status(operator) => {
            pretty(&json::OperatorReport { schema: "olmkit.operator/v1", operator })
        }
        Outcome::Description(description) => {
            pretty(&json::DescriptionReport { schema: "olmkit.description/v1", description })
        }
        Outcome::List(operators) => pretty(&json::OperatorList { schema: "olmkit.operators/v1", operators }),
        Outcome::Diagnosis(diagnosis) => super::doctor::diagnosis_json(diagnosis),
        Outcome::Plan(preview, violations) => {
            let policy = violations
                .as_ref()
                .map(|violations| json::PolicyVerdict { holds: violations.is_empty(), violations });
            pretty(&json::PlanReport { schema: "olmkit.plan/v1", preview, policy })
        }
        Outcome::Watched => String::new(),
        Outcome::Removed(removed) => removed_json(removed),
        Outcome::Source(source) => pretty(&json::SourceReport { schema: "olmkit.source/v1", source }),
        Outcome::Sources(sources) => pretty(&json::SourceList { schema: "olmkit.sources/v1", sources }),
        Outcome::Planned(planned) => planned_json(planned),
    }
}

pub(super) fn removed_json(removed: &Removed) -> String {
    pretty(&json::RemovedReport { schema: "olmkit.removed/v1", parts: removed })
}

pub(super) fn planned_json(planned: &[Planned]) -> String {
    pretty(&json::DryRun {
        schema: "olmkit.dry-run/v1",
        writes: planned
            .iter()
            .map(|one| json::Write {
                verb: one.verb,
                kind: one.key.kind.clone(),
                namespace: one.key.namespace.clone(),
                name: one.key.name.clone(),
                document: one.document.clone(),
            })
            .collect(),
    })
}

pub(super) fn planned_text(planned: &[Planned], out: &mut dyn Write) -> io::Result<()> {
    planned.iter().try_for_each(|one| dry_run(one, out))
}

fn outcome_text(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    match outcome {
        Outcome::Operator(operator) | Outcome::Status(operator) => status(operator, out),
        Outcome::Description(description) => describe(description, out),
        Outcome::List(operators) => {
            let mut table = OperatorTable::new();
            operators.iter().for_each(|operator| table.operator(operator));
            table.print(out)
        }
        Outcome::Diagnosis(diagnosis) => super::doctor::diagnosis_text(diagnosis, out),
        Outcome::Plan(preview, violations) => super::plan::text(preview, violations.as_deref(), out),
        Outcome::Watched => Ok(()),
        Outcome::Removed(removed) => removal(removed, out),
        Outcome::Source(source) => sources(std::slice::from_ref(source), out),
        Outcome::Sources(all) => sources(all, out),
        Outcome::Planned(planned) => planned_text(planned, out),
    }
}

fn status(operator: &Operator, out: &mut dyn Write) -> io::Result<()> {
    let text = |text: &str| printable(text).into_owned();
    let installed =
        if operator.installed_csv.is_empty() { "nothing installed" } else { &operator.installed_csv };
    let phase = match (operator.csv_phase.as_str(), operator.csv_reason.as_str()) {
        ("", _) => String::new(),
        (phase @ "Succeeded", _) | (phase, "") => format!(" {phase}"),
        (phase, reason) => format!(" {phase} ({reason})"),
    };
    let (namespace, subscription) = (text(&operator.namespace), text(&operator.subscription));
    writeln!(out, "{namespace}/{subscription}: {}{}", text(installed), text(&phase))?;
    let channel = if operator.channel.is_empty() { "default" } else { &operator.channel };
    let head =
        if operator.head.is_empty() { String::new() } else { format!(", head {}", text(&operator.head)) };
    writeln!(
        out,
        "  package {}, channel {}{head}, catalog {}",
        text(&operator.package),
        text(channel),
        text(&operator.catalog)
    )?;
    if !operator.approval.is_empty() {
        let mode = if operator.install_mode.is_empty() {
            String::new()
        } else {
            format!(", {}", operator.install_mode)
        };
        writeln!(out, "  approval {}{}", text(&operator.approval), text(&mode))?;
    }
    if let Some(plan) = &operator.pending_plan {
        let wait = if plan.approved { "runs" } else { "waits for approval" };
        writeln!(out, "  installplan/{} {wait}: {}", text(&plan.name), text(&plan.csvs.join(" ")))?;
    }
    // A plan that waits for approval stands above.
    let cause = operator.cause.as_ref().filter(|cause| cause.code != APPROVAL_REQUIRED);
    if let (Some(cause), Some(state)) = (cause, operator.health) {
        writeln!(out, "  {}[{}]: {}", state.as_str(), cause.code, text(&cause.sentence))?;
    }
    let is_told = |problem: &&String| cause.is_some_and(|cause| cause.sentence == **problem);
    let rest = operator.problems.iter().filter(|problem| !is_told(problem));
    rest.into_iter().try_for_each(|problem| writeln!(out, "  problem: {}", text(problem)))
}

fn describe(description: &Description, out: &mut dyn Write) -> io::Result<()> {
    status(&description.operator, out)?;
    let mut list = |title: &str, lines: &[String]| -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        writeln!(out, "  {title}:")?;
        lines.iter().try_for_each(|line| writeln!(out, "    {}", printable(line)))
    };
    list("conditions", &description.conditions)?;
    let crds: Vec<String> = description
        .crds
        .iter()
        .map(|crd| {
            let whose = if crd.owned { "owned" } else { "needed" };
            let count = crd
                .resources
                .map_or("custom resources unknown".into(), |count| format!("{count} custom resources"));
            let versions = if crd.versions.is_empty() { "absent".into() } else { crd.versions.join(" ") };
            format!("{} {whose}, {versions}, {count}", crd.name)
        })
        .collect();
    list("CRDs", &crds)?;
    list("deployments", &description.deployments)?;
    list("events", &description.events)
}

/// CatalogSources as a table, and what is wrong with them.
fn sources(sources: &[Source], out: &mut dyn Write) -> io::Result<()> {
    let titles = ["NAMESPACE", "NAME", "STATE", "POD", "PRIORITY", "POLL", "USED BY", "SOURCE"];
    let mut table = Table::titled(&titles);
    for source in sources {
        let (priority, users) = (source.priority.to_string(), source.subscriptions.len().to_string());
        let (state, pod, poll) = (dash(&source.state), dash(&source.pod), dash(&source.poll));
        table.row([&source.namespace, &source.name, state, pod, &priority, poll, &users, &source.source]);
    }
    table.print(out)?;
    let mut refused = sources.iter().filter(|source| !source.message.is_empty());
    refused.try_for_each(|source| {
        writeln!(out, "{}/{}: {}", source.namespace, printable(&source.name), printable(&source.message))
    })
}

pub(super) fn removal(removed: &Removed, out: &mut dyn Write) -> io::Result<()> {
    let name = |part: &crate::lifecycle::uninstall::Part| {
        let name = format!("{}/{}", part.kind.to_lowercase(), part.name);
        let place = if part.namespace.is_empty() { String::new() } else { format!(" in {}", part.namespace) };
        printable(&(name + &place)).into_owned()
    };
    let (removes, keeps) = if removed.dry_run { ("would remove", "would keep") } else { ("removed", "kept") };
    for part in &removed.removed {
        writeln!(out, "{removes} {}", name(part))?;
    }
    for part in &removed.deleting {
        writeln!(out, "deleting {}: {}", name(part), printable(&part.reason.to_string()))?;
    }
    // All that waits for one thing is a line; `--output json` names each.
    let (waiting, kept): (Vec<_>, Vec<_>) =
        removed.kept.iter().partition(|part| part.reason.to_string().starts_with(UNFINISHED));
    for part in kept {
        writeln!(out, "{keeps} {}: {}", name(part), printable(&part.reason.to_string()))?;
    }
    match &waiting[..] {
        [] => Ok(()),
        [first, ..] => {
            writeln!(out, "{keeps} {} more objects: {}", waiting.len(), printable(&first.reason.to_string()))
        }
    }
}

fn dry_run(planned: &Planned, out: &mut dyn Write) -> io::Result<()> {
    let Planned { verb, key, document } = planned;
    let place = if key.namespace.is_empty() { String::new() } else { format!(" in {}", key.namespace) };
    writeln!(out, "# {verb} {}{}", printable(&key.to_string()), printable(&place))?;
    if document.is_null() {
        return Ok(());
    }
    let text = olmkit_bundle::yaml::write::to_string(document).map_err(io::Error::other)?;
    writeln!(out, "{}---", printable(&text))
}

/// A table of operators, and what is said of single ones below.
struct OperatorTable {
    table: Table,
    notes: Vec<String>,
}

impl OperatorTable {
    fn new() -> Self {
        let titles =
            ["NAMESPACE", "NAME", "PACKAGE", "VERSION", "PHASE", "MODE", "NAMESPACES", "CHANNEL", "HEAD"];
        Self { table: Table::titled(&titles), notes: Vec::new() }
    }

    fn operator(&mut self, operator: &Operator) {
        let short = |csv| dash(super::paths::short(csv, &operator.package));
        let targets = operator.target_namespaces.join(",");
        let targets = match &operator.target_namespaces[..] {
            [all] if all.is_empty() => "all",
            _ => dash(&targets),
        };
        self.table.row([
            &operator.namespace,
            dash(&operator.subscription),
            dash(&operator.package),
            short(&operator.installed_csv),
            dash(&operator.csv_phase),
            dash(&operator.install_mode),
            targets,
            dash(&operator.channel),
            short(&operator.head),
        ]);
        if let (Some(cause), Some(state)) = (&operator.cause, operator.health) {
            let (namespace, name) = (&operator.namespace, operator.title());
            let (state, code, sentence) = (state.as_str(), cause.code, &cause.sentence);
            self.notes.push(format!("{namespace}/{name} {state}[{code}]: {sentence}"));
        }
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        self.table.print(out)?;
        self.notes.iter().try_for_each(|note| writeln!(out, "{}", printable(&note.replace('\n', " "))))
    }
}
