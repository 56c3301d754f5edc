//! Expression types of schema nodes, and the maximum size of their values.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use portico_cel::DeclType;
use portico_cel::decl::{DeclKind, Field, ListKind, escape};
use serde_json::Value;

use super::limits::MAX_REQUEST_BYTES;
use crate::model::ListType;
use crate::structural::model::{Additional, Checks, JsonType, SchemaNode};

/// Type name of the value to which a rule belongs.
const SELF_TYPE: &str = "selfType";

/// Bytes of the longest and the shortest texts of formats, including quotation marks.
const MAX_TIME: u64 = 32;
const SHORTEST_TIME: u64 = 21;
const SHORTEST_DURATION: u64 = 3;
const DAY: u64 = 12;

/// Maximum bytes of a type name; nested types are numbered from there on. Otherwise every object type would store its whole
/// path as its name.
const MAX_TYPE_NAME_BYTES: usize = 512;

/// Generator of type names, which identify types.
#[derive(Default)]
struct TypeNames {
    numbered: Cell<usize>,
}

impl TypeNames {
    /// Returns the name of a child type.
    fn child(&self, name: &str, step: &str) -> String {
        if name.len() + step.len() < MAX_TYPE_NAME_BYTES {
            return format!("{name}.{step}");
        }
        self.numbered.set(self.numbered.get() + 1);
        format!("{SELF_TYPE}@{}", self.numbered.get())
    }
}

/// Returns the type of a node. Returns `None` if expressions cannot access it: nodes without a type, and lists or maps of such.
pub(in crate::structural) fn declare(node: &SchemaNode, resource: bool) -> Option<Arc<DeclType>> {
    declare_named(node, resource || node.embedded, SELF_TYPE, &TypeNames::default())
}

fn declare_named(node: &SchemaNode, resource: bool, name: &str, names: &TypeNames) -> Option<Arc<DeclType>> {
    let mut declared =
        if node.int_or_string { int_or_string(node) } else { declare_typed(node, resource, name, names)? };
    declared.nullable = node.nullable;
    Some(Arc::new(declared))
}

fn int_or_string(node: &SchemaNode) -> DeclType {
    let max = max_length(node).map_or(MAX_REQUEST_BYTES - 2, |length| length.saturating_mul(4));
    DeclType::scalar(DeclKind::IntOrString, max, 1)
}

fn declare_typed(node: &SchemaNode, resource: bool, name: &str, names: &TypeNames) -> Option<DeclType> {
    // A resource is an object with type and metadata, even if the schema does not specify them.
    Some(match node.ty? {
        JsonType::Array => list(node, name, names)?,
        JsonType::Object => match &node.additional {
            Additional::Schema(values) => map(node, values, name, names)?,
            _ => object(node, resource, name, names),
        },
        JsonType::String => text(node),
        JsonType::Boolean => DeclType::scalar(DeclKind::Bool, 0, 4),
        JsonType::Number => DeclType::scalar(DeclKind::Double, 0, 1),
        JsonType::Integer => DeclType::scalar(DeclKind::Int, 0, 1),
    })
}

fn list(node: &SchemaNode, name: &str, names: &TypeNames) -> Option<DeclType> {
    let of_items = node.items.as_ref()?;
    let items = declare_named(of_items, of_items.embedded, &names.child(name, "@idx"), names)?;
    let checks = node.checks.as_deref();
    let max = checks
        .and_then(|checks| checks.max_items)
        .map_or_else(|| (MAX_REQUEST_BYTES - 2) / (items.min_serialized_size + 1), clamp_negative);
    let kind = match node.list_type {
        Some(ListType::Set) => ListKind::Set,
        Some(ListType::Map) => {
            let escaped = |key: &str| Arc::from(escape(key).unwrap_or_else(|| key.to_owned()));
            ListKind::Map(node.list_keys.iter().map(|key| escaped(key)).collect())
        }
        _ => ListKind::Atomic,
    };
    Some(DeclType::list(items, kind, max))
}

fn map(node: &SchemaNode, values: &SchemaNode, name: &str, names: &TypeNames) -> Option<DeclType> {
    let values = declare_named(values, values.embedded, &names.child(name, "@elem"), names)?;
    let checks = node.checks.as_deref();
    let max = checks
        .and_then(|checks| checks.max_properties)
        .map_or_else(|| (MAX_REQUEST_BYTES - 2) / (values.min_serialized_size + 6), clamp_negative);
    Some(DeclType::map(values, max))
}

fn object(node: &SchemaNode, resource: bool, name: &str, names: &TypeNames) -> DeclType {
    let replaced = resource && !declares_metadata(node);
    let required = node.checks.as_ref().map_or(&[][..], |checks| &checks.required);
    let required: HashSet<&str> = required.iter().map(|name| &**name).collect();
    let required = |property: &str| required.contains(property);
    let (mut fields, mut min) = (Vec::new(), 2_u64);
    for (property, child) in &node.properties {
        if replaced && matches!(&**property, "kind" | "apiVersion" | "metadata") {
            min += if required(property) { property.len() as u64 + 2 + 4 } else { 0 };
            continue;
        }
        let Some(declared) = declare_named(child, child.embedded, &names.child(name, property), names) else {
            continue;
        };
        if required(property) && child.default.is_none() {
            min += property.len() as u64 + declared.min_serialized_size + 4;
        }
        fields.extend(field(property, declared));
    }
    if replaced {
        fields.extend(type_and_metadata(name));
    }
    DeclType::object(name, fields, min)
}

fn field(property: &str, of: Arc<DeclType>) -> Option<Field> {
    Some(Field { name: Arc::from(property), escaped: Arc::from(escape(property)?), of })
}

/// True if a schema itself specifies type and metadata, which are then used.
fn declares_metadata(node: &SchemaNode) -> bool {
    let has_type =
        |node: &SchemaNode, name: &str, ty| node.property(name).is_some_and(|child| child.ty == Some(ty));
    has_type(node, "kind", JsonType::String)
        && has_type(node, "apiVersion", JsonType::String)
        && has_type(node, "metadata", JsonType::Object)
        && node.property("metadata").is_some_and(|metadata| {
            has_type(metadata, "name", JsonType::String)
                && has_type(metadata, "generateName", JsonType::String)
        })
}

/// Returns the fields of a resource that expressions can always access.
fn type_and_metadata(name: &str) -> Vec<Field> {
    let text = || Arc::new(DeclType::scalar(DeclKind::String, MAX_REQUEST_BYTES - 2, 2));
    let texts =
        |names: [&str; 2]| names.into_iter().filter_map(|name| field(name, text())).collect::<Vec<_>>();
    let metadata = DeclType::object(&format!("{name}.metadata"), texts(["name", "generateName"]), 2);
    let mut fields = texts(["apiVersion", "kind"]);
    fields.extend(field("metadata", Arc::new(metadata)));
    fields
}

fn text(node: &SchemaNode) -> DeclType {
    let format = node.checks.as_ref().and_then(|checks| checks.format.as_ref()).map(|format| &*format.name);
    match format {
        Some("byte") => {
            let max = max_length(node).unwrap_or(MAX_REQUEST_BYTES - 2);
            DeclType::scalar(DeclKind::Bytes, max, 2)
        }
        Some("duration") => DeclType::scalar(DeclKind::Duration, MAX_TIME, SHORTEST_DURATION),
        Some("date") => DeclType::scalar(DeclKind::Date, DAY, DAY),
        Some("date-time") => DeclType::scalar(DeclKind::DateTime, MAX_TIME, SHORTEST_TIME),
        _ => DeclType::scalar(DeclKind::String, max_text_bytes(node), 2),
    }
}

/// Returns the maximum bytes of a text: four per character of the maximum length, or the bytes of the longest allowed value.
fn max_text_bytes(node: &SchemaNode) -> u64 {
    if let Some(length) = max_length(node) {
        return length.saturating_mul(4);
    }
    let values: &[Value] = node.checks.as_ref().map_or(&[], |checks| &checks.enumeration);
    if values.is_empty() {
        return MAX_REQUEST_BYTES - 2;
    }
    values.iter().filter_map(Value::as_str).map(|text| text.len() as u64).max().unwrap_or(0)
}

fn max_length(node: &SchemaNode) -> Option<u64> {
    node.checks.as_deref().and_then(|checks: &Checks| checks.max_length).map(clamp_negative)
}

fn clamp_negative(max: i64) -> u64 {
    u64::try_from(max).unwrap_or(0)
}
