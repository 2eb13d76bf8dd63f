//! Diagnoses: the sentence first, then what shows it, what follows from it, and how to repair it.

use std::io::{self, Write};

use super::{Answer, json, plural, pretty, printable};
use crate::exit::Exit;
use crate::lifecycle::doctor::{Cause, Diagnosis, State};

impl Answer for Diagnosis {
    fn json(&self) -> String {
        diagnosis_json(self)
    }

    fn text(&self, out: &mut dyn Write, _: &mut dyn Write) -> io::Result<()> {
        diagnosis_text(self, out)
    }

    fn exit(&self) -> Exit {
        diagnosis_exit(self)
    }
}

pub(super) fn diagnosis_json(diagnosis: &Diagnosis) -> String {
    pretty(&json::DiagnosisReport { schema: "olmkit.diagnosis/v1", diagnosis })
}

pub(super) fn diagnosis_exit(diagnosis: &Diagnosis) -> Exit {
    let is_fixed = !diagnosis.fixes.is_empty() && diagnosis.fixes.iter().all(|fix| fix.done);
    match diagnosis.state {
        _ if is_fixed => Exit::Success,
        State::Healthy | State::Progressing => Exit::Success,
        State::Waiting | State::Broken => Exit::Failed,
    }
}

pub(super) fn diagnosis_text(diagnosis: &Diagnosis, out: &mut dyn Write) -> io::Result<()> {
    // There may be very many, and standard output is written line by line.
    let mut out = io::BufWriter::new(out);
    for cause in diagnosis.causes.iter().take(MOST_CAUSES) {
        told(cause, &mut out)?;
    }
    if let Some(more) = diagnosis.causes.len().checked_sub(MOST_CAUSES).filter(|more| *more > 0) {
        writeln!(out, "and {}, listed by `--output json`\n", plural(more, "more cause"))?;
    }
    for fix in &diagnosis.fixes {
        let verb = match (fix.done, fix.fits) {
            (true, _) => "fixed",
            (false, true) => "would fix",
            (false, false) => "not fixed",
        };
        writeln!(out, "{verb}[{}]: {}", fix.code, line(&fix.what.to_string()))?;
    }
    let count = |state| diagnosis.operators.iter().filter(|one| one.state == state).count();
    let states = [State::Broken, State::Waiting, State::Progressing, State::Healthy];
    let counts: Vec<String> = states
        .into_iter()
        .filter(|state| count(*state) > 0)
        .map(|state| format!("{} {}", count(state), state.as_str()))
        .collect();
    match counts.is_empty() {
        true => writeln!(out, "no operators")?,
        false => writeln!(out, "operators: {}", counts.join(", "))?,
    }
    for one in &diagnosis.not_seen {
        writeln!(out, "not seen: {}: {}", printable(&one.what), printable(&one.why))?;
    }
    out.flush()
}

/// The most causes that are printed, and the most evidence and consequences of one: people begin with the first few.
const MOST_CAUSES: usize = 100;
const MOST_SHOWN: usize = 20;

fn told(cause: &Cause, out: &mut dyn Write) -> io::Result<()> {
    let subscription = match (cause.subscription.as_str(), cause.object.namespace.as_str()) {
        ("", _) => String::new(),
        (name, _) => format!(" (subscription {name})"),
    };
    let state = if cause.level == crate::lifecycle::doctor::Level::Error { "broken" } else { "waiting" };
    writeln!(out, "{state}[{}]: {}{}", cause.code, line(&cause.sentence), line(&subscription))?;
    let more = |count: usize| match count.saturating_sub(MOST_SHOWN) {
        0 => String::new(),
        more => format!("  and {more} more like these\n"),
    };
    for one in cause.evidence.iter().take(MOST_SHOWN) {
        let place = if one.object.namespace.is_empty() {
            String::new()
        } else {
            format!(" in {}", one.object.namespace)
        };
        writeln!(
            out,
            "  {}{} {}: {}",
            line(&one.object.short()),
            line(&place),
            line(&one.field),
            line(&one.message)
        )?;
    }
    write!(out, "{}", more(cause.evidence.len()))?;
    for one in cause.consequences.iter().take(MOST_SHOWN) {
        writeln!(out, "  so: {}", line(one))?;
    }
    write!(out, "{}", more(cause.consequences.len()))?;
    for one in &cause.repair {
        writeln!(out, "  repair: {}", line(&one.effect.to_string()))?;
        for text in one.command.to_string().lines() {
            writeln!(out, "    {}", printable(text))?;
        }
    }
    writeln!(out)
}

/// Text on one line.
fn line(text: &str) -> String {
    printable(text).split('\n').map(str::trim_end).collect::<Vec<_>>().join(" ")
}
