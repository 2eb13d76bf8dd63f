//! Tables: columns of text below their titles.

use std::io::{self, Write};

use super::printable;

/// Rows of cells; the first row is that of the titles.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn titled(titles: &[&str]) -> Self {
        let mut table = Self { rows: Vec::new() };
        table.row(titles.iter().copied());
        table
    }

    /// Adds a row. A cell is a line, whatever is in it.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        let clean = |cell: &str| printable(cell).replace(['\n', '\t'], " ");
        self.rows.push(cells.into_iter().map(|cell| clean(cell.as_ref())).collect());
    }

    /// Prints it, unless there is nothing below its titles.
    pub(super) fn print_any(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.rows.len() > 1 { self.print(out) } else { Ok(()) }
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells: Vec<_> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            writeln!(out, "{}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// A cell, or a dash where it is empty.
pub(super) fn dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}
