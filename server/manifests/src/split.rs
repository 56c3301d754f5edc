//! Splits a file into documents.

/// Text of a document with content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DocumentText<'a> {
    /// Line of the file at which the document begins, from 1.
    pub(crate) line: usize,
    pub(crate) text: &'a str,
}

/// Returns the documents between lines of three dashes; documents without content are omitted.
pub(crate) fn split(text: &str) -> Vec<DocumentText<'_>> {
    let mut parts = Vec::new();
    let (mut begin, mut line, mut offset) = (0, 1, 0);
    for (number, full_line) in text.split_inclusive('\n').enumerate() {
        let trimmed_line = full_line.trim_end();
        let is_separator = |mark: &str| {
            trimmed_line
                .strip_prefix(mark)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
        };
        if is_separator("---") {
            parts.push(DocumentText { line, text: &text[begin..offset] });
            // Text after the dashes belongs to the next document.
            (begin, line) = (offset + 3, number + 1);
        } else if is_separator("...") {
            parts.push(DocumentText { line, text: &text[begin..offset] });
            (begin, line) = (offset + full_line.len(), number + 2);
        }
        offset += full_line.len();
    }
    parts.push(DocumentText { line, text: &text[begin..] });
    parts.retain(|part| part.text.lines().any(has_content));
    parts
}

fn has_content(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with(['#', '%'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_the_correct_start_and_content() {
        let text = "# one\n---\nkind: A\n---\n\n# nothing\n--- # two\nkind: B\n...\n--- {kind: C}\n";
        let parts: Vec<_> = split(text).iter().map(|part| (part.line, part.text)).collect();
        assert_eq!(parts, [(2, "\nkind: A\n"), (7, " # two\nkind: B\n"), (10, " {kind: C}\n")]);
        assert_eq!(split("kind: A"), [DocumentText { line: 1, text: "kind: A" }]);
        assert!(split("\n# nothing\n---\n").is_empty());
    }
}
