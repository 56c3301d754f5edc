//! One schema node in the form of upstream's type JSONSchemaProps, where absent and zero values are equal for most members.

use serde_json::{Map, Value};

/// Members of a node, borrowed.
#[derive(Debug, Default)]
pub(super) struct Props<'a> {
    pub(super) id: &'a str,
    pub(super) schema: &'a str,
    pub(super) reference: Option<&'a str>,
    pub(super) description: &'a str,
    pub(super) ty: &'a str,
    pub(super) format: &'a str,
    pub(super) title: &'a str,
    pub(super) default: Option<&'a Value>,
    pub(super) pattern: &'a str,
    pub(super) unique_items: bool,
    pub(super) required: &'a [Value],
    pub(super) items: Option<Items<'a>>,
    pub(super) all_of: &'a [Value],
    pub(super) one_of: &'a [Value],
    pub(super) any_of: &'a [Value],
    pub(super) not: Option<&'a Value>,
    pub(super) properties: Option<&'a Map<String, Value>>,
    pub(super) additional: Option<Additional<'a>>,
    pub(super) pattern_properties: Option<&'a Map<String, Value>>,
    pub(super) dependencies: Option<&'a Map<String, Value>>,
    pub(super) additional_items: Option<Additional<'a>>,
    pub(super) definitions: Option<&'a Map<String, Value>>,
    pub(super) nullable: bool,
    pub(super) preserve_unknown: Option<bool>,
    pub(super) embedded: bool,
    pub(super) int_or_string: bool,
    pub(super) list_keys: &'a [Value],
    pub(super) list_type: Option<&'a str>,
    pub(super) map_type: Option<&'a str>,
    pub(super) rules: &'a [Value],
}

/// Value of `items`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Items<'a> {
    One(&'a Value),
    Many(&'a [Value]),
}

/// Value of `additionalProperties` or `additionalItems`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Additional<'a> {
    Allowed(bool),
    Schema(&'a Value),
}

impl<'a> Props<'a> {
    /// Returns the members of a node, or no members if the value is not an object.
    pub(super) fn of(node: &'a Value) -> Self {
        let mut props = Self::default();
        for (name, value) in node.as_object().into_iter().flatten() {
            props.set_member(name, value);
        }
        props
    }

    fn set_member(&mut self, name: &str, value: &'a Value) {
        match name {
            "id" => self.id = string_of(value),
            "$schema" => self.schema = string_of(value),
            "$ref" => self.reference = value.as_str(),
            "description" => self.description = string_of(value),
            "type" => self.ty = string_of(value),
            "format" => self.format = string_of(value),
            "title" => self.title = string_of(value),
            "default" => self.default = Some(value).filter(|value| !value.is_null()),
            "pattern" => self.pattern = string_of(value),
            "uniqueItems" => self.unique_items = bool_of(value),
            "required" => self.required = list(value),
            "items" => self.items = items(value),
            "allOf" => self.all_of = list(value),
            "oneOf" => self.one_of = list(value),
            "anyOf" => self.any_of = list(value),
            "not" => self.not = Some(value).filter(|value| value.is_object()),
            "properties" => self.properties = map(value),
            "additionalProperties" => self.additional = additional(value),
            "nullable" => self.nullable = bool_of(value),
            _ => self.set_uncommon_member(name, value),
        }
    }

    fn set_uncommon_member(&mut self, name: &str, value: &'a Value) {
        match name {
            "patternProperties" => self.pattern_properties = map(value),
            "dependencies" => self.dependencies = map(value),
            "additionalItems" => self.additional_items = additional(value),
            "definitions" => self.definitions = map(value),
            "x-kubernetes-preserve-unknown-fields" => self.preserve_unknown = value.as_bool(),
            "x-kubernetes-embedded-resource" => self.embedded = bool_of(value),
            "x-kubernetes-int-or-string" => self.int_or_string = bool_of(value),
            "x-kubernetes-list-map-keys" => self.list_keys = list(value),
            "x-kubernetes-list-type" => self.list_type = value.as_str(),
            "x-kubernetes-map-type" => self.map_type = value.as_str(),
            "x-kubernetes-validations" => self.rules = list(value),
            // Members without effect on the schema itself, only on objects.
            _ => {}
        }
    }

    /// Returns the single schema of all items.
    pub(super) fn item(&self) -> Option<&'a Value> {
        match self.items {
            Some(Items::One(schema)) => Some(schema),
            _ => None,
        }
    }

    /// True if unknown fields are preserved.
    pub(super) fn preserves_unknown(&self) -> bool {
        self.preserve_unknown == Some(true)
    }

    /// Returns the property of this name.
    pub(super) fn property(&self, name: &str) -> Option<&'a Value> {
        self.properties?.get(name)
    }

    /// Returns all properties with their names.
    pub(super) fn properties(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        entries(self.properties)
    }
}

/// Returns the entries of a map of schemas.
pub(super) fn entries<'a>(
    map: Option<&'a Map<String, Value>>,
) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
    map.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
}

fn string_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn bool_of(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a map, or `None` if it is empty.
fn map(value: &Value) -> Option<&Map<String, Value>> {
    value.as_object().filter(|map| !map.is_empty())
}

fn items(value: &Value) -> Option<Items<'_>> {
    match value {
        Value::Object(_) => Some(Items::One(value)),
        Value::Array(list) => Some(Items::Many(list)),
        _ => None,
    }
}

fn additional(value: &Value) -> Option<Additional<'_>> {
    match value {
        Value::Object(_) => Some(Additional::Schema(value)),
        Value::Bool(allowed) => Some(Additional::Allowed(*allowed)),
        _ => None,
    }
}
