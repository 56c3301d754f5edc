//! Go representation of schemas: upstream's errors print whole schemas, rules and items in this form.
//!
//! All members are printed, with their Go field names, in the order of upstream's type.

use portico_machinery::object::{cut, escape_html};
use portico_machinery::{Cursor, MAX_PRINTED_BYTES};
use serde_json::{Map, Value};

/// Type of a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Text,
    Truth,
    /// Pointer, list or any JSON: null if absent.
    Plain,
    Schema,
    Schemas,
    ByName,
    Items,
    SchemaOrTruth,
    Dependencies,
    Docs,
    Rules,
}

/// JSON name, Go field name, type.
const MEMBERS: [(&str, &str, Holds); 44] = [
    ("id", "ID", Holds::Text),
    ("$schema", "Schema", Holds::Text),
    ("$ref", "Ref", Holds::Plain),
    ("description", "Description", Holds::Text),
    ("type", "Type", Holds::Text),
    ("nullable", "Nullable", Holds::Truth),
    ("format", "Format", Holds::Text),
    ("title", "Title", Holds::Text),
    ("default", "Default", Holds::Plain),
    ("maximum", "Maximum", Holds::Plain),
    ("exclusiveMaximum", "ExclusiveMaximum", Holds::Truth),
    ("minimum", "Minimum", Holds::Plain),
    ("exclusiveMinimum", "ExclusiveMinimum", Holds::Truth),
    ("maxLength", "MaxLength", Holds::Plain),
    ("minLength", "MinLength", Holds::Plain),
    ("pattern", "Pattern", Holds::Text),
    ("maxItems", "MaxItems", Holds::Plain),
    ("minItems", "MinItems", Holds::Plain),
    ("uniqueItems", "UniqueItems", Holds::Truth),
    ("multipleOf", "MultipleOf", Holds::Plain),
    ("enum", "Enum", Holds::Plain),
    ("maxProperties", "MaxProperties", Holds::Plain),
    ("minProperties", "MinProperties", Holds::Plain),
    ("required", "Required", Holds::Plain),
    ("items", "Items", Holds::Items),
    ("allOf", "AllOf", Holds::Schemas),
    ("oneOf", "OneOf", Holds::Schemas),
    ("anyOf", "AnyOf", Holds::Schemas),
    ("not", "Not", Holds::Schema),
    ("properties", "Properties", Holds::ByName),
    ("additionalProperties", "AdditionalProperties", Holds::SchemaOrTruth),
    ("patternProperties", "PatternProperties", Holds::ByName),
    ("dependencies", "Dependencies", Holds::Dependencies),
    ("additionalItems", "AdditionalItems", Holds::SchemaOrTruth),
    ("definitions", "Definitions", Holds::ByName),
    ("externalDocs", "ExternalDocs", Holds::Docs),
    ("example", "Example", Holds::Plain),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields", Holds::Plain),
    ("x-kubernetes-embedded-resource", "XEmbeddedResource", Holds::Truth),
    ("x-kubernetes-int-or-string", "XIntOrString", Holds::Truth),
    ("x-kubernetes-list-map-keys", "XListMapKeys", Holds::Plain),
    ("x-kubernetes-list-type", "XListType", Holds::Plain),
    ("x-kubernetes-map-type", "XMapType", Holds::Plain),
    ("x-kubernetes-validations", "XValidations", Holds::Rules),
];

/// Fields of a rule: JSON name, Go field name, type.
const RULE: [(&str, &str, Holds); 6] = [
    ("rule", "Rule", Holds::Text),
    ("message", "Message", Holds::Text),
    ("messageExpression", "MessageExpression", Holds::Text),
    ("reason", "Reason", Holds::Plain),
    ("fieldPath", "FieldPath", Holds::Text),
    ("optionalOldSelf", "OptionalOldSelf", Holds::Plain),
];
const DOCS: [(&str, &str, Holds); 2] =
    [("description", "Description", Holds::Text), ("url", "URL", Holds::Text)];

/// Returns the Go field names of the members of a node, in upstream's order.
pub(super) fn members(schema: &Value) -> impl Iterator<Item = &'static str> {
    MEMBERS.iter().filter(|(name, ..)| schema.get(name).is_some()).map(|(_, field, _)| *field)
}

/// Formats a schema as upstream prints it in an error.
#[must_use]
pub fn schema_as_held(schema: &Cursor<'_>) -> String {
    self::schema(schema.value().unwrap_or(&Value::Null))
}

pub(super) fn schema(schema: &Value) -> String {
    let mut text = Shown::default();
    text.schema(schema);
    text.finish()
}

/// Formats an entry of `x-kubernetes-validations` as upstream prints it in an error.
#[must_use]
pub fn rule_as_held(rule: &Value) -> String {
    let mut text = Shown::default();
    text.fields(&RULE, rule);
    text.finish()
}

/// Formats `items` that is a list.
pub(super) fn items_as_held(items: &[Value]) -> String {
    let mut text = Shown::default();
    text.items(None, items);
    text.finish()
}

/// Output with a limited length: further text is dropped.
#[derive(Default)]
struct Shown(String);

impl Shown {
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

    fn fields(&mut self, table: &[(&str, &str, Holds)], of: &Value) {
        self.list(["{", "}"], table.iter(), |text, (name, field, holds)| {
            text.put(&format!("{field:?}:"));
            text.member(*holds, of.get(name).unwrap_or(&Value::Null));
        });
    }

    fn schema(&mut self, schema: &Value) {
        if schema.is_null() { self.put("null") } else { self.fields(&MEMBERS, schema) }
    }

    fn member(&mut self, holds: Holds, value: &Value) {
        match (holds, value) {
            (Holds::Text, Value::Null) => self.put("\"\""),
            (Holds::Truth, Value::Null) => self.put("false"),
            (Holds::Schema, schema) => self.schema(schema),
            (Holds::Schemas, Value::Array(schemas)) => {
                self.list(["[", "]"], schemas.iter(), Self::schema);
            }
            (Holds::ByName, Value::Object(schemas)) => self.by_name(schemas, Self::schema),
            (Holds::Items, Value::Array(list)) => self.items(None, list),
            (Holds::Items, Value::Object(_)) => self.items(Some(value), &[]),
            (Holds::SchemaOrTruth, Value::Bool(allows)) => {
                self.put(&format!("{{\"Allows\":{allows},\"Schema\":null}}"));
            }
            (Holds::SchemaOrTruth, Value::Object(_)) => {
                self.put("{\"Allows\":true,\"Schema\":");
                self.schema(value);
                self.put("}");
            }
            (Holds::Dependencies, Value::Object(map)) => self.by_name(map, Self::dependency),
            (Holds::Docs, Value::Object(_)) => self.fields(&DOCS, value),
            (Holds::Rules, Value::Array(rules)) => {
                self.list(["[", "]"], rules.iter(), |text, rule| text.fields(&RULE, rule));
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
    fn a_rule_and_a_schema_print_every_field() {
        let rule = json!({"rule": "self.nothing > 1"});
        let want = r#"{"Rule":"self.nothing \u003e 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}"#;
        assert_eq!(rule_as_held(&rule), want);
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
    fn much_is_not_shown() {
        let properties: Map<String, Value> =
            (0..5_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        let text = schema(&json!({"properties": properties}));
        assert!(text.ends_with("...") && text.len() < MAX_PRINTED_BYTES + 8);
    }
}
