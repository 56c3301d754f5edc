//! Declared types: what a schema says of JSON that expressions look at.
//!
//! One description serves three purposes: the checker asks for fields and types, the cost estimate for the most
//! elements, the evaluator how to read JSON. Whoever knows a schema builds these; this module knows none.

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
    /// A scalar of this kind.
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

    /// A list.
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

    /// A map with keys of text.
    #[must_use]
    pub fn map(values: Arc<DeclType>, max_elements: u64) -> Self {
        let ty = Type::map(Type::String, values.ty.clone());
        Self { kind: DeclKind::Map { values }, ty, nullable: false, max_elements, min_serialized_size: 2 }
    }

    /// An object with fields; `name` is how messages call it.
    #[must_use]
    pub fn object(name: &str, mut fields: Vec<Field>, min_serialized_size: u64) -> Self {
        fields.sort_by(|one, two| one.escaped.cmp(&two.escaped));
        let object = Arc::new(ObjectType { name: Arc::from(name), fields: fields.into(), further: None });
        let ty = Type::Object(object.clone());
        Self { kind: DeclKind::Object(object), ty, nullable: false, max_elements: 0, min_serialized_size }
    }

    /// Any JSON.
    #[must_use]
    pub fn dynamic() -> &'static Self {
        &DYN
    }

    /// Whether more is known than that it is JSON.
    #[must_use]
    pub(crate) fn is_known(&self) -> bool {
        !matches!(self.kind, DeclKind::Dyn)
    }

    /// The field with this escaped name.
    #[must_use]
    pub fn field(&self, escaped: &str) -> Option<&Field> {
        let DeclKind::Object(object) = &self.kind else { return None };
        object.field(escaped)
    }

    /// What the items of a list are.
    #[must_use]
    pub fn items(&self) -> &Self {
        if let DeclKind::List { items, .. } = &self.kind { items } else { &DYN }
    }

    /// What the values of a map are.
    #[must_use]
    pub fn values(&self) -> &Self {
        if let DeclKind::Map { values } = &self.kind { values } else { &DYN }
    }

    /// How the items of a list are identified.
    #[must_use]
    pub fn list_kind(&self) -> &ListKind {
        if let DeclKind::List { kind, .. } = &self.kind { kind } else { &ListKind::Atomic }
    }
}
