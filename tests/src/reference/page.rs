//! A page, and the limits that keep pages readable.

/// Maximum lines of a page.
const MAX_LINES: usize = 400;
/// Maximum characters of a table cell.
const MAX_CELL: usize = 160;

/// A generated page.
pub(super) struct Page {
    /// File name in docs/reference.
    pub(super) file: String,
    /// Markdown, from the title to the last line.
    pub(super) text: String,
}

impl Page {
    pub(super) fn new(file: &str, text: String) -> Self {
        Self { file: file.to_owned(), text }
    }

    /// Content of the file: the page with a note for editors.
    pub(super) fn content(&self, command: &str) -> String {
        let note = format!("<!-- Generated. Do not edit: change the code and run `{command}`. -->");
        format!("{note}\n\n{}\n", self.text.trim_end())
    }

    /// Violations of the limits.
    pub(super) fn problems(&self) -> Vec<String> {
        let (file, lines) = (&self.file, self.text.lines().count());
        let too_long = (lines > MAX_LINES).then(|| format!("{file}: {lines} lines, limit {MAX_LINES}"));
        let rows = self.text.lines().filter(|line| line.starts_with('|'));
        let wide = rows.flat_map(|row| row.split(" | ")).filter(|cell| cell.chars().count() > MAX_CELL);
        too_long
            .into_iter()
            .chain(wide.map(|cell| format!("{file}: cell of {} characters: {cell}", cell.chars().count())))
            .collect()
    }
}
