//! Aligned columns.

use crate::diagnostic::visible;

/// Rows under headings; a column is as wide as its widest cell.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Starts with the headings.
    pub(super) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row; an empty cell is shown as `-`, one of several lines by its first.
    pub(super) fn row<I: IntoIterator<Item = String>>(&mut self, cells: I) {
        let cell = |cell: String| if cell.is_empty() { "-".to_owned() } else { first_line(&cell) };
        self.rows.push(cells.into_iter().map(cell).collect());
    }

    /// Whether there is nothing but headings.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// The first line of a text, with a sign that there are more. It is written out here, not only where it is
/// printed, so that columns stay aligned.
pub(super) fn first_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default().split([' ', '\t']).filter(|word| !word.is_empty());
    let more = if lines.next().is_some() { " …" } else { "" };
    visible(&first.collect::<Vec<_>>().join(" ")).into_owned() + more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_nothing_moves_the_cursor() {
        let mut table = Table::new(&["NAME", "STATE"]);
        table.row(["a-long-name".to_owned(), "one  \u{1b}[2J".to_owned()]);
        table.row(["é".to_owned(), String::new()]);
        table.row(["\u{202e}b".to_owned(), "to approve, commit:\nkind: Approval\n".to_owned()]);
        insta::assert_snapshot!(table, @r"
        NAME         STATE
        a-long-name  one \u{1b}[2J
        é            -
        \u{202e}b    to approve, commit: …
        ");
    }
}
