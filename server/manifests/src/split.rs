//! Splits a file into documents.

/// Text of a document with content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// Line of the file at which the document begins, from 1.
    pub(crate) line: usize,
    pub(crate) text: &'a str,
}

/// Returns the documents between lines of three dashes; documents without content are omitted.
pub(crate) fn split(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut begin, mut line, mut at) = (0, 1, 0);
    for (number, whole) in text.split_inclusive('\n').enumerate() {
        let bare = whole.trim_end();
        let is_mark = |mark: &str| {
            bare.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
        };
        if is_mark("---") {
            parts.push(Part { line, text: &text[begin..at] });
            // Text after the dashes belongs to the next document.
            (begin, line) = (at + 3, number + 1);
        } else if is_mark("...") {
            parts.push(Part { line, text: &text[begin..at] });
            (begin, line) = (at + whole.len(), number + 2);
        }
        at += whole.len();
    }
    parts.push(Part { line, text: &text[begin..] });
    parts.retain(|part| part.text.lines().any(says));
    parts
}

fn says(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with(['#', '%'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_begin_where_they_do_and_say_something() {
        let text = "# one\n---\nkind: A\n---\n\n# nothing\n--- # two\nkind: B\n...\n--- {kind: C}\n";
        let parts: Vec<_> = split(text).iter().map(|part| (part.line, part.text)).collect();
        assert_eq!(parts, [(2, "\nkind: A\n"), (7, " # two\nkind: B\n"), (10, " {kind: C}\n")]);
        assert_eq!(split("kind: A"), [Part { line: 1, text: "kind: A" }]);
        assert!(split("\n# nothing\n---\n").is_empty());
    }
}
