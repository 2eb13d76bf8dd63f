//! Operators on a terminal of any size: a table whose least important columns go where it is narrow, and the doctor's sentences below
//! it, wrapped. Where it is too low for all of them, those that need somebody come first.

use std::cmp::Reverse;

use super::printable;
use crate::lifecycle::operator::Operator;

/// The columns and lines of a terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) lines: usize,
}

/// Between two columns.
const GAP: usize = 2;
/// The narrowest that a name is cut to.
const NARROWEST: usize = 8;

/// A column, and how soon it goes where there is no room: the highest first, 0 never.
struct Column {
    title: &'static str,
    goes: u8,
    cells: Vec<String>,
}

impl Column {
    fn width(&self) -> usize {
        self.cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0).max(self.title.len())
    }
}

/// What a terminal shows of operators, at most as large as it is.
pub(super) fn screen(operators: &[Operator], size: Size) -> String {
    let mut all: Vec<&Operator> = operators.iter().collect();
    if all.is_empty() {
        return "no operators\n".to_owned();
    }
    let notes = all.iter().filter_map(|operator| note(operator));
    let notes: Vec<Vec<String>> = notes.map(|note| wrapped(&note, size.columns)).collect();
    let room = size.lines.saturating_sub(1).max(2);
    let is_low = all.len() + 1 + notes.iter().map(Vec::len).sum::<usize>() > room;
    if is_low {
        all.sort_by_key(|operator| Reverse(operator.health));
    }
    // Every other line belongs to the sentences, if there are any.
    let rows = if is_low {
        (room / 2).max(room.saturating_sub(1 + notes.iter().map(Vec::len).sum::<usize>()))
    } else {
        all.len() + 1
    };
    let mut lines = table(&all, size.columns);
    if lines.len() > rows {
        let hidden = lines.len() + 1 - rows;
        lines.truncate(rows.saturating_sub(1).max(1));
        lines.push(cut(&format!("… and {hidden} more operators"), size.columns));
    }
    for note in notes {
        if lines.len() + note.len() > room {
            let last = room.saturating_sub(lines.len());
            lines.extend(note.into_iter().take(last));
            break;
        }
        lines.extend(note);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The table: its titles, and a line for each operator.
fn table(all: &[&Operator], width: usize) -> Vec<String> {
    let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { printable(text).replace('\n', " ") };
    let column = |title, goes, cell: &dyn Fn(&Operator) -> String| Column {
        title,
        goes,
        cells: all.iter().map(|operator| dash(&cell(operator))).collect(),
    };
    let mut columns = vec![
        column("NAMESPACE", 0, &|one| one.namespace.clone()),
        column("NAME", 0, &|one| one.subscription.clone()),
        column("VERSION", 1, &|one| super::paths::short(&one.installed_csv, &one.package).to_owned()),
        column("STATE", 0, &|one| one.health.map_or("", |state| state.as_str()).to_owned()),
        column("PHASE", 2, &|one| one.csv_phase.clone()),
        column("CHANNEL", 3, &|one| one.channel.clone()),
    ];
    let total = |columns: &[Column]| columns.iter().map(|one| one.width() + GAP).sum::<usize>() - GAP;
    while total(&columns) > width {
        let Some(at) =
            (0..columns.len()).filter(|at| columns[*at].goes > 0).max_by_key(|at| columns[*at].goes)
        else {
            break;
        };
        columns.remove(at);
    }
    // Names are cut, the longest first.
    let mut widths: Vec<usize> = columns.iter().map(Column::width).collect();
    let is_state = |at: usize| columns[at].title == "STATE";
    while widths.iter().sum::<usize>() + GAP * (widths.len() - 1) > width {
        let widest = (0..widths.len()).filter(|at| !is_state(*at)).max_by_key(|at| widths[*at]);
        match widest.filter(|at| widths[*at] > NARROWEST) {
            Some(at) => widths[at] -= 1,
            None => break,
        }
    }
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{:width$}", cut(cell, *width)));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(columns.iter().map(|one| one.title).collect())];
    lines.extend((0..all.len()).map(|at| line(columns.iter().map(|one| one.cells[at].as_str()).collect())));
    lines
}

/// The doctor's sentence about an operator.
fn note(operator: &Operator) -> Option<String> {
    let (cause, state) = operator.cause.as_ref().zip(operator.health)?;
    let (namespace, name) = (&operator.namespace, operator.title());
    let (state, code, sentence) = (state.as_str(), cause.code, &cause.sentence);
    Some(printable(&format!("{namespace}/{name} {state}[{code}]: {sentence}")).replace('\n', " "))
}

/// Text that is no longer than a line.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Text on lines of a width, those after the first indented. A word that is longer than a line is broken.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    const INDENT: &str = "    ";
    let width = width.max(2 * INDENT.len());
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut rest: Vec<char> = word.chars().collect();
        let is_first = used == 0 || lines.last().is_some_and(|line| line == INDENT);
        if !is_first && used + 1 + rest.len() > width {
            lines.push(INDENT.to_owned());
            used = INDENT.len();
        } else if !is_first {
            if let Some(line) = lines.last_mut() {
                line.push(' ');
            }
            used += 1;
        }
        while used + rest.len() > width {
            let tail = rest.split_off(width - used);
            if let Some(line) = lines.last_mut() {
                line.extend(rest);
            }
            lines.push(INDENT.to_owned());
            (used, rest) = (INDENT.len(), tail);
        }
        used += rest.len();
        if let Some(line) = lines.last_mut() {
            line.extend(rest);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::lifecycle::doctor::State;
    use crate::lifecycle::operator::RootCause;

    fn operator(namespace: &str, name: &str, health: State) -> Operator {
        let cause = (health == State::Broken).then(|| RootCause {
            code: "image-pull",
            sentence: "`demo.v0.2.0` does not start, its deployment `demo` is not available: pod `demo-5d9-x` cannot pull the image `registry.example.com/team/demo-controller:v0.2.0` (ErrImagePull): not found".into(),
        });
        Operator {
            namespace: namespace.into(),
            subscription: name.into(),
            package: name.into(),
            installed_csv: format!("{name}.v0.2.0"),
            csv_phase: if health == State::Broken { "Installing" } else { "Succeeded" }.into(),
            channel: "stable".into(),
            health: Some(health),
            cause,
            ..Operator::default()
        }
    }

    fn shown(operators: Vec<Operator>, columns: usize, lines: usize) -> String {
        let text = screen(&operators, Size { columns, lines });
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
        assert!(text.lines().count() < lines.max(3), "{text}");
        text
    }

    fn two() -> Vec<Operator> {
        vec![
            operator("cache", "redis-operator", State::Healthy),
            operator("team-with-a-long-name", "demo-operator-with-a-long-name", State::Broken),
        ]
    }

    #[test]
    fn a_terminal_of_eighty_columns() {
        assert_snapshot!(shown(two(), 80, 24));
    }

    #[test]
    fn a_terminal_of_forty_columns() {
        assert_snapshot!(shown(two(), 40, 24));
    }

    #[test]
    fn a_terminal_that_is_too_low_shows_what_is_broken_first() {
        let mut all: Vec<Operator> =
            (0..30).map(|at| operator(&format!("ns-{at:02}"), "demo", State::Healthy)).collect();
        all.push(operator("zz", "demo", State::Broken));
        assert_snapshot!(shown(all, 80, 10));
    }

    #[test]
    fn a_terminal_without_room_breaks_nothing() {
        for (columns, lines) in [(1, 1), (5, 3), (12, 4), (20, 2)] {
            let text = screen(&two(), Size { columns, lines });
            assert!(!text.is_empty());
        }
        assert_eq!(screen(&[], Size { columns: 80, lines: 24 }), "no operators\n");
    }
}
