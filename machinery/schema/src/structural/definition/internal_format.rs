//! Go representation of schemas: upstream's errors print whole schemas, rules and items in this form.
//!
//! All members are printed, with their Go field names, in the order of upstream's type.

use portico_machinery::object::{cut, escape_html};
use portico_machinery::{Cursor, MAX_PRINTED_BYTES};
use serde_json::{Map, Value};

/// Type of a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberType {
    Text,
    Bool,
    /// Pointer, list or any JSON: null if absent.
    Plain,
    Schema,
    Schemas,
    ByName,
    Items,
    SchemaOrBool,
    Dependencies,
    Docs,
    Rules,
}

/// JSON name, Go field name, type.
const MEMBERS: [(&str, &str, MemberType); 44] = [
    ("id", "ID", MemberType::Text),
    ("$schema", "Schema", MemberType::Text),
    ("$ref", "Ref", MemberType::Plain),
    ("description", "Description", MemberType::Text),
    ("type", "Type", MemberType::Text),
    ("nullable", "Nullable", MemberType::Bool),
    ("format", "Format", MemberType::Text),
    ("title", "Title", MemberType::Text),
    ("default", "Default", MemberType::Plain),
    ("maximum", "Maximum", MemberType::Plain),
    ("exclusiveMaximum", "ExclusiveMaximum", MemberType::Bool),
    ("minimum", "Minimum", MemberType::Plain),
    ("exclusiveMinimum", "ExclusiveMinimum", MemberType::Bool),
    ("maxLength", "MaxLength", MemberType::Plain),
    ("minLength", "MinLength", MemberType::Plain),
    ("pattern", "Pattern", MemberType::Text),
    ("maxItems", "MaxItems", MemberType::Plain),
    ("minItems", "MinItems", MemberType::Plain),
    ("uniqueItems", "UniqueItems", MemberType::Bool),
    ("multipleOf", "MultipleOf", MemberType::Plain),
    ("enum", "Enum", MemberType::Plain),
    ("maxProperties", "MaxProperties", MemberType::Plain),
    ("minProperties", "MinProperties", MemberType::Plain),
    ("required", "Required", MemberType::Plain),
    ("items", "Items", MemberType::Items),
    ("allOf", "AllOf", MemberType::Schemas),
    ("oneOf", "OneOf", MemberType::Schemas),
    ("anyOf", "AnyOf", MemberType::Schemas),
    ("not", "Not", MemberType::Schema),
    ("properties", "Properties", MemberType::ByName),
    ("additionalProperties", "AdditionalProperties", MemberType::SchemaOrBool),
    ("patternProperties", "PatternProperties", MemberType::ByName),
    ("dependencies", "Dependencies", MemberType::Dependencies),
    ("additionalItems", "AdditionalItems", MemberType::SchemaOrBool),
    ("definitions", "Definitions", MemberType::ByName),
    ("externalDocs", "ExternalDocs", MemberType::Docs),
    ("example", "Example", MemberType::Plain),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields", MemberType::Plain),
    ("x-kubernetes-embedded-resource", "XEmbeddedResource", MemberType::Bool),
    ("x-kubernetes-int-or-string", "XIntOrString", MemberType::Bool),
    ("x-kubernetes-list-map-keys", "XListMapKeys", MemberType::Plain),
    ("x-kubernetes-list-type", "XListType", MemberType::Plain),
    ("x-kubernetes-map-type", "XMapType", MemberType::Plain),
    ("x-kubernetes-validations", "XValidations", MemberType::Rules),
];

/// Fields of a rule: JSON name, Go field name, type.
const RULE_MEMBERS: [(&str, &str, MemberType); 6] = [
    ("rule", "Rule", MemberType::Text),
    ("message", "Message", MemberType::Text),
    ("messageExpression", "MessageExpression", MemberType::Text),
    ("reason", "Reason", MemberType::Plain),
    ("fieldPath", "FieldPath", MemberType::Text),
    ("optionalOldSelf", "OptionalOldSelf", MemberType::Plain),
];
const DOCS_MEMBERS: [(&str, &str, MemberType); 2] =
    [("description", "Description", MemberType::Text), ("url", "URL", MemberType::Text)];

/// Returns the Go field names of the members of a node, in upstream's order.
pub(super) fn members(schema: &Value) -> impl Iterator<Item = &'static str> {
    MEMBERS.iter().filter(|(name, ..)| schema.get(name).is_some()).map(|(_, field, _)| *field)
}

/// Formats a schema as upstream prints it in an error.
#[must_use]
pub fn format_schema(schema: &Cursor<'_>) -> String {
    self::schema(schema.value().unwrap_or(&Value::Null))
}

pub(super) fn schema(schema: &Value) -> String {
    let mut text = LimitedText::default();
    text.schema(schema);
    text.finish()
}

/// Formats an entry of `x-kubernetes-validations` as upstream prints it in an error.
#[must_use]
pub fn format_rule(rule: &Value) -> String {
    let mut text = LimitedText::default();
    text.fields(&RULE_MEMBERS, rule);
    text.finish()
}

/// Formats `items` that is a list.
pub(super) fn format_items(items: &[Value]) -> String {
    let mut text = LimitedText::default();
    text.items(None, items);
    text.finish()
}

/// Output with a limited length: further text is dropped.
#[derive(Default)]
struct LimitedText(String);

impl LimitedText {
    fn finish(self) -> String {
        cut(self.0)
    }

    fn put(&mut self, text: &str) {
        if self.0.len() <= MAX_PRINTED_BYTES {
            self.0.push_str(text);
        }
    }

    /// Writes JSON as Go does.
    fn json(&mut self, value: &Value) {
        self.put(&escape_html(&value.to_string()));
    }

    fn list<T>(
        &mut self,
        ends: [&str; 2],
        items: impl Iterator<Item = T>,
        mut each: impl FnMut(&mut Self, T),
    ) {
        self.put(ends[0]);
        for (index, item) in items.enumerate() {
            if self.0.len() > MAX_PRINTED_BYTES {
                return;
            }
            if index > 0 {
                self.put(",");
            }
            each(self, item);
        }
        self.put(ends[1]);
    }

    fn fields(&mut self, table: &[(&str, &str, MemberType)], of: &Value) {
        self.list(["{", "}"], table.iter(), |text, (name, field, holds)| {
            text.put(&format!("{field:?}:"));
            text.member(*holds, of.get(name).unwrap_or(&Value::Null));
        });
    }

    fn schema(&mut self, schema: &Value) {
        if schema.is_null() { self.put("null") } else { self.fields(&MEMBERS, schema) }
    }

    fn member(&mut self, holds: MemberType, value: &Value) {
        match (holds, value) {
            (MemberType::Text, Value::Null) => self.put("\"\""),
            (MemberType::Bool, Value::Null) => self.put("false"),
            (MemberType::Schema, schema) => self.schema(schema),
            (MemberType::Schemas, Value::Array(schemas)) => {
                self.list(["[", "]"], schemas.iter(), Self::schema);
            }
            (MemberType::ByName, Value::Object(schemas)) => self.by_name(schemas, Self::schema),
            (MemberType::Items, Value::Array(list)) => self.items(None, list),
            (MemberType::Items, Value::Object(_)) => self.items(Some(value), &[]),
            (MemberType::SchemaOrBool, Value::Bool(allows)) => {
                self.put(&format!("{{\"Allows\":{allows},\"Schema\":null}}"));
            }
            (MemberType::SchemaOrBool, Value::Object(_)) => {
                self.put("{\"Allows\":true,\"Schema\":");
                self.schema(value);
                self.put("}");
            }
            (MemberType::Dependencies, Value::Object(map)) => self.by_name(map, Self::dependency),
            (MemberType::Docs, Value::Object(_)) => self.fields(&DOCS_MEMBERS, value),
            (MemberType::Rules, Value::Array(rules)) => {
                self.list(["[", "]"], rules.iter(), |text, rule| text.fields(&RULE_MEMBERS, rule));
            }
            (_, value) => self.json(value),
        }
    }

    fn by_name(&mut self, schemas: &Map<String, Value>, mut each: impl FnMut(&mut Self, &Value)) {
        self.list(["{", "}"], schemas.iter(), |text, (name, schema)| {
            text.json(&Value::from(name.as_str()));
            text.put(":");
            each(text, schema);
        });
    }

    fn items(&mut self, schema: Option<&Value>, schemas: &[Value]) {
        self.put("{\"Schema\":");
        self.schema(schema.unwrap_or(&Value::Null));
        self.put(",\"JSONSchemas\":");
        if schema.is_some() {
            self.put("null");
        } else {
            self.list(["[", "]"], schemas.iter(), Self::schema);
        }
        self.put("}");
    }

    fn dependency(&mut self, value: &Value) {
        let (schema, property) = if value.is_array() { (&Value::Null, value) } else { (value, &Value::Null) };
        self.put("{\"Schema\":");
        self.schema(schema);
        self.put(",\"Property\":");
        self.json(property);
        self.put("}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_and_schemas_are_printed_with_every_field() {
        let rule = json!({"rule": "self.nothing > 1"});
        let want = r#"{"Rule":"self.nothing \u003e 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}"#;
        assert_eq!(format_rule(&rule), want);
        let text = schema(
            &json!({"type": "object", "additionalProperties": false, "properties": {"a": {"items": {}}}}),
        );
        assert!(text.starts_with(
            r#"{"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,"#
        ));
        assert!(text.contains(r#""AdditionalProperties":{"Allows":false,"Schema":null}"#));
        assert!(text.contains(r#""Properties":{"a":{"ID":"#) && text.ends_with(r#""XValidations":null}"#));
    }

    #[test]
    fn long_schemas_are_truncated() {
        let properties: Map<String, Value> =
            (0..5_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        let text = schema(&json!({"properties": properties}));
        assert!(text.ends_with("...") && text.len() < MAX_PRINTED_BYTES + 8);
    }
}
