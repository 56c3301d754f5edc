//! How upstream holds versions inside: what its errors about all of them print, every field under its own name.

use portico_machinery::object::{cut, escape_html};
use portico_machinery::{Cursor, MAX_PRINTED_BYTES};
use portico_schema::structural::definition::schema_as_held;

use super::layout::{Layout, Part};

/// JSON name, field name, and what stands for an absent one.
type Member = (&'static str, &'static str, &'static str);

const COLUMN: [Member; 6] = [
    ("name", "Name", "\"\""),
    ("type", "Type", "\"\""),
    ("format", "Format", "\"\""),
    ("description", "Description", "\"\""),
    ("priority", "Priority", "0"),
    ("jsonPath", "JSONPath", "\"\""),
];
const SCALE: [Member; 3] = [
    ("specReplicasPath", "SpecReplicasPath", "\"\""),
    ("statusReplicasPath", "StatusReplicasPath", "\"\""),
    ("labelSelectorPath", "LabelSelectorPath", "null"),
];
const VERSION: [Member; 5] = [
    ("name", "Name", "\"\""),
    ("served", "Served", "false"),
    ("storage", "Storage", "false"),
    ("deprecated", "Deprecated", "false"),
    ("deprecationWarning", "DeprecationWarning", "null"),
];

/// `spec.versions`; of much the beginning.
pub(super) fn versions(layout: &Layout<'_>) -> String {
    let mut text = String::new();
    for version in &layout.versions {
        text.push_str(if text.is_empty() { "[" } else { "," });
        text.push_str(&self::version(layout, version));
        if text.len() > MAX_PRINTED_BYTES {
            return cut(text);
        }
    }
    if text.is_empty() { "[]".to_owned() } else { text + "]" }
}

/// Parts that all versions share are not in them.
fn version<'a>(layout: &Layout<'a>, version: &Cursor<'a>) -> String {
    let part = |part, print: fn(&Cursor<'_>) -> String| {
        layout.own(version, part).map_or_else(|| "null".to_owned(), |at| print(&at))
    };
    let [schema, subresources, columns, fields] = [
        part(Part::Schema, |at| {
            format!("{{\"OpenAPIV3Schema\":{}}}", schema_as_held(&at.field("openAPIV3Schema")))
        }),
        part(Part::Subresources, subresources),
        part(Part::Columns, |at| list(at, &COLUMN)),
        part(Part::Selectable, |at| list(at, &COLUMN[5..])),
    ];
    format!(
        "{{{},\"Schema\":{schema},\"Subresources\":{subresources},\"AdditionalPrinterColumns\":{columns},\"SelectableFields\":{fields}}}",
        members(version, &VERSION)
    )
}

fn subresources(at: &Cursor<'_>) -> String {
    let (status, scale) = (at.field("status"), at.field("scale"));
    let status = if status.is_present() { "{}" } else { "null" };
    let scale =
        if scale.is_present() { format!("{{{}}}", members(&scale, &SCALE)) } else { "null".to_owned() };
    format!("{{\"Status\":{status},\"Scale\":{scale}}}")
}

fn list(at: &Cursor<'_>, of: &[Member]) -> String {
    let items: Vec<String> = at.items().map(|item| format!("{{{}}}", members(&item, of))).collect();
    format!("[{}]", items.join(","))
}

fn members(at: &Cursor<'_>, of: &[Member]) -> String {
    let member = |(name, field, absent): &Member| {
        let value = at.field(name);
        let value =
            if value.is_present() { escape_html(&value.json()).into_owned() } else { (*absent).to_owned() };
        format!("\"{field}\":{value}")
    };
    of.iter().map(member).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use portico_machinery::Object;

    use super::*;

    fn print(json: &str) -> String {
        let definition = Object::from_json(json.as_bytes()).unwrap();
        versions(&Layout::of(&definition))
    }

    #[test]
    fn versions_print_every_field_but_what_they_share() {
        let one = r#"{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{}}}]}}"#;
        let want = r#"[{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]"#;
        assert_eq!(print(one), want);
        assert_eq!(print(r#"{"spec":{}}"#), "[]");
        let two = r#"{"spec":{"versions":[{"name":"a","subresources":{"scale":{"specReplicasPath":".x"}}},{"name":"b","selectableFields":[{"jsonPath":".y"}]}]}}"#;
        let text = print(two);
        assert!(text.contains(
            r#""Subresources":{"Status":null,"Scale":{"SpecReplicasPath":".x","StatusReplicasPath":"","LabelSelectorPath":null}}"#
        ));
        assert!(text.contains(r#""SelectableFields":[{"JSONPath":".y"}]"#));
    }
}
