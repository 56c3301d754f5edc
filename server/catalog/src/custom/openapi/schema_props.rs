//! The parts of `JSONSchemaProps` that OpenAPI uses. Values keep their encoded form.
//!
//! Decoding fails on keys that structural schemas do not have.

use std::collections::BTreeMap;

use portico_machinery::object::is_deeper;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::local::openapi::KindRef;

/// Levels of the schema of a definition in OpenAPI documents.
///
/// Reading it takes much of the stack, and facades encode documents as protobuf with `serde_json`'s limit of 127 levels.
///
/// Limit (Definitions and schemas): the schema is omitted from the documents, and a line is logged.
const MAX_DEPTH: usize = 100;

/// A schema, encoded with upstream's order of keys and without absent keys.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(super) struct SchemaProps<'a> {
    /// Reference to a type, only in generated schemas.
    #[serde(rename = "$ref", skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub description: Option<&'a RawValue>,
    #[serde(borrow, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'a str>,
    #[serde(skip_serializing_if = "is_false")]
    pub nullable: bool,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub format: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub default: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive_maximum: bool,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive_minimum: bool,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "is_false")]
    pub unique_items: bool,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub multiple_of: Option<&'a RawValue>,
    #[serde(borrow, rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub enumeration: Vec<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub max_properties: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub min_properties: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<SchemaProps<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all_of: Vec<SchemaProps<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<SchemaProps<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<SchemaProps<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Box<SchemaProps<'a>>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, SchemaProps<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_properties: Option<AdditionalProperties<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub external_docs: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub example: Option<&'a RawValue>,
    #[serde(rename = "x-kubernetes-embedded-resource", skip_serializing_if = "is_false")]
    pub embedded: bool,
    /// Set only on roots.
    #[serde(
        rename = "x-kubernetes-group-version-kind",
        skip_deserializing,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub kinds: Vec<KindRef>,
    #[serde(rename = "x-kubernetes-int-or-string", skip_serializing_if = "is_false")]
    pub int_or_string: bool,
    #[serde(rename = "x-kubernetes-list-map-keys", skip_serializing_if = "Vec::is_empty")]
    pub list_keys: Vec<String>,
    #[serde(borrow, rename = "x-kubernetes-list-type", skip_serializing_if = "Option::is_none")]
    pub list_type: Option<&'a RawValue>,
    #[serde(borrow, rename = "x-kubernetes-map-type", skip_serializing_if = "Option::is_none")]
    pub map_type: Option<&'a RawValue>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields", skip_serializing_if = "Option::is_none")]
    pub preserve_unknown: Option<bool>,
    /// Set only on roots.
    #[serde(
        rename = "x-kubernetes-selectable-fields",
        skip_deserializing,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub selectable: Vec<SelectableRef>,
    #[serde(borrow, rename = "x-kubernetes-validations", skip_serializing_if = "Vec::is_empty")]
    pub validations: Vec<&'a RawValue>,
}

/// Values of keys that are not in `properties`.
#[derive(Debug)]
pub(super) enum AdditionalProperties<'a> {
    /// True if any value is allowed, false if none is.
    Any(bool),
    /// Schema of the values.
    Schema(Box<SchemaProps<'a>>),
}

/// A field that selectors may use.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SelectableRef {
    pub field_path: String,
}

impl<'a> SchemaProps<'a> {
    /// Parses the schema of a definition.
    ///
    /// # Errors
    /// Returns an error if the schema has unknown keys or more than [`MAX_DEPTH`] levels.
    pub fn parse(schema: &'a str) -> serde_json::Result<Self> {
        // Serde's own limit starts again where a schema may also be a Boolean.
        if is_deeper(schema.as_bytes(), MAX_DEPTH) {
            return Err(serde_json::Error::custom(format!("more than {MAX_DEPTH} levels")));
        }
        serde_json::from_str(schema)
    }

    /// Creates a schema that only has a type.
    pub fn of_type(kind: &'static str) -> Self {
        Self { kind: Some(kind), ..Self::default() }
    }

    /// Returns true if unknown fields are preserved.
    pub fn preserves_unknown(&self) -> bool {
        self.preserve_unknown == Some(true)
    }

    /// Returns true if upstream treats the schema as structural; assumes that it can be decoded.
    pub fn is_structural(&self) -> bool {
        let mut additional = None;
        if let Some(AdditionalProperties::Schema(schema)) = &self.additional_properties {
            additional = Some(&**schema);
        }
        let subschemas = self.items.as_deref().into_iter().chain(additional).chain(self.properties.values());
        self.preserve_unknown != Some(false) && subschemas.into_iter().all(Self::is_structural)
    }

    /// Returns the schemas of nested values: items, additional properties and properties.
    pub fn subschemas(&mut self) -> impl Iterator<Item = &mut SchemaProps<'a>> {
        let additional = match &mut self.additional_properties {
            Some(AdditionalProperties::Schema(schema)) => Some(&mut **schema),
            _ => None,
        };
        self.items.as_deref_mut().into_iter().chain(additional).chain(self.properties.values_mut())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for AdditionalProperties<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        let parsed = match raw.get() {
            "true" => return Ok(Self::Any(true)),
            "false" => return Ok(Self::Any(false)),
            schema => serde_json::from_str(schema),
        };
        parsed.map(Self::Schema).map_err(serde::de::Error::custom)
    }
}

impl Serialize for AdditionalProperties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Any(any) => any.serialize(serializer),
            Self::Schema(schema) => schema.serialize(serializer),
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}
