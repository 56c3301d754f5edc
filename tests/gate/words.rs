//! Wording of comments and documentation: patterns that readers stumble over, counted for each package.
//!
//! A match is a place to reread, not an error: a clear sentence may stay. The share of matches in a package may not exceed
//! [`LIMIT`]; tokio's source has 1.9 % by the same count.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::tree::Tree;

/// Matches allowed in each thousand lines of comments and documentation of a package.
const LIMIT: usize = 10;
/// Matches allowed in a package of any size.
const ALWAYS_ALLOWED: usize = 2;

/// Kinds of files that a pattern applies to.
#[derive(PartialEq)]
enum Scope {
    /// Comments of Rust and protobuf files.
    Comments,
    /// Comments, and all lines of Markdown files.
    CommentsAndPages,
}

struct Pattern {
    name: &'static str,
    scope: Scope,
    regex: Regex,
    /// Text that makes a match acceptable if it follows on the same line.
    unless: Option<char>,
}

static PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    let pattern = |name, scope, unless, regex: &str| Pattern {
        name,
        scope,
        unless,
        regex: Regex::new(regex).expect("patterns are valid regular expressions"),
    };
    vec![
        pattern(
            "question word",
            Scope::Comments,
            Some('?'),
            r"^\s*//[/!] (What|Which|Who|Whose|How|Where|When|Whether|Why)\b",
        ),
        pattern(
            "pronoun or fragment",
            Scope::Comments,
            None,
            r"^\s*//[/!] (Nothing|Nobody|Those|That|These|One that|So (many|much|long)|Of|By|Over|Around|Between|Beside|Also|The same|Its?|Their|Nor|Not|As|For|In|On|To|Up to|Until|Since|Even)\b",
        ),
        pattern("empty comment", Scope::Comments, None, r"^\s*//[/!] (See the module\.?|\w+\.)\s*$"),
        pattern(
            "`None` in other words",
            Scope::Comments,
            None,
            r"//.*\b[Nn]othing (when|where|if|for|unless|while|of|that|before|until)\b|//.*\bwhat is none\b",
        ),
        pattern(
            "pronoun as a noun",
            Scope::CommentsAndPages,
            None,
            r"(?i)(^|[^`])\b(what is|what was|what has|what may|what can|what will|who is|who has|who may|whoever|whatever|somebody|nobody|everybody|what of)\b",
        ),
        pattern(
            "private or archaic word",
            Scope::CommentsAndPages,
            None,
            r"(?i)\b(tell|tells|told|telling|hears?|heard|judge[sd]?|mend(s|ed|ing)?|beside|besides|deeds?|fates?|leave of|dressed|clothes|wary|peace|goodbye|disguise|riddle|evidence|thrice|nay|ere|lest|whence|thereby|therein|of ours|of theirs|of its own|meanwhile|elsewhere|misfit|insists?|settles?|settled|takes up|taken up|taken away|comes to|came to|goes by|stands? (still|for|in|where)|asked for|is asked|are asked|for a start)\b",
        ),
    ]
});

/// Lines of one package, and the places that match a pattern.
#[derive(Default)]
struct Count {
    lines: usize,
    matches: Vec<String>,
}

/// Packages with more matches than allowed, each with its matches.
pub fn violations(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for (folder, Count { lines, matches }) in counts(tree) {
        if matches.len() > ALWAYS_ALLOWED && matches.len() * 1000 > lines * LIMIT {
            let summary =
                format!("{folder:?}: {} of {lines} lines, limit {LIMIT} in a thousand", matches.len());
            broken.push(format!("{summary}\n    {}", matches.join("\n    ")));
        }
    }
    broken
}

/// Counts by folder of the package. Files outside of all other packages belong to the root package.
fn counts(tree: &Tree) -> BTreeMap<&str, Count> {
    let mut counts: BTreeMap<_, Count> = BTreeMap::new();
    let folders: Vec<&str> = tree.manifests().map(|(folder, _)| folder).collect();
    let files = tree.files.iter().filter(|(path, _)| {
        [".rs", ".md", ".proto"].iter().any(|end| path.ends_with(end)) && !path.contains("/testdata/")
    });
    for (path, text) in files {
        let contains = |folder: &&str| path.strip_prefix(*folder).is_some_and(|rest| rest.starts_with('/'));
        let folder = folders.iter().copied().filter(contains).max_by_key(|folder| folder.len());
        count_file(path, text, counts.entry(folder.unwrap_or_default()).or_default());
    }
    counts
}

fn count_file(path: &str, text: &str, count: &mut Count) {
    let page = path.ends_with(".md");
    for (number, line) in text.lines().enumerate() {
        let comment = page || line.trim_start().starts_with("//");
        count.lines += usize::from(comment);
        if !comment && !line.contains("//") {
            continue;
        }
        for pattern in PATTERNS.iter().filter(|p| !page || p.scope == Scope::CommentsAndPages) {
            let found = pattern.regex.find(line);
            if found
                .is_some_and(|found| !pattern.unless.is_some_and(|text| line[found.end()..].contains(text)))
            {
                count.matches.push(format!("{path}:{}: {}: {}", number + 1, pattern.name, line.trim()));
            }
        }
    }
}

#[cfg(test)]
fn matches(path: &str, text: &str) -> Vec<String> {
    let mut count = Count::default();
    count_file(path, text, &mut count);
    count.matches
}

#[test]
fn each_pattern_is_found() {
    for (line, name) in [
        ("/// Which requests it is about.", "question word"),
        ("//! By name.", "pronoun or fragment"),
        ("/// See the module.", "empty comment"),
        ("/// Key.", "empty comment"),
        ("// The key, nothing if it is gone.", "`None` in other words"),
        ("let a = 1; // what is left", "pronoun as a noun"),
        ("/// Returns the key of somebody.", "pronoun as a noun"),
        ("    // The entry is taken away.", "private or archaic word"),
    ] {
        let found = matches("a.rs", line);
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        assert!(found[0].contains(name), "{line}: {found:?}");
    }
    assert_eq!(matches("a.md", "The caller has to tell\nwhat is done").len(), 2);
}

#[test]
fn plain_sentences_code_and_questions_are_not_matches() {
    let text = "/// Name of the key.\n/// Which `Accept` header wins? The first one.\nlet told = \"what is\";\n// `what is` a keyword\n";
    assert_eq!(matches("a.rs", text), [""; 0]);
    assert_eq!(matches("a.md", "By default, requests wait. Which requests wait is configured."), [""; 0]);
}

#[test]
fn a_package_above_the_limit_is_a_violation() {
    let source = "//! What is it.\n//! Which.\n//! Nobody.\n";
    let tree = Tree::with(&[("a/src/lib.rs", source), ("a/Cargo.toml", ""), ("Cargo.toml", "")]);
    let found = violations(&tree);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("\"a\": "), "{found:?}");
}
