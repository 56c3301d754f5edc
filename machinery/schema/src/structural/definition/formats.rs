//! Formats that mean nothing: upstream's validation does not know them, and warns (2.9).

use portico_machinery::Cursor;

use super::visit::visit;
use crate::structural::Format;
use crate::structural::model::JsonType;

/// Whether a format means something for a type; an empty type is a text's.
fn is_recognized(ty: &str, format: &str) -> bool {
    match (ty, JsonType::parse(ty)) {
        ("", _) => Format::recognised(format, None).is_some(),
        (_, None) => false,
        (_, known) => Format::recognised(format, known).is_some(),
    }
}

/// The formats of a schema that mean nothing, one for each place where one stands.
#[must_use]
pub fn unrecognized<'a>(schema: &Cursor<'a>) -> Vec<&'a str> {
    let mut found = Vec::new();
    if let Some(schema) = schema.value() {
        visit(schema, &mut |props| {
            if !props.format.is_empty() && !is_recognized(props.ty, props.format) {
                found.push(props.format);
            }
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_belongs_to_its_types() {
        let known = [
            ("", "date"),
            ("string", "date-time"),
            ("integer", "int32"),
            ("number", "double"),
            ("", "k8s-short-name"),
        ];
        assert!(known.iter().all(|(ty, format)| is_recognized(ty, format)));
        let unknown = [
            ("string", "int32"),
            ("integer", "int16"),
            ("boolean", "byte"),
            ("float", "byte"),
            ("", "colour"),
        ];
        assert!(!unknown.iter().any(|(ty, format)| is_recognized(ty, format)));
    }
}
