//! Aligned columns.

/// Rows under headings; a column is as wide as its widest cell.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Starts with the headings.
    pub(super) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row; an empty cell is shown as `-`.
    pub(super) fn row<I: IntoIterator<Item = String>>(&mut self, cells: I) {
        let cell = |cell: String| if cell.is_empty() { "-".to_owned() } else { one_line(&cell) };
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

/// A text without what would move a terminal's cursor: messages come from AWS and from commits.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|char| if char.is_control() && char != '\n' { '\u{fffd}' } else { char }).collect()
}

fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_nothing_moves_the_cursor() {
        let mut table = Table::new(&["NAME", "STATE"]);
        table.row(["a-long-name".to_owned(), "two\nlines \u{1b}[2J".to_owned()]);
        table.row(["é".to_owned(), String::new()]);
        insta::assert_snapshot!(table, @r"
        NAME         STATE
        a-long-name  two lines �[2J
        é            -
        ");
    }
}
