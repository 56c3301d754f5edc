//! Prints versions as upstream prints its internal Go type: all fields, with the Go names.

use portico_machinery::object::{cut, escape_html};
use portico_machinery::{Cursor, MAX_PRINTED_BYTES};
use portico_schema::structural::definition::format_schema;

use super::internal_definition::{InternalDefinition, VersionPart};

/// JSON name, Go name, and text for an absent field.
type GoField = (&'static str, &'static str, &'static str);

const COLUMN: [GoField; 6] = [
    ("name", "Name", "\"\""),
    ("type", "Type", "\"\""),
    ("format", "Format", "\"\""),
    ("description", "Description", "\"\""),
    ("priority", "Priority", "0"),
    ("jsonPath", "JSONPath", "\"\""),
];
const SCALE: [GoField; 3] = [
    ("specReplicasPath", "SpecReplicasPath", "\"\""),
    ("statusReplicasPath", "StatusReplicasPath", "\"\""),
    ("labelSelectorPath", "LabelSelectorPath", "null"),
];
const VERSION: [GoField; 5] = [
    ("name", "Name", "\"\""),
    ("served", "Served", "false"),
    ("storage", "Storage", "false"),
    ("deprecated", "Deprecated", "false"),
    ("deprecationWarning", "DeprecationWarning", "null"),
];

/// Formats `spec.versions`. A long text is truncated.
pub(super) fn format_versions(layout: &InternalDefinition<'_>) -> String {
    let mut text = String::new();
    for version in &layout.versions {
        text.push_str(if text.is_empty() { "[" } else { "," });
        text.push_str(&self::format_version(layout, version));
        if text.len() > MAX_PRINTED_BYTES {
            return cut(text);
        }
    }
    if text.is_empty() { "[]".to_owned() } else { text + "]" }
}

/// Formats a version. Parts that all versions share are `null`.
fn format_version<'a>(layout: &InternalDefinition<'a>, version: &Cursor<'a>) -> String {
    let part = |part, print: fn(&Cursor<'_>) -> String| {
        layout.version_part(version, part).map_or_else(|| "null".to_owned(), |at| print(&at))
    };
    let [schema, subresources, columns, fields] = [
        part(VersionPart::Schema, |at| {
            format!("{{\"OpenAPIV3Schema\":{}}}", format_schema(&at.field("openAPIV3Schema")))
        }),
        part(VersionPart::Subresources, format_subresources),
        part(VersionPart::Columns, |at| format_list(at, &COLUMN)),
        part(VersionPart::Selectable, |at| format_list(at, &COLUMN[5..])),
    ];
    format!(
        "{{{},\"Schema\":{schema},\"Subresources\":{subresources},\"AdditionalPrinterColumns\":{columns},\"SelectableFields\":{fields}}}",
        format_fields(version, &VERSION)
    )
}

fn format_subresources(at: &Cursor<'_>) -> String {
    let (status, scale) = (at.field("status"), at.field("scale"));
    let status = if status.is_present() { "{}" } else { "null" };
    let scale =
        if scale.is_present() { format!("{{{}}}", format_fields(&scale, &SCALE)) } else { "null".to_owned() };
    format!("{{\"Status\":{status},\"Scale\":{scale}}}")
}

fn format_list(at: &Cursor<'_>, fields: &[GoField]) -> String {
    let items: Vec<String> = at.items().map(|item| format!("{{{}}}", format_fields(&item, fields))).collect();
    format!("[{}]", items.join(","))
}

fn format_fields(at: &Cursor<'_>, fields: &[GoField]) -> String {
    let member = |(name, field, absent): &GoField| {
        let value = at.field(name);
        let value =
            if value.is_present() { escape_html(&value.json()).into_owned() } else { (*absent).to_owned() };
        format!("\"{field}\":{value}")
    };
    fields.iter().map(member).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use portico_machinery::Object;

    use super::*;

    fn print(json: &str) -> String {
        let definition = Object::from_json(json.as_bytes()).unwrap();
        format_versions(&InternalDefinition::of(&definition))
    }

    #[test]
    fn versions_are_printed_without_shared_parts() {
        let single_version = r#"{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{}}}]}}"#;
        let expected = r#"[{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]"#;
        assert_eq!(print(single_version), expected);
        assert_eq!(print(r#"{"spec":{}}"#), "[]");
        let two = r#"{"spec":{"versions":[{"name":"a","subresources":{"scale":{"specReplicasPath":".x"}}},{"name":"b","selectableFields":[{"jsonPath":".y"}]}]}}"#;
        let text = print(two);
        assert!(text.contains(
            r#""Subresources":{"Status":null,"Scale":{"SpecReplicasPath":".x","StatusReplicasPath":"","LabelSelectorPath":null}}"#
        ));
        assert!(text.contains(r#""SelectableFields":[{"JSONPath":".y"}]"#));
    }
}
