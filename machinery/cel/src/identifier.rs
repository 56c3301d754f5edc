//! Names of fields as expressions spell them.

/// Words that are escaped as `__word__` when they name a field.
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

/// How expressions spell a property: `a-b` is `a__dash__b`. None for names that cannot be spelled.
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
        if let Some(behind) = rest.strip_prefix("__") {
            escaped.push_str("__underscores__");
            rest = behind;
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
}
