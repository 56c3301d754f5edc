//! Shape of a value for apply: a scalar, a list with a relation between its elements, a map, or anything.
//!
//! Types and structural schemas have the same shapes; code that walks shapes does not depend on the dialect.

use serde_json::Value;

use crate::model::{Field, FieldType, ListType, MapType, Type, TypeSet};
use crate::structural::{Additional, CustomResource, JsonType, SchemaNode};

/// Type of a value, with the annotations of its field.
#[derive(Clone, Copy, Debug)]
pub(super) enum TypeRef<'t> {
    /// Field of a struct, with its annotations.
    Field(&'t Field),
    /// Element of a list or map.
    Plain(&'t FieldType),
    /// Node of a structural schema.
    Node(StructuralRef<'t>),
    /// Any value, whose shape is deduced from the value: maps are granular, lists atomic.
    Deduced,
}

/// Node of a structural schema in its context.
#[derive(Clone, Copy, Debug)]
pub(super) struct StructuralRef<'t> {
    node: &'t SchemaNode,
    /// True if unknown fields are preserved here or at a parent.
    preserves_unknown: bool,
    /// Type of `metadata`.
    object_meta: &'t FieldType,
}

/// Shape of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape<'t> {
    /// String, number or Boolean.
    Scalar(&'t FieldType),
    List(List<'t>),
    /// Struct or map.
    Map(Map<'t>),
    /// Any value, with its shape deduced from the value; a map has this shape.
    Deduced(Map<'t>),
    /// Any value, treated as one.
    Untyped,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct List<'t> {
    pub(super) element_type: TypeRef<'t>,
    pub(super) relation: Relation<'t>,
}

/// Identification of the elements of a list.
#[derive(Clone, Copy, Debug)]
pub(super) enum Relation<'t> {
    /// Elements have no identity: the list is one value.
    Atomic,
    /// Elements are identified by their value.
    Set,
    /// Elements are identified by these fields.
    Map(&'t [Box<str>]),
}

/// Struct (with fields), map (with elements), or free object (with deduced elements).
#[derive(Clone, Copy, Debug)]
pub(super) struct Map<'t> {
    declared: DeclaredFields<'t>,
    pub(super) element_type: Option<TypeRef<'t>>,
    pub(super) atomic: bool,
}

/// Source of the declared fields of a map.
#[derive(Clone, Copy, Debug)]
enum DeclaredFields<'t> {
    Undeclared,
    Struct(&'t Type),
    /// Properties of a node; if true, the value is a resource and has `apiVersion`, `kind` and `metadata`.
    Node(StructuralRef<'t>, bool),
}

impl<'t> Map<'t> {
    /// Map shape of a value whose type is deduced.
    pub(super) const DEDUCED: Self =
        Self { declared: DeclaredFields::Undeclared, element_type: Some(TypeRef::Deduced), atomic: false };

    /// Returns the type of this key, and true if it is a declared field.
    pub(super) fn entry(&self, key: &str) -> (Option<TypeRef<'t>>, bool) {
        let declared = match self.declared {
            DeclaredFields::Undeclared => None,
            DeclaredFields::Struct(ty) => ty.field(key).map(TypeRef::Field),
            DeclaredFields::Node(structural, resource) => structural.property(key, resource),
        };
        match declared {
            Some(ty) => (Some(ty), true),
            None => (self.element_type, false),
        }
    }

    /// Returns the struct type, whose fields are printed according to their emit rules.
    pub(super) fn struct_type(&self) -> Option<&'t Type> {
        match self.declared {
            DeclaredFields::Struct(ty) => Some(ty),
            DeclaredFields::Undeclared | DeclaredFields::Node(..) => None,
        }
    }

    /// Returns the value that an absent field has if it is a list key.
    pub(super) fn default_of(&self, key: &str) -> Option<&'t Value> {
        match self.declared {
            DeclaredFields::Undeclared => None,
            DeclaredFields::Struct(ty) => ty.field(key)?.openapi_default.as_ref(),
            DeclaredFields::Node(structural, _) => structural.node.property(key)?.default.as_ref(),
        }
    }
}

impl<'t> StructuralRef<'t> {
    fn child(self, node: &'t SchemaNode) -> Self {
        Self {
            node,
            preserves_unknown: self.preserves_unknown || node.preserve_unknown,
            object_meta: self.object_meta,
        }
    }

    fn property(self, key: &str, resource: bool) -> Option<TypeRef<'t>> {
        match key {
            "apiVersion" | "kind" if resource => Some(TypeRef::Plain(&FieldType::String)),
            "metadata" if resource => Some(TypeRef::Plain(self.object_meta)),
            _ => self.node.property(key).map(|node| TypeRef::Node(self.child(node))),
        }
    }

    fn map(self, resource: bool) -> Map<'t> {
        let free = self.preserves_unknown || (!resource && self.node.properties.is_empty());
        let element_type = match &self.node.additional {
            Additional::Schema(node) => Some(TypeRef::Node(self.child(node))),
            Additional::Any => Some(TypeRef::Deduced),
            Additional::Absent if free => Some(TypeRef::Deduced),
            Additional::Absent | Additional::Forbidden => None,
        };
        Map {
            declared: DeclaredFields::Node(self, resource),
            element_type,
            atomic: self.node.map_type == MapType::Atomic,
        }
    }

    fn shape(self) -> Shape<'t> {
        match self.node.ty {
            None => Shape::Deduced(self.map(self.node.embedded)),
            Some(JsonType::Object) => Shape::Map(self.map(self.node.embedded)),
            Some(JsonType::Array) => self.list(),
            Some(JsonType::String) if self.node.checks.as_ref().is_none_or(|c| c.format.is_none()) => {
                Shape::Scalar(&FieldType::String)
            }
            Some(JsonType::String) => Shape::Scalar(&FieldType::IntOrString),
            Some(JsonType::Integer | JsonType::Number) => Shape::Scalar(&FieldType::Number),
            Some(JsonType::Boolean) => Shape::Scalar(&FieldType::Bool),
        }
    }

    fn list(self) -> Shape<'t> {
        let Some(items) = &self.node.items else { return Shape::Untyped };
        let relation = match self.node.list_type {
            Some(ListType::Set) => Relation::Set,
            Some(ListType::Map) => Relation::Map(&self.node.list_keys),
            Some(ListType::Atomic) | None => Relation::Atomic,
        };
        Shape::List(List { element_type: TypeRef::Node(self.child(items)), relation })
    }
}

/// Returns the shape of a struct.
pub(super) fn struct_map(ty: &Type, override_type: Option<MapType>) -> Map<'_> {
    Map {
        declared: DeclaredFields::Struct(ty),
        // A struct without fields contains any values.
        element_type: ty.fields.is_empty().then_some(TypeRef::Deduced),
        atomic: override_type.unwrap_or(ty.map_type) == MapType::Atomic,
    }
}

/// Returns the shape of a custom resource.
pub(super) fn custom_resource_map(resource: &CustomResource) -> Map<'_> {
    let node = &**resource.schema().root();
    StructuralRef { node, preserves_unknown: node.preserve_unknown, object_meta: resource.meta_type() }
        .map(true)
}

impl<'t> TypeRef<'t> {
    /// Returns the shape of values of this type.
    pub(super) fn shape(self, types: &'t TypeSet) -> Shape<'t> {
        let (ty, field) = match self {
            Self::Field(field) => (&field.ty, Some(field)),
            Self::Plain(ty) => (ty, None),
            Self::Node(structural) => return structural.shape(),
            Self::Deduced => return Shape::Deduced(Map::DEDUCED),
        };
        match types.resolve(ty) {
            FieldType::List(of) => Shape::List(List {
                element_type: TypeRef::Plain(of),
                relation: field.map_or(Relation::Atomic, relation),
            }),
            FieldType::Map(of) => Shape::Map(Map {
                declared: DeclaredFields::Undeclared,
                element_type: Some(TypeRef::Plain(of)),
                atomic: field.and_then(|f| f.map_type) == Some(MapType::Atomic),
            }),
            FieldType::Ref(id) => Shape::Map(struct_map(types.get(*id), field.and_then(|f| f.map_type))),
            FieldType::Any => Shape::Deduced(Map::DEDUCED),
            FieldType::AnyObject => Shape::Untyped,
            scalar => Shape::Scalar(scalar),
        }
    }
}

/// Returns the relation between the elements of a field's list. Without an apply annotation, the strategic
/// merge annotation counts.
fn relation(field: &Field) -> Relation<'_> {
    match (field.list_type, field.patch.merge, &field.merge_key) {
        (Some(ListType::Atomic), _, _) | (None, false, _) => Relation::Atomic,
        (Some(ListType::Map), _, _) if !field.list_keys.is_empty() => Relation::Map(&field.list_keys),
        (Some(ListType::Set | ListType::Map), _, _) | (None, true, None) => Relation::Set,
        (None, true, Some(key)) => Relation::Map(std::slice::from_ref(key)),
    }
}
