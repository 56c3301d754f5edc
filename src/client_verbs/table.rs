//! Tables for a terminal, with columns as wide as their widest cell.

use anstyle::Style;

/// Text of a table cell, and its color.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) style: Style,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), style: Style::new() }
    }
}

/// Table whose rows have as many cells as there are headers.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) headers: Vec<String>,
    pub(super) rows: Vec<Vec<Cell>>,
}

/// Number of spaces between columns.
const GAP: usize = 3;

impl Table {
    /// Creates a table without rows.
    pub(super) fn new(headers: &[&str]) -> Self {
        Self { headers: headers.iter().map(|header| (*header).to_owned()).collect(), rows: Vec::new() }
    }

    /// Returns the lines of the table, headers first, each cut to `width` characters if given.
    pub(super) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let headers = self.headers.iter().map(|header| Cell::from(header.to_uppercase())).collect();
        let rows: Vec<&Vec<Cell>> = std::iter::once(&headers).chain(&self.rows).collect();
        let widths: Vec<usize> = (0..self.headers.len())
            .map(|at| {
                rows.iter().filter_map(|row| row.get(at)).map(|cell| length(&cell.text)).max().unwrap_or(0)
            })
            .collect();
        rows.into_iter().map(|row| line(row, &widths, width.unwrap_or(usize::MAX))).collect()
    }
}

fn line(row: &[Cell], widths: &[usize], mut left: usize) -> String {
    let mut line = String::new();
    for (at, cell) in row.iter().enumerate() {
        let text: String = cell.text.chars().take(left).map(printable).collect();
        let is_last = at + 1 == row.len();
        let padding =
            if is_last { 0 } else { (widths[at] + GAP - length(&cell.text)).min(left - length(&text)) };
        left -= length(&text) + padding;
        let (begin, end) = (cell.style.render(), cell.style.render_reset());
        line.push_str(&format!("{begin}{text}{end}{:padding$}", ""));
    }
    line.truncate(line.trim_end().len());
    line
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Replaces control characters: stored text must not move the cursor or change colors.
fn printable(character: char) -> char {
    if character.is_control() { '\u{fffd}' } else { character }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["name", "state"]);
        table.rows.push(vec!["a-long-name".into(), "up".into()]);
        table.rows.push(vec!["b".into(), "\u{1b}[2Jdown".into()]);
        table
    }

    #[test]
    fn columns_are_aligned_and_control_characters_harmless() {
        assert_eq!(
            table().lines(None),
            ["NAME          STATE", "a-long-name   up", "b             \u{fffd}[2Jdown"]
        );
    }

    #[test]
    fn lines_are_cut_to_a_width() {
        assert_eq!(table().lines(Some(8)), ["NAME", "a-long-n", "b"]);
        assert_eq!(table().lines(Some(15)), ["NAME          S", "a-long-name   u", "b             \u{fffd}"]);
    }
}
