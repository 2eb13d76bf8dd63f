//! Diagnoses: the sentence first, then what shows it, what follows from it, and how to repair it.

use std::io::{self, Write};

use super::{Answer, json, pretty, printable};
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
    for cause in &diagnosis.causes {
        told(cause, out)?;
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
    Ok(())
}

fn told(cause: &Cause, out: &mut dyn Write) -> io::Result<()> {
    let subscription = match (cause.subscription.as_str(), cause.object.namespace.as_str()) {
        ("", _) => String::new(),
        (name, _) => format!(" (subscription {name})"),
    };
    let state = if cause.level == crate::lifecycle::doctor::Level::Error { "broken" } else { "waiting" };
    writeln!(out, "{state}[{}]: {}{}", cause.code, line(&cause.sentence), line(&subscription))?;
    for one in &cause.evidence {
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
    for one in &cause.consequences {
        writeln!(out, "  so: {}", line(one))?;
    }
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
