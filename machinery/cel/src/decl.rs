//! Declarations of JSON by a schema.
//!
//! A [`DeclType`] gives the checker the fields and their types, the cost estimate the maximum sizes, and the evaluator the format
//! of the JSON. Build it from your schema language.

use std::sync::Arc;

pub use crate::identifier::{RESERVED, escape};
pub use crate::types::{DeclKind, DeclType, Field, FieldTypes, ListKind, ObjectTypes};
use crate::types::{ObjectType, Type};

static DYN: DeclType = DeclType {
    kind: DeclKind::Dyn,
    ty: Type::Dyn,
    nullable: true,
    max_elements: u64::MAX,
    min_serialized_size: 1,
};

impl DeclType {
    /// Returns the declaration of a scalar. `max_elements` is the maximum length of a string, `min_serialized_size` is in bytes.
    #[must_use]
    pub fn scalar(kind: DeclKind, max_elements: u64, min_serialized_size: u64) -> Self {
        let ty = match kind {
            DeclKind::Bool => Type::Bool,
            DeclKind::Int => Type::Int,
            DeclKind::Double => Type::Double,
            DeclKind::String => Type::String,
            DeclKind::Bytes => Type::Bytes,
            DeclKind::Date | DeclKind::DateTime => Type::Timestamp,
            DeclKind::Duration => Type::Duration,
            _ => Type::Dyn,
        };
        Self { kind, ty, nullable: false, max_elements, min_serialized_size }
    }

    /// Returns the declaration of a list of at most `max_elements` items.
    #[must_use]
    pub fn list(items: Arc<DeclType>, kind: ListKind, max_elements: u64) -> Self {
        let ty = Type::list(items.ty.clone());
        Self {
            kind: DeclKind::List { items, kind },
            ty,
            nullable: false,
            max_elements,
            min_serialized_size: 2,
        }
    }

    /// Returns the declaration of a map with string keys and at most `max_elements` entries.
    #[must_use]
    pub fn map(values: Arc<DeclType>, max_elements: u64) -> Self {
        let ty = Type::map(Type::String, values.ty.clone());
        Self { kind: DeclKind::Map { values }, ty, nullable: false, max_elements, min_serialized_size: 2 }
    }

    /// Returns the declaration of an object with fields. `name` appears in messages.
    #[must_use]
    pub fn object(name: &str, mut fields: Vec<Field>, min_serialized_size: u64) -> Self {
        fields.sort_by(|one, two| one.escaped.cmp(&two.escaped));
        let object =
            Arc::new(ObjectType { name: Arc::from(name), fields: fields.into(), extra_fields: None });
        let ty = Type::Object(object.clone());
        Self { kind: DeclKind::Object(object), ty, nullable: false, max_elements: 0, min_serialized_size }
    }

    /// Returns the declaration of any JSON.
    #[must_use]
    pub fn dynamic() -> &'static Self {
        &DYN
    }

    /// True if the declaration is more specific than any JSON.
    #[must_use]
    pub(crate) fn is_known(&self) -> bool {
        !matches!(self.kind, DeclKind::Dyn)
    }

    /// Returns the field with this escaped name.
    #[must_use]
    pub fn field(&self, escaped: &str) -> Option<&Field> {
        let DeclKind::Object(object) = &self.kind else { return None };
        object.field(escaped)
    }

    /// Returns the declaration of the items of a list, or of any JSON if this is no list.
    #[must_use]
    pub fn items(&self) -> &Self {
        if let DeclKind::List { items, .. } = &self.kind { items } else { &DYN }
    }

    /// Returns the declaration of the values of a map, or of any JSON if this is no map.
    #[must_use]
    pub fn values(&self) -> &Self {
        if let DeclKind::Map { values } = &self.kind { values } else { &DYN }
    }

    /// Returns the equality of a list, by default [`ListKind::Atomic`].
    #[must_use]
    pub fn list_kind(&self) -> &ListKind {
        if let DeclKind::List { kind, .. } = &self.kind { kind } else { &ListKind::Atomic }
    }
}
