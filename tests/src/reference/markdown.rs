//! Pieces of Markdown.

/// A table; cells are escaped.
pub(super) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&header.map(str::to_owned));
    text.push_str(&line(&header.map(|_| "---".to_owned())));
    for row in rows {
        text.push_str(&line(&row.map(|cell| cell.replace('|', "\\|"))));
    }
    text
}

/// Code in a line; empty for an empty text.
pub(super) fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// A sentence: ends with a period.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', ':', ')']) && !text.ends_with("...") {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}
