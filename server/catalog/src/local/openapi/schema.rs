//! OpenAPI schemas of types, for both versions.
//!
//! Version 3 contains defaults and wraps references; version 2 omits defaults and uses plain references.

use indexmap::IndexMap;
use portico_schema::model::{ListType, MapType, Union};
use portico_schema::{Field, FieldType, Type, TypeSet};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::descriptions::{Descriptions, TypeDescriptions};
use super::names::capitalize;
use super::operation::ResponseContent;
use super::types::ReachableType;

/// Text that introduces the values of an enumerated field.
const ENUMERATION_HEADING: &str = "Possible enum values:";

/// Version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    V2,
    V3,
}

impl Dialect {
    /// Returns a reference to a type.
    pub fn reference(self, name: &str) -> String {
        match self {
            Self::V2 => format!("#/definitions/{name}"),
            Self::V3 => format!("#/components/schemas/{name}"),
        }
    }
}

/// Options of a writer: the version, and the descriptions, if they are included.
#[derive(Clone, Copy)]
pub(super) struct WriteOptions<'a> {
    pub dialect: Dialect,
    pub descriptions: Option<&'a Descriptions>,
}

impl<'a> WriteOptions<'a> {
    /// Returns a description defined in this module; empty if descriptions are omitted.
    pub fn description(self, text: &'a str) -> &'a str {
        if self.descriptions.is_some() { text } else { "" }
    }

    fn type_descriptions(self, type_name: &str) -> TypeDescriptions<'a> {
        self.descriptions.map(|descriptions| descriptions.of_type(type_name)).unwrap_or_default()
    }
}

/// Group, version and kind in the extension `x-kubernetes-group-version-kind`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct KindRef {
    group: String,
    version: String,
    kind: String,
}

impl From<&portico_machinery::GroupVersionKind> for KindRef {
    fn from(gvk: &portico_machinery::GroupVersionKind) -> Self {
        Self { group: gvk.group.clone(), version: gvk.version.clone(), kind: gvk.kind.clone() }
    }
}

/// A schema; absent fields are not encoded.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Schema {
    #[serde(rename = "$ref", skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: Box<str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Box<RawValue>>,
    #[serde(rename = "allOf", skip_serializing_if = "Vec::is_empty")]
    all_of: Vec<Schema>,
    #[serde(rename = "oneOf", skip_serializing_if = "Vec::is_empty")]
    one_of: Vec<Schema>,
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    enumeration: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Box<Schema>>,
    #[serde(rename = "additionalProperties", skip_serializing_if = "Option::is_none")]
    additional_properties: Option<Box<Schema>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required: Vec<String>,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    properties: IndexMap<String, Schema>,
    #[serde(rename = "x-kubernetes-group-version-kind", skip_serializing_if = "Vec::is_empty")]
    kinds: Vec<KindRef>,
    #[serde(rename = "x-kubernetes-list-map-keys", skip_serializing_if = "Vec::is_empty")]
    list_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-list-type", skip_serializing_if = "Option::is_none")]
    list_type: Option<&'static str>,
    #[serde(rename = "x-kubernetes-map-type", skip_serializing_if = "Option::is_none")]
    map_type: Option<&'static str>,
    #[serde(rename = "x-kubernetes-patch-merge-key", skip_serializing_if = "Option::is_none")]
    merge_key: Option<String>,
    #[serde(rename = "x-kubernetes-patch-strategy", skip_serializing_if = "Option::is_none")]
    patch_strategy: Option<String>,
    #[serde(rename = "x-kubernetes-unions", skip_serializing_if = "Vec::is_empty")]
    unions: Vec<UnionRef>,
}

/// Fields of which exactly one is set, and their values in the discriminator.
#[derive(Clone, Debug, Serialize)]
struct UnionRef {
    #[serde(skip_serializing_if = "Option::is_none")]
    discriminator: Option<Box<str>>,
    #[serde(rename = "fields-to-discriminateBy")]
    fields: IndexMap<Box<str>, String>,
}

impl From<&Union> for UnionRef {
    fn from(union: &Union) -> Self {
        let fields = union.fields.iter().map(|field| (field.clone(), capitalize(field))).collect();
        Self { discriminator: union.discriminator.clone(), fields }
    }
}

impl Schema {
    /// Creates a schema with a plain type, for parameters and responses.
    pub fn of_type(kind: &'static str, format: Option<&'static str>) -> Self {
        Self { kind: Some(kind), format, ..Self::default() }
    }

    /// Creates the schema of a response.
    pub fn of_response(dialect: Dialect, content: &ResponseContent) -> Self {
        match content {
            ResponseContent::Type(name) => Self::reference_to(dialect, name),
            ResponseContent::Text => Self::of_type("string", None),
        }
    }

    /// Creates a reference to a type.
    pub fn reference_to(dialect: Dialect, name: &str) -> Self {
        Self { reference: Some(dialect.reference(name)), ..Self::default() }
    }
}

/// Returns the schema of a named type; `None` if the type set does not contain it.
pub(super) fn type_schema(options: WriteOptions<'_>, reachable: &ReachableType) -> Option<Schema> {
    let ty = reachable.ty()?;
    let descriptions = options.type_descriptions(&ty.name);
    let types = &*reachable.types;
    let mut schema = match &ty.plain {
        Some(plain) => named_plain(options.dialect, plain),
        None => Schema {
            kind: Some("object"),
            required: ty.fields.iter().filter(|f| f.required).map(|f| f.name.to_string()).collect(),
            properties: properties(options.dialect, ty, types, &descriptions),
            ..Schema::default()
        },
    };
    schema.kinds = reachable.kinds.iter().map(KindRef::from).collect();
    schema.map_type = (ty.map_type == MapType::Atomic).then_some("atomic");
    schema.unions = ty.unions.iter().map(UnionRef::from).collect();
    schema.description = descriptions.description.into();
    Some(schema)
}

/// Returns the schema of a named plain type: a time, quantity or arbitrary object.
fn named_plain(dialect: Dialect, plain: &FieldType) -> Schema {
    let one_of = |a, b| vec![Schema::of_type(a, None), Schema::of_type(b, None)];
    match (plain, dialect) {
        (FieldType::Quantity, Dialect::V3) => {
            Schema { one_of: one_of("string", "number"), ..Schema::default() }
        }
        (FieldType::IntOrString, Dialect::V3) => {
            Schema { format: Some("int-or-string"), one_of: one_of("integer", "string"), ..Schema::default() }
        }
        (FieldType::IntOrString, Dialect::V2) => Schema::of_type("string", Some("int-or-string")),
        (FieldType::Any, _) => Schema::default(),
        (FieldType::AnyObject | FieldType::Map(_) | FieldType::Ref(_), _) => Schema::of_type("object", None),
        (FieldType::List(_), _) => Schema::of_type("array", None),
        (scalar, _) => self::scalar(scalar).unwrap_or_default(),
    }
}

fn properties(
    dialect: Dialect,
    ty: &Type,
    types: &TypeSet,
    descriptions: &TypeDescriptions<'_>,
) -> IndexMap<String, Schema> {
    let mut fields: Vec<&Field> = ty.fields.iter().collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    let field_schema = |f: &Field| {
        let field_description = description(descriptions.field(&f.name).unwrap_or_default(), f);
        property(dialect, f, field_description.into(), types)
    };
    fields.into_iter().map(|f| (f.name.to_string(), field_schema(f))).collect()
}

/// Returns the description of a field with its possible values, in the form of kube-openapi's enumType. Descriptions copied from
/// upstream's documents already contain the values and their meanings. Values of the elements of a list or map are omitted.
fn description(text: &str, field: &Field) -> String {
    let values = &field.enumeration;
    let is_container = matches!(field.ty, FieldType::List(_) | FieldType::Map(_));
    if values.is_empty() || is_container || text.contains(ENUMERATION_HEADING) {
        return text.to_owned();
    }
    let separator = if text.is_empty() { "" } else { "\n\n" };
    let values: String = values.iter().map(|value| format!("\n - `{value:?}`")).collect();
    format!("{text}{separator}{ENUMERATION_HEADING}{values}")
}

fn property(dialect: Dialect, field: &Field, description: Box<str>, types: &TypeSet) -> Schema {
    let mut schema = value_schema(dialect, &field.ty, types);
    schema.description = description;
    if dialect == Dialect::V3 {
        schema.default = default(field, types);
        // Version 3 ignores keys next to a reference, so a reference with a description or a default is wrapped.
        if !schema.description.is_empty() || schema.default.is_some() {
            let reference = schema.reference.take();
            schema.all_of =
                reference.into_iter().map(|r| Schema { reference: Some(r), ..Schema::default() }).collect();
        }
    }
    // For a list or map, the enumeration applies to the elements.
    let elements = schema.items.as_deref_mut().or(schema.additional_properties.as_deref_mut());
    let enumerated = match elements {
        Some(elements) => elements,
        None => &mut schema,
    };
    enumerated.enumeration = field.enumeration.iter().map(ToString::to_string).collect();
    schema.list_type = field.list_type.map(|list| match list {
        ListType::Atomic => "atomic",
        ListType::Set => "set",
        ListType::Map => "map",
    });
    schema.list_keys = field.list_keys.iter().map(ToString::to_string).collect();
    schema.map_type = field.map_type.map(|map| match map {
        MapType::Atomic => "atomic",
        MapType::Granular => "granular",
    });
    schema.merge_key = field.merge_key.as_ref().map(ToString::to_string);
    schema.patch_strategy = patch_strategy(field);
    schema
}

fn patch_strategy(field: &Field) -> Option<String> {
    let strategies = [
        (field.patch.replace, "replace"),
        (field.patch.merge, "merge"),
        (field.patch.retain_keys, "retainKeys"),
    ];
    let strategies: Vec<_> = strategies.into_iter().filter(|(on, _)| *on).map(|(_, word)| word).collect();
    (!strategies.is_empty()).then(|| strategies.join(","))
}

/// Returns the default as written by upstream's generator: the default in the data, or `{}` for structs that are not pointers.
fn default(field: &Field, types: &TypeSet) -> Option<Box<RawValue>> {
    if let Some(default) = &field.openapi_default {
        return to_raw_value(default).ok();
    }
    (!field.emit.is_pointer() && is_struct(&field.ty, types)).then(empty_object).flatten()
}

fn is_struct(ty: &FieldType, types: &TypeSet) -> bool {
    matches!(ty, FieldType::Ref(id) if types.get(*id).plain.is_none())
}

fn empty_object() -> Option<Box<RawValue>> {
    RawValue::from_string("{}".to_owned()).ok()
}

/// Returns the schema of a value, without the description of its field.
fn value_schema(dialect: Dialect, ty: &FieldType, types: &TypeSet) -> Schema {
    match ty {
        FieldType::List(item) => Schema {
            items: Some(Box::new(element_schema(dialect, item, types))),
            ..Schema::of_type("array", None)
        },
        FieldType::Map(item) => Schema {
            additional_properties: Some(Box::new(element_schema(dialect, item, types))),
            ..Schema::of_type("object", None)
        },
        FieldType::Ref(id) => Schema::reference_to(dialect, &types.get(*id).name),
        FieldType::Quantity | FieldType::IntOrString => named_plain(dialect, ty),
        FieldType::AnyObject => Schema::of_type("object", None),
        FieldType::Any => Schema::default(),
        scalar => self::scalar(scalar).unwrap_or_default(),
    }
}

/// Returns the schema of an element of a list or map; in version 3 with its zero value as default.
fn element_schema(dialect: Dialect, ty: &FieldType, types: &TypeSet) -> Schema {
    let mut schema = value_schema(dialect, ty, types);
    if dialect == Dialect::V2 {
        return schema;
    }
    if is_struct(ty, types) {
        let inner = Schema { reference: schema.reference.take(), ..Schema::default() };
        return Schema { all_of: vec![inner], default: empty_object(), ..Schema::default() };
    }
    let zero = match ty {
        FieldType::String => "\"\"",
        FieldType::Int32 | FieldType::Int64 | FieldType::Number => "0",
        FieldType::Bool => "false",
        _ => return schema,
    };
    schema.default = RawValue::from_string(zero.to_owned()).ok();
    schema
}

fn scalar(ty: &FieldType) -> Option<Schema> {
    Some(match ty {
        FieldType::String => Schema::of_type("string", None),
        FieldType::Int32 => Schema::of_type("integer", Some("int32")),
        FieldType::Int64 => Schema::of_type("integer", Some("int64")),
        FieldType::Bool => Schema::of_type("boolean", None),
        FieldType::Number => Schema::of_type("number", Some("double")),
        FieldType::Bytes => Schema::of_type("string", Some("byte")),
        FieldType::Time | FieldType::MicroTime => Schema::of_type("string", Some("date-time")),
        FieldType::Quantity => Schema::of_type("string", None),
        _ => return None,
    })
}
