//! Table on a terminal that is redrawn in place.

use std::io::{self, IsTerminal, Write};

use super::table::Table;

/// Area of a terminal that is redrawn.
pub(super) struct Live {
    out: anstream::AutoStream<io::Stdout>,
    drawn: usize,
}

impl Live {
    /// Begins to draw on standard output, or returns `None` if standard output is not a terminal.
    pub(super) fn begin() -> Option<Self> {
        let is_terminal = io::stdout().is_terminal();
        is_terminal.then(|| Self { out: super::output::out(), drawn: 0 })
    }

    /// Replaces the last drawing by `table` and `status_line`. Rows that do not fit are counted in an extra line.
    pub(super) fn draw(&mut self, table: &Table, status_line: &str) -> io::Result<()> {
        let (width, height) = terminal_size::terminal_size()
            .map_or((80, 24), |(width, height)| (usize::from(width.0).max(10), usize::from(height.0).max(4)));
        let mut lines = table.lines(Some(width - 1));
        // Two lines are reserved: the number of hidden rows, and `status_line`.
        if lines.len() + 2 > height {
            let hidden_lines = lines.len() + 2 - height;
            lines.truncate(height - 2);
            lines.push(format!("... and {hidden_lines} more"));
        }
        lines.push(status_line.chars().take(width - 1).collect());
        if self.drawn > 0 {
            write!(self.out, "\x1b[{}A\x1b[J", self.drawn)?;
        }
        for line in &lines {
            writeln!(self.out, "{line}")?;
        }
        self.drawn = lines.len();
        self.out.flush()
    }
}
