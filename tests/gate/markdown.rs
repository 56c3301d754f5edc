//! Markdown pages: their links, headings and tables, outside code.
//!
//! Covers the Markdown that the repository uses: fenced and indented-in-list code, inline code, inline
//! links and images, ATX headings.

/// A relative link of a page.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    pub line: usize,
    /// Target without its anchor; empty for the page itself.
    pub path: String,
    pub anchor: Option<String>,
}

/// Relative links and images of a page.
pub fn links(page: &str) -> Vec<Link> {
    let lines = prose(page);
    lines
        .into_iter()
        .flat_map(|(line, text)| targets(&text).filter_map(move |to| link(line, to)).collect::<Vec<_>>())
        .collect()
}

/// Anchors of a page: one for each heading, as GitHub and mdBook name them.
pub fn anchors(page: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, text) in lines_outside_code(page) {
        let Some(heading) = text.strip_prefix('#').map(|rest| rest.trim_start_matches('#')) else { continue };
        if let Some(heading) = heading.strip_prefix(' ') {
            let base = slug(heading);
            let mut anchor = base.clone();
            let mut count = 0;
            while anchors.contains(&anchor) {
                count += 1;
                anchor = format!("{base}-{count}");
            }
            anchors.push(anchor);
        }
    }
    anchors
}

/// Cells of all table rows, with the number of their line.
pub fn cells(page: &str) -> Vec<(usize, String)> {
    let rows = lines_outside_code(page).filter(|(_, text)| text.starts_with('|'));
    rows.flat_map(|(line, text)| {
        let row = text.trim().trim_matches('|').replace("\\|", "\u{0}");
        row.split('|').map(|cell| (line, cell.trim().replace('\u{0}', "|"))).collect::<Vec<_>>()
    })
    .collect()
}

/// Lines outside fenced code, numbered from 1.
fn lines_outside_code(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    page.lines().enumerate().filter_map(move |(index, text)| {
        let start = text.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => return Some((index + 1, text)),
            _ => {}
        }
        None
    })
}

/// Lines outside fenced code, without their inline code.
fn prose(page: &str) -> Vec<(usize, String)> {
    let lines = lines_outside_code(page);
    lines.map(|(line, text)| (line, text.split('`').step_by(2).collect::<Vec<_>>().join("code"))).collect()
}

/// Targets of `](target)` in a line.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
}

fn link(line: usize, target: &str) -> Option<Link> {
    let target = target.trim_matches(['<', '>']);
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_owned())),
        None => (target, None),
    };
    Some(Link { line, path: path.to_owned(), anchor })
}

/// Anchor of a heading: lower case, spaces as `-`, without punctuation and link targets.
fn slug(heading: &str) -> String {
    let text: String = heading.trim().split("](").enumerate().fold(String::new(), |text, (index, part)| {
        let part = if index == 0 { part } else { part.split_once(')').map_or("", |(_, rest)| rest) };
        text + part
    });
    let words = text.to_lowercase().replace(' ', "-");
    words.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}

#[test]
fn links_in_code_and_to_other_hosts_are_ignored() {
    let page = "[a](b.md#c) `[x](y)` [w](https://example.com)\n```sh\n[n](o)\n```\n![p](q.png) [r](#s)\n";
    let link = |line, path: &str, anchor: Option<&str>| Link {
        line,
        path: path.to_owned(),
        anchor: anchor.map(str::to_owned),
    };
    assert_eq!(links(page), [link(1, "b.md", Some("c")), link(5, "q.png", None), link(5, "", Some("s"))]);
}

#[test]
fn anchors_are_those_of_github() {
    let page = "# The `--a` flag\n## Upstream's, [x](y)!\n## Same\n## Same\n#no\n```\n# no\n```\n";
    assert_eq!(anchors(page), ["the---a-flag", "upstreams-x", "same", "same-1"]);
}

#[test]
fn cells_are_split_at_unescaped_bars() {
    assert_eq!(cells("| a | b\\|c |\ntext\n"), [(1, "a".to_owned()), (1, "b|c".to_owned())]);
}
