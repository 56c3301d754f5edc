//! Reader of Rust source: lines of the program, declared modules, and names imported by `use`.
//!
//! Works on lines as rustfmt formats them. In doubtful cases it keeps the line, so that a rule finds too much rather than
//! too little. Independent of the rules.

/// A declared module in a separate file.
#[derive(Debug, PartialEq, Eq)]
pub struct Module {
    pub name: String,
    /// Value of `#[path = "..."]`.
    pub path: Option<String>,
    /// True if the module is compiled for tests only.
    pub is_test: bool,
}

/// Returns the modules in separate files.
pub fn modules(text: &str) -> Vec<Module> {
    let mut modules = Vec::new();
    let (mut is_test, mut path) = (false, None);
    for line in text.lines().map(str::trim) {
        if is_test_attribute(line) {
            is_test = true;
        } else if let Some(quoted) = line.strip_prefix("#[path = \"") {
            path = quoted.strip_suffix("\"]").map(str::to_owned);
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            if let Some(name) = declared_module(line) {
                modules.push(Module { name: name.to_owned(), path: path.take(), is_test });
            }
            (is_test, path) = (false, None);
        }
    }
    modules
}

fn declared_module(line: &str) -> Option<&str> {
    without_visibility(line).strip_prefix("mod ")?.strip_suffix(';')
}

fn without_visibility(line: &str) -> &str {
    match line.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")) {
        Some((_, rest)) => rest,
        None => line.strip_prefix("pub ").unwrap_or(line),
    }
}

fn is_test_attribute(line: &str) -> bool {
    line == "#[cfg(test)]" || line.starts_with("#[cfg(all(test,")
}

/// Returns numbered lines of the program: no comments, no test items, and for each `use` one line per imported name.
pub fn program(text: &str) -> Vec<(usize, String)> {
    let mut program = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if is_test_attribute(line.trim()) {
            let margin = indentation(line);
            // The item ends at a line with the indentation of its attribute.
            lines.by_ref().find(|(_, line)| ends_item(line, margin));
            continue;
        }
        let mut code = without_comment(line).to_owned();
        if !without_visibility(code.trim()).starts_with("use ") {
            program.push((index + 1, code));
            continue;
        }
        while !code.contains(';') {
            let Some((_, more)) = lines.next() else { break };
            code.push_str(without_comment(more).trim());
        }
        let tree =
            without_visibility(code.trim()).trim_start_matches("use ").trim_end_matches(';').to_owned();
        let mut names = Vec::new();
        imported("", &tree, &mut names);
        program.extend(names.into_iter().map(|name| (index + 1, format!("use {name};"))));
    }
    program
}

fn ends_item(line: &str, margin: usize) -> bool {
    let text = line.trim();
    indentation(line) == margin && !text.starts_with("#[") && text.ends_with(['}', ';', ','])
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Adds the full paths of a tree of imports.
fn imported(prefix: &str, tree: &str, names: &mut Vec<String>) {
    for part in split_outside_braces(tree) {
        match part.split_once('{') {
            Some((head, rest)) => {
                imported(&format!("{prefix}{head}"), rest.strip_suffix('}').unwrap_or(rest), names);
            }
            None if part == "self" => names.push(prefix.trim_end_matches(':').to_owned()),
            None => names.push(format!("{prefix}{part}")),
        }
    }
}

fn split_outside_braces(tree: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, byte) in tree.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&tree[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tree[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Returns the line up to `//`, unless it is in a string (such as a URL).
fn without_comment(line: &str) -> &str {
    let mut from = 0;
    while let Some(at) = line[from..].find("//").map(|at| at + from) {
        if line[..at].matches('"').count().is_multiple_of(2) {
            return &line[..at];
        }
        from = at + 2;
    }
    line
}

/// Returns true if the line contains the complete word.
pub fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(part)
            && !line[at + word.len()..].chars().next().is_some_and(part)
    })
}

#[test]
fn comments_are_excluded() {
    let lines = program("//! axum\nuse a; // axum\nlet u = \"https://x\"; // y\n");
    let lines: Vec<&str> = lines.iter().map(|(_, line)| line.trim_end()).collect();
    assert_eq!(lines, ["", "use a;", "let u = \"https://x\";"]);
}

#[test]
fn test_items_are_excluded_and_the_code_after_them_is_included() {
    let text = "#[cfg(test)]\nmod tests;\nfn a() {}\nimpl B {\n    #[cfg(test)]\n    #[expect(\n        dead_code,\n        reason = \"x\"\n    )]\n    fn c(\n        &self,\n    ) -> u8 {\n        1;\n    }\n    fn d() {}\n}\n#[cfg(test)]\nmod more {\n    use axum;\n}\nfn e() {}\n";
    let lines: Vec<(usize, String)> = program(text);
    let lines: Vec<(usize, &str)> = lines.iter().map(|(n, line)| (*n, line.trim())).collect();
    assert_eq!(lines, [(3, "fn a() {}"), (4, "impl B {"), (15, "fn d() {}"), (16, "}"), (21, "fn e() {}")]);
}

#[test]
fn imports_are_split_into_full_paths() {
    let text = "pub(crate) use a::{\n    B, // why\n    c::{self, D as E},\n    f,\n};\nuse g;\n";
    let lines = program(text);
    let lines: Vec<&str> = lines.iter().map(|(_, line)| line.as_str()).collect();
    assert_eq!(lines, ["use a::B;", "use a::c;", "use a::c::D as E;", "use a::f;", "use g;"]);
}

#[test]
fn modules_in_separate_files_are_found_with_attributes() {
    let text =
        "pub mod a;\nmod b {\n}\n#[cfg(test)]\n#[path = \"x_tests.rs\"]\nmod tests;\npub(crate) mod c;\n";
    let named = |name: &str, path: Option<&str>, is_test| Module {
        name: name.to_owned(),
        path: path.map(str::to_owned),
        is_test,
    };
    assert_eq!(
        modules(text),
        [named("a", None, false), named("tests", Some("x_tests.rs"), true), named("c", None, false)]
    );
}

#[test]
fn only_complete_words_match() {
    assert!(has_word("use axum::Router;", "axum"));
    assert!(!has_word("use axumite;", "axum") && !has_word("my_axum", "axum"));
}
