//! Operators as they change: a table that is drawn again and again on a terminal, a line for each change elsewhere.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use terminal_size::{Height, Width, terminal_size};

use super::screen::{Size, screen};
use super::{Format, escape_json, json, printable};
use crate::lifecycle::engine::Progress;
use crate::lifecycle::operator::Operator;
use crate::progress::tell;

/// Goes to the upper left corner and clears what is below.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Shows operators on standard output, in the way that it asks for.
pub fn watched(format: Format) -> Box<dyn Progress + Sync> {
    let is_terminal = io::stdout().is_terminal();
    Box::new(Watched { format, is_terminal, shown: Mutex::default() })
}

struct Watched {
    format: Format,
    is_terminal: bool,
    /// What was shown last.
    shown: Mutex<Option<Vec<Operator>>>,
}

impl Progress for Watched {
    fn state(&self, _: Duration, _: &str, _: &str) {}

    fn said(&self, _: Duration, text: &str) {
        tell(None, text);
    }

    fn operators(&self, operators: &[Operator]) -> bool {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let before = shown.replace(operators.to_vec());
        let mut out = io::stdout().lock();
        let shown = match self.format {
            Format::Text if self.is_terminal => table(operators, &mut out),
            Format::Text => changes(before.as_deref().unwrap_or_default(), operators, &mut out),
            _ if before.as_deref() == Some(operators) => Ok(()),
            _ => {
                let list = json::OperatorList { schema: "olmkit.operators/v1", operators };
                writeln!(out, "{}", escape_json(serde_json::to_string(&list).unwrap_or_default()))
            }
        };
        shown.and_then(|()| out.flush()).is_ok()
    }

    fn is_watched(&self) -> bool {
        let out = io::stdout();
        // What has gone wrong with the stream is told whatever was asked for.
        let mut streams = [PollFd::new(&out, PollFlags::empty())];
        let asked = poll(&mut streams, Some(&Timespec::default()));
        asked.is_err() || !streams[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }
}

fn table(operators: &[Operator], out: &mut dyn Write) -> io::Result<()> {
    // It may have another size each time.
    let size = terminal_size().map_or(Size { columns: 80, lines: 24 }, |(Width(columns), Height(lines))| {
        Size { columns: columns.into(), lines: lines.into() }
    });
    write!(out, "{CLEAR}{}", screen(operators, size))
}

/// A line for each operator that is new, has changed, or is gone.
fn changes(before: &[Operator], now: &[Operator], out: &mut dyn Write) -> io::Result<()> {
    let same = |a: &Operator, b: &Operator| (&a.namespace, a.title()) == (&b.namespace, b.title());
    for operator in now {
        let line = line(operator);
        let old = before.iter().find(|old| same(old, operator));
        if old.is_none_or(|old| self::line(old) != line) {
            writeln!(out, "{}", printable(&line))?;
        }
    }
    for gone in before.iter().filter(|old| !now.iter().any(|operator| same(old, operator))) {
        writeln!(out, "{}", printable(&format!("{}/{} gone", gone.namespace, gone.title())))?;
    }
    Ok(())
}

/// An operator in a line.
fn line(operator: &Operator) -> String {
    let Operator { namespace, installed_csv, csv_phase, .. } = operator;
    let name = operator.title();
    let installed = if installed_csv.is_empty() { "nothing installed" } else { installed_csv };
    let state = operator.health.map_or("", |state| state.as_str());
    let cause = operator.cause.as_ref().map(|cause| format!("[{}]: {}", cause.code, cause.sentence));
    let text = format!("{namespace}/{name} {installed} {csv_phase} {state}{}", cause.unwrap_or_default());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::doctor::State;

    #[test]
    fn only_what_changes_is_a_line() {
        let operator = |name: &str, health| Operator {
            namespace: "ns".into(),
            subscription: name.into(),
            installed_csv: "a.v1".into(),
            csv_phase: "Succeeded".into(),
            health: Some(health),
            ..Operator::default()
        };
        let said = |before: &[Operator], now: &[Operator]| {
            let mut out = Vec::new();
            changes(before, now, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let (well, ill) = (operator("a", State::Healthy), operator("a", State::Broken));
        assert_eq!(said(&[], std::slice::from_ref(&well)), "ns/a a.v1 Succeeded healthy\n");
        assert_eq!(said(std::slice::from_ref(&well), std::slice::from_ref(&well)), "");
        assert_eq!(
            said(std::slice::from_ref(&well), std::slice::from_ref(&ill)),
            "ns/a a.v1 Succeeded broken\n"
        );
        assert_eq!(said(&[well], &[]), "ns/a gone\n");
    }
}
