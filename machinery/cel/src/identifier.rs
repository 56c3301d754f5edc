//! Escaped names of fields.

/// Reserved words. A field of this name is escaped as `__word__`.
pub const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Escapes the name of a property for expressions: `a-b` becomes `a__dash__b`. Returns `None` for names that cannot be escaped.
#[must_use]
pub fn escape(name: &str) -> Option<String> {
    let mut characters = name.chars();
    let first = characters.next()?;
    if first.is_ascii_digit() {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("__") {
            escaped.push_str("__underscores__");
            rest = after;
            continue;
        }
        match character {
            '.' => escaped.push_str("__dot__"),
            '-' => escaped.push_str("__dash__"),
            '/' => escaped.push_str("__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => escaped.push(c),
            _ => return None,
        }
        rest = &rest[character.len_utf8()..];
    }
    Some(escaped)
}

/// Unescapes a name: `a__dash__b` becomes `a-b`. Returns `None` for unknown escapes.
#[must_use]
pub fn unescape(escaped: &str) -> Option<String> {
    let (mut name, mut rest) = (String::with_capacity(escaped.len()), escaped);
    while let Some(position) = rest.find("__") {
        let after = &rest[position + 2..];
        let end = after.find('_').unwrap_or(after.len());
        if end == 0 || !after[end..].starts_with("__") {
            name.push_str(&rest[..=position]);
            rest = &rest[position + 1..];
            continue;
        }
        name.push_str(&rest[..position]);
        let contents = &after[..end];
        name.push_str(match contents {
            "underscores" => "__",
            "dot" => ".",
            "dash" => "-",
            "slash" => "/",
            word if RESERVED.contains(&word) && word.len() + 4 == escaped.len() => word,
            _ => return None,
        });
        rest = &after[end + 2..];
    }
    name.push_str(rest);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn property_names_are_escaped() {
        let cases = [
            ("a", Some("a")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("x__y", Some("x__underscores__y")),
            ("in", Some("__in__")),
            ("int", Some("int")),
            ("1a", None),
            ("", None),
            ("a b", None),
            ("a_b", Some("a_b")),
        ];
        for (name, escaped) in cases {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
        }
    }

    #[test]
    fn escaped_names_round_trip() {
        for (escaped, name) in [
            ("a", Some("a")),
            ("a__dot__b__dash__c__slash__d", Some("a.b-c/d")),
            ("__namespace__", Some("namespace")),
            ("a__underscores__b", Some("a__b")),
            ("a_b__", Some("a_b__")),
            ("___dot__", Some("_.")),
            ("x__namespace__", None),
            ("__other__", None),
        ] {
            assert_eq!(unescape(escaped).as_deref(), name, "{escaped}");
        }
    }
}
