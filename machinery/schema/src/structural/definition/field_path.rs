//! Paths to fields of a schema, as used by rules (`fieldPath`) and selectable fields (`jsonPath`): `.a.b`, `['c.d']`.

use portico_machinery::Cursor;
use portico_machinery::field::Path;
use serde_json::Value;

use super::props::{Additional, Props};

const NO_FIELD: &str = "does not refer to a valid field";
const UNEXPECTED_END: &str = "unexpected end of JSON path";

/// Field to which a path resolves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedField {
    /// Path in the notation of field errors.
    pub path: Path,
    /// First step.
    pub root: String,
    /// Type of the field, empty if it has none.
    pub ty: String,
}

/// Resolves a path of names from the root of a schema; array notation is an error.
///
/// # Errors
/// Upstream's message if the path does not resolve.
pub fn resolve(schema: &Cursor<'_>, path: &str) -> Result<ResolvedField, String> {
    let schema = schema.value().ok_or(NO_FIELD)?;
    let (path, root, found) = resolve_tokens(schema, path, false)?;
    let ty = found.map(|schema| Props::of(schema).ty).unwrap_or_default().to_owned();
    Ok(ResolvedField { path, root, ty })
}

/// Returns the path, its first step, and the schema at its end, or `None` below `additionalProperties: true`.
pub(super) fn resolve_tokens<'a>(
    schema: &'a Value,
    text: &str,
    brackets: bool,
) -> Result<(Path, String, Option<&'a Value>), String> {
    let (mut path, mut root, mut schema) = (Path::root(), String::new(), Some(schema));
    let mut tokens = Tokens(text);
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next().ok_or(UNEXPECTED_END)?.to_owned(),
            "[" if brackets => unquote(tokens.next().ok_or(UNEXPECTED_END)?)?,
            "[" => return Err("array notation is not allowed".to_owned()),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let props = schema.map(Props::of).ok_or(NO_FIELD)?;
        (path, schema) = match (props.properties, props.additional) {
            (Some(_), _) => (path.child(&name), Some(props.property(&name).ok_or(NO_FIELD)?)),
            (None, Some(Additional::Schema(schema))) => (path.key(&name), Some(schema)),
            (None, Some(Additional::Allowed(_))) => (path.key(&name), None),
            (None, None) => return Err(NO_FIELD.to_owned()),
        };
        if root.is_empty() {
            root.clone_from(&name);
        }
        if token == "[" {
            match tokens.next().ok_or(UNEXPECTED_END)? {
                "]" => {}
                other => return Err(format!("expected ] but got {other}")),
            }
        }
    }
    Ok((path, root, schema))
}

/// Iterator over tokens: the delimiters `.`, `[`, `]`, quoted strings, and the text between them.
pub(in crate::structural) struct Tokens<'a>(pub &'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0;
        let first = text.chars().next()?;
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => closing_quote(text).unwrap_or(text.len()),
            _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
        };
        self.0 = &text[end..];
        Some(&text[..end])
    }
}

fn closing_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (1..bytes.len()).find(|index| bytes[*index] == b'\'' && bytes[index - 1] != b'\\').map(|index| index + 1)
}

/// Returns the content of a single-quoted string.
pub(in crate::structural) fn unquote(token: &str) -> Result<String, String> {
    let content = token.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let content = content.ok_or_else(|| format!("expected single quoted string but got {token}"))?;
    unescape(content).ok_or_else(|| "invalid string literal: invalid escape sequence".to_owned())
}

fn unescape(text: &str) -> Option<String> {
    let (mut plain, mut chars) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => match chars.next()? {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                '\'' => '\'',
                '\\' => '\\',
                _ => return None,
            },
            c => c,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_resolved_or_rejected_with_upstream_messages() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b.c": {"type": "string"}, "l": {"type": "array"}}},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
            "any": {"type": "object", "additionalProperties": true}}});
        for (path, want) in [
            (".a['b.c']", Ok("a.b.c")),
            (".m.x", Ok("m[x]")),
            (".m['it\\'s']", Ok("m[it's]")),
            (".any.x", Ok("any[x]")),
            (".any.x.y", Err(NO_FIELD)),
            (".q", Err(NO_FIELD)),
            ("a", Err("expected [ or . but got: a")),
            (".a.l[0]", Err("expected single quoted string but got 0")),
            (".a['b.c'", Err(UNEXPECTED_END)),
            (".a['b.c'.", Err("expected ] but got .")),
            (".", Err(UNEXPECTED_END)),
        ] {
            let found = resolve_tokens(&schema, path, true).map(|(path, ..)| path.to_string());
            assert_eq!(found, want.map(str::to_owned).map_err(str::to_owned), "{path}");
        }
        assert_eq!(resolve_tokens(&schema, ".a[0]", false).unwrap_err(), "array notation is not allowed");
    }
}
