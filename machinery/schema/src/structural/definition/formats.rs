//! Formats without effect: upstream's validation does not recognize them, and warns.

use portico_machinery::Cursor;

use super::visit::visit;
use crate::structural::Format;
use crate::structural::model::JsonType;

/// True if a format applies to a type; an empty type means string.
fn is_recognized(ty: &str, format: &str) -> bool {
    match (ty, JsonType::parse(ty)) {
        ("", _) => Format::recognized(format, None).is_some(),
        (_, None) => false,
        (_, supported) => Format::recognized(format, supported).is_some(),
    }
}

/// Returns the formats of a schema that have no effect, one for each occurrence.
#[must_use]
pub fn unrecognized_formats<'a>(schema: &Cursor<'a>) -> Vec<&'a str> {
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
    fn a_format_requires_its_types() {
        let supported = [
            ("", "date"),
            ("string", "date-time"),
            ("integer", "int32"),
            ("number", "double"),
            ("", "k8s-short-name"),
        ];
        assert!(supported.iter().all(|(ty, format)| is_recognized(ty, format)));
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
