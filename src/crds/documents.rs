//! The definitions in files: documents of YAML, or JSON.

use std::io::Read;
use std::path::{Path, PathBuf};

use portico_gostd::os::error_text;
use serde::Deserialize;

use super::failure::Failure;

/// One definition as it was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document {
    /// File and place in it, for messages.
    pub(super) from: String,
    pub(super) definition: Vec<u8>,
    pub(super) media_type: &'static str,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    kind: String,
}

/// All definitions of these files, in their order.
pub(super) fn read(files: &[PathBuf]) -> Result<Vec<Document>, Failure> {
    let mut found = Vec::new();
    for file in files {
        let text = text(file).map_err(|error| format!("{}: {}", file.display(), error_text(&error)))?;
        for (at, document) in split(&text).into_iter().enumerate() {
            let from = format!("{}, document {}", file.display(), at + 1);
            let kind: Option<Kind> =
                serde_saphyr::from_str(document).map_err(|error| format!("{from}: {error}"))?;
            if kind.is_some_and(|found| found.kind == "CustomResourceDefinition") {
                let json = document.trim_start().starts_with('{');
                let media_type = if json { "application/json" } else { "application/yaml" };
                found.push(Document { from, definition: document.as_bytes().to_vec(), media_type });
            }
        }
    }
    if found.is_empty() {
        return Err("there is no CustomResourceDefinition in what was given".into());
    }
    Ok(found)
}

fn text(file: &Path) -> std::io::Result<String> {
    if file != Path::new("-") {
        return std::fs::read_to_string(file);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

/// The documents between lines of three dashes; those that say nothing are left out.
fn split(text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let (mut begin, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" || line.starts_with("--- ") {
            documents.push(&text[begin..at]);
            begin = at + line.len();
        }
        at += line.len();
    }
    documents.push(&text[begin..]);
    let says = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    documents.retain(|document| document.lines().any(says));
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_stand_between_dashes_and_say_something() {
        let text = "# one\n---\nkind: A\n---\n\n# nothing\n--- # two\nkind: B\n";
        assert_eq!(split(text), ["kind: A\n", "kind: B\n"]);
        assert_eq!(split("kind: A"), ["kind: A"]);
    }
}
