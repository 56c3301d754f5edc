//! Typed dialect: a type of a set as the root of an object.

use std::fmt;
use std::sync::Arc;

use crate::model::{FieldType, Type, TypeId, TypeSet};

/// Schema of the typed dialect: one type of a set as the root of an object. Cheap to clone.
#[derive(Clone)]
pub struct Typed {
    types: Arc<TypeSet>,
    root: TypeId,
}

impl Typed {
    pub(crate) fn new(types: Arc<TypeSet>, root: TypeId) -> Self {
        Self { types, root }
    }

    /// Returns the set that contains the root and all nested types, for discovery and OpenAPI.
    #[must_use]
    pub fn types(&self) -> &Arc<TypeSet> {
        &self.types
    }

    /// Returns the index of the root type in the set.
    #[must_use]
    pub fn root_id(&self) -> TypeId {
        self.root
    }

    #[must_use]
    pub fn root(&self) -> &Type {
        self.types.get(self.root)
    }

    pub(crate) fn field_schema(&self, name: &str) -> Option<Self> {
        match self.root().field(name)?.ty {
            FieldType::Ref(id) => Some(Self { types: self.types.clone(), root: id }),
            _ => None,
        }
    }
}

impl fmt::Debug for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Typed").field(&self.root().name).finish()
    }
}
