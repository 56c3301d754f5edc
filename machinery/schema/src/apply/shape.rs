//! What a value may be as apply sees it: a scalar, a list with a relation between its elements, a map, or anything.
//!
//! Types and structural schemas say it alike; the components that walk shapes do not know which of them spoke.

use serde_json::Value;

use crate::model::{Field, FieldType, ListType, MapType, Type, TypeSet};
use crate::structural::{Additional, CustomResource, JsonType, Node};

/// A place for a value: its type, and what the field says of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum TypeRef<'t> {
    /// A field of a struct, whose annotations count.
    Field(&'t Field),
    /// An element of a list or map.
    Plain(&'t FieldType),
    /// A place of a structural schema.
    Node(Place<'t>),
    /// Anything; its shape is what it looks like: maps by key, lists as one.
    Deduced,
}

/// A place of a structural schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'t> {
    node: &'t Node,
    /// Unknown fields are preserved here or further up.
    open: bool,
    /// The type of `metadata`.
    meta: &'t FieldType,
}

/// The shape of what may stand there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape<'t> {
    /// A string, number or truth value.
    Scalar(&'t FieldType),
    /// A list.
    List(List<'t>),
    /// A struct or a map.
    Map(Map<'t>),
    /// Anything by what it looks like; when it looks like a map, it is this one.
    Deduced(Map<'t>),
    /// Anything as one.
    Untyped,
}

/// A list.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'t> {
    pub(super) of: TypeRef<'t>,
    pub(super) relation: Relation<'t>,
}

/// How the elements of a list are identified.
#[derive(Clone, Copy, Debug)]
pub(super) enum Relation<'t> {
    /// They are not: the list is one value.
    Atomic,
    /// By their value.
    Set,
    /// By these fields.
    Map(&'t [Box<str>]),
}

/// A struct (fields), a map (elements), or a free object (deduced elements).
#[derive(Clone, Copy, Debug)]
pub(super) struct Map<'t> {
    named: Named<'t>,
    pub(super) of: Option<TypeRef<'t>>,
    pub(super) atomic: bool,
}

/// What names the fields of a map.
#[derive(Clone, Copy, Debug)]
enum Named<'t> {
    Nothing,
    Struct(&'t Type),
    /// The properties of a place, with `apiVersion`, `kind` and `metadata` when it holds a resource.
    Node(Place<'t>, bool),
}

impl<'t> Map<'t> {
    /// The map that anything is when it looks like one.
    pub(super) const DEDUCED: Self =
        Self { named: Named::Nothing, of: Some(TypeRef::Deduced), atomic: false };

    /// The type of this key, and whether it is a declared field.
    pub(super) fn entry(&self, key: &str) -> (Option<TypeRef<'t>>, bool) {
        let declared = match self.named {
            Named::Nothing => None,
            Named::Struct(ty) => ty.field(key).map(TypeRef::Field),
            Named::Node(place, resource) => place.property(key, resource),
        };
        match declared {
            Some(ty) => (Some(ty), true),
            None => (self.of, false),
        }
    }

    /// The struct, whose fields print by their emit rules.
    pub(super) fn structure(&self) -> Option<&'t Type> {
        match self.named {
            Named::Struct(ty) => Some(ty),
            Named::Nothing | Named::Node(..) => None,
        }
    }

    /// What an absent field counts as where it is a key.
    pub(super) fn default_of(&self, key: &str) -> Option<&'t Value> {
        match self.named {
            Named::Nothing => None,
            Named::Struct(ty) => ty.field(key)?.openapi_default.as_ref(),
            Named::Node(place, _) => place.node.property(key)?.default.as_ref(),
        }
    }
}

impl<'t> Place<'t> {
    fn below(self, node: &'t Node) -> Self {
        Self { node, open: self.open || node.preserve_unknown, meta: self.meta }
    }

    fn property(self, key: &str, resource: bool) -> Option<TypeRef<'t>> {
        match key {
            "apiVersion" | "kind" if resource => Some(TypeRef::Plain(&FieldType::String)),
            "metadata" if resource => Some(TypeRef::Plain(self.meta)),
            _ => self.node.property(key).map(|node| TypeRef::Node(self.below(node))),
        }
    }

    fn map(self, resource: bool) -> Map<'t> {
        let free = self.open || (!resource && self.node.properties.is_empty());
        let of = match &self.node.additional {
            Additional::Schema(node) => Some(TypeRef::Node(self.below(node))),
            Additional::Any => Some(TypeRef::Deduced),
            Additional::Absent if free => Some(TypeRef::Deduced),
            Additional::Absent | Additional::No => None,
        };
        Map { named: Named::Node(self, resource), of, atomic: self.node.map_type == MapType::Atomic }
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
        Shape::List(List { of: TypeRef::Node(self.below(items)), relation })
    }
}

/// The shape of a struct.
pub(super) fn structure(ty: &Type, over: Option<MapType>) -> Map<'_> {
    Map {
        named: Named::Struct(ty),
        // A struct without fields holds anything.
        of: ty.fields.is_empty().then_some(TypeRef::Deduced),
        atomic: over.unwrap_or(ty.map_type) == MapType::Atomic,
    }
}

/// The shape of a custom resource.
pub(super) fn custom(resource: &CustomResource) -> Map<'_> {
    let node = &**resource.schema().root();
    Place { node, open: node.preserve_unknown, meta: resource.meta_type() }.map(true)
}

impl<'t> TypeRef<'t> {
    /// The shape of what may stand there.
    pub(super) fn shape(self, types: &'t TypeSet) -> Shape<'t> {
        let (ty, field) = match self {
            Self::Field(field) => (&field.ty, Some(field)),
            Self::Plain(ty) => (ty, None),
            Self::Node(place) => return place.shape(),
            Self::Deduced => return Shape::Deduced(Map::DEDUCED),
        };
        match types.resolve(ty) {
            FieldType::List(of) => Shape::List(List {
                of: TypeRef::Plain(of),
                relation: field.map_or(Relation::Atomic, relation),
            }),
            FieldType::Map(of) => Shape::Map(Map {
                named: Named::Nothing,
                of: Some(TypeRef::Plain(of)),
                atomic: field.and_then(|f| f.map_type) == Some(MapType::Atomic),
            }),
            FieldType::Ref(id) => Shape::Map(structure(types.get(*id), field.and_then(|f| f.map_type))),
            FieldType::Any => Shape::Deduced(Map::DEDUCED),
            FieldType::AnyObject => Shape::Untyped,
            scalar => Shape::Scalar(scalar),
        }
    }
}

/// What a field says of its list; where it says nothing for apply, what it says for strategic merge counts.
fn relation(field: &Field) -> Relation<'_> {
    match (field.list_type, field.patch.merge, &field.merge_key) {
        (Some(ListType::Atomic), _, _) | (None, false, _) => Relation::Atomic,
        (Some(ListType::Map), _, _) if !field.list_keys.is_empty() => Relation::Map(&field.list_keys),
        (Some(ListType::Set | ListType::Map), _, _) | (None, true, None) => Relation::Set,
        (None, true, Some(key)) => Relation::Map(std::slice::from_ref(key)),
    }
}
