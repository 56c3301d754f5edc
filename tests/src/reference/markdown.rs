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

/// Text as inline code; empty for an empty text.
pub(super) fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// Plain text with backticks as Markdown: ends with a period, asterisks are escaped outside of code.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim();
    let parts = text.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => part.replace('*', "\\*").replace('<', "\\<"),
        _ => part.to_owned(),
    });
    let mut text = parts.collect::<Vec<_>>().join("`");
    if !text.is_empty() && !text.ends_with(['.', ':']) {
        text.push('.');
    }
    text
}
