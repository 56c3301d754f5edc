//! Documentation: links resolve, every page is listed, and pages stay short.

use crate::markdown::{self, Link};
use crate::tree::Tree;

/// Table of contents of the book.
const SUMMARY: &str = "docs/SUMMARY.md";
/// Pages that users read have at most this many lines.
const MAX_LINES: usize = 400;
/// About two lines of a table on a page of usual width, in characters.
const MAX_CELL: usize = 160;

/// Relative links to a file, folder or anchor that does not exist.
pub fn broken(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (page, text) in pages(tree, "") {
        for link in markdown::links(text) {
            if let Some(reason) = fault(tree, page, &link) {
                broken.push(format!("{page}:{}: {reason}", link.line));
            }
        }
    }
    broken
}

fn fault(tree: &Tree, page: &str, link: &Link) -> Option<String> {
    let target = if link.path.is_empty() { page.to_owned() } else { resolve(page, &link.path) };
    let exists = tree.paths.iter().any(|path| {
        path.strip_prefix(target.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    if !exists {
        return Some(format!("{target} does not exist"));
    }
    let anchor = link.anchor.as_ref()?;
    let anchor_exists = tree.files.get(&target).is_some_and(|text| markdown::anchors(text).contains(anchor));
    (!anchor_exists).then(|| format!("{target} has no heading #{anchor}"))
}

/// Path from the top of the repository of a link in a page.
fn resolve(page: &str, path: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Pages of `docs` that the table of contents does not list.
pub fn unlisted(tree: &Tree) -> Vec<String> {
    let summary = tree.files.get(SUMMARY).map_or("", String::as_str);
    let listed: Vec<String> =
        markdown::links(summary).iter().map(|link| resolve(SUMMARY, &link.path)).collect();
    let pages = pages(tree, "docs/").map(|(page, _)| page);
    pages
        .filter(|page| *page != SUMMARY && !listed.iter().any(|path| path == page))
        .map(str::to_owned)
        .collect()
}

/// Pages with too many lines, and table cells that are too long. Cells of generated pages are not limited.
pub fn long(tree: &Tree) -> Vec<String> {
    let mut long = Vec::new();
    for (page, text) in pages(tree, "docs/").chain(pages(tree, "README.md")) {
        let lines = text.lines().count();
        if lines > MAX_LINES {
            long.push(format!("{page}: {lines} lines"));
        }
        if page.starts_with("docs/reference/") {
            continue;
        }
        let cells = markdown::cells(text).into_iter();
        let cells =
            cells.map(|(line, cell)| (line, cell.chars().count())).filter(|(_, size)| *size > MAX_CELL);
        long.extend(cells.map(|(line, size)| format!("{page}:{line}: a cell of {size} characters")));
    }
    long
}

/// Markdown files whose path starts with a prefix.
fn pages<'a>(tree: &'a Tree, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let pages = tree.files.iter().filter(|(path, _)| path.ends_with(".md") && !path.contains("/testdata/"));
    pages.map(|(path, text)| (path.as_str(), text.as_str())).filter(move |(path, _)| path.starts_with(prefix))
}

#[test]
fn a_broken_link_is_found() {
    let tree = Tree::with(&[
        ("README.md", "[a](docs/a.md#one) [b](docs/b.md) [folder](docs/)\n[c](docs/a.md#two) [d](#none)\n"),
        ("docs/a.md", "# One\n[top](../README.md) [self](#one) [up](../../README.md/x)\n"),
    ]);
    assert_eq!(
        broken(&tree),
        [
            "README.md:1: docs/b.md does not exist",
            "README.md:2: docs/a.md has no heading #two",
            "README.md:2: README.md has no heading #none",
            "docs/a.md:2: README.md/x does not exist",
        ]
    );
}

#[test]
fn a_page_outside_the_table_of_contents_is_found() {
    let tree = Tree::with(&[
        (SUMMARY, "- [A](a.md)\n"),
        ("docs/a.md", ""),
        ("docs/guides/b.md", ""),
        ("README.md", ""),
    ]);
    assert_eq!(unlisted(&tree), ["docs/guides/b.md"]);
}

#[test]
fn long_pages_and_cells_are_found() {
    let row = format!("| a | {} |\n", "x".repeat(MAX_CELL + 1));
    let page = "\n".repeat(MAX_LINES + 1);
    let tree = Tree::with(&[
        ("docs/a.md", row.as_str()),
        ("docs/b.md", page.as_str()),
        ("docs/reference/c.md", row.as_str()),
        ("CHANGELOG.md", page.as_str()),
    ]);
    assert_eq!(long(&tree), ["docs/a.md:1: a cell of 161 characters", "docs/b.md: 401 lines"]);
}
