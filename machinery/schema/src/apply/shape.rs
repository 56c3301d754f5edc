//! What a value may be as apply sees it: a scalar, a list with a relation between its elements, a map, or anything.

use crate::model::{Field, FieldType, ListType, MapType, Type, TypeSet};

/// A place for a value: its type, and what the field says of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum TypeRef<'t> {
    /// A field of a struct, whose annotations count.
    Field(&'t Field),
    /// An element of a list or map.
    Plain(&'t FieldType),
    /// Anything; its shape is what it looks like: maps by key, lists as one.
    Deduced,
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
    /// Anything by what it looks like.
    Deduced,
    /// Anything as one.
    Untyped,
}

/// A list.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'t> {
    pub(super) of: &'t FieldType,
    pub(super) relation: Relation<'t>,
}

/// How the elements of a list are told apart.
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
    pub(super) fields: Option<&'t Type>,
    pub(super) of: Option<TypeRef<'t>>,
    pub(super) atomic: bool,
}

impl<'t> Map<'t> {
    /// The type of this key, and whether it is a declared field.
    pub(super) fn entry(&self, key: &str) -> (Option<TypeRef<'t>>, bool) {
        match self.fields.and_then(|ty| ty.field(key)) {
            Some(field) => (Some(TypeRef::Field(field)), true),
            None => (self.of, false),
        }
    }

    /// The map that anything is when it looks like one.
    pub(super) const DEDUCED: Self = Self { fields: None, of: Some(TypeRef::Deduced), atomic: false };
}

/// The shape of a struct.
pub(super) fn structure(ty: &Type, over: Option<MapType>) -> Map<'_> {
    Map {
        fields: Some(ty),
        // A struct without fields holds anything.
        of: ty.fields.is_empty().then_some(TypeRef::Deduced),
        atomic: over.unwrap_or(ty.map_type) == MapType::Atomic,
    }
}

impl<'t> TypeRef<'t> {
    /// The shape of what may stand there.
    pub(super) fn shape(self, types: &'t TypeSet) -> Shape<'t> {
        let (ty, field) = match self {
            Self::Field(field) => (&field.ty, Some(field)),
            Self::Plain(ty) => (ty, None),
            Self::Deduced => return Shape::Deduced,
        };
        match types.resolve(ty) {
            FieldType::List(of) => {
                Shape::List(List { of, relation: field.map_or(Relation::Atomic, relation) })
            }
            FieldType::Map(of) => Shape::Map(Map {
                fields: None,
                of: Some(TypeRef::Plain(of)),
                atomic: field.and_then(|f| f.map_type) == Some(MapType::Atomic),
            }),
            FieldType::Ref(id) => Shape::Map(structure(types.get(*id), field.and_then(|f| f.map_type))),
            FieldType::Any => Shape::Deduced,
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
