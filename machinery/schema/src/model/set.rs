//! Set of types, and the builder that links the types.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Field, FieldType, Rules, Type, TypeId};

/// Set of types that may refer to each other. Immutable once built; shared by all schemas that use it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypeSet {
    types: Vec<Type>,
    by_name: HashMap<Box<str>, TypeId>,
}

impl TypeSet {
    /// Returns the type with this index.
    #[must_use]
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// Returns the index of the type with this name.
    #[must_use]
    pub fn id(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// Returns the type with this name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Type> {
        self.id(name).map(|id| self.get(id))
    }

    /// Returns all types in the order of their descriptions.
    pub fn iter(&self) -> impl Iterator<Item = &Type> {
        self.types.iter()
    }

    /// Returns the underlying type of a named plain value, and any other type unchanged.
    #[must_use]
    pub fn resolve<'a>(&'a self, ty: &'a FieldType) -> &'a FieldType {
        match ty {
            FieldType::Ref(id) => self.get(*id).plain.as_ref().unwrap_or(ty),
            plain => plain,
        }
    }

    /// Returns the JSON shapes, with field numbers, of a plain type that protobuf encodes as a message with one field per shape.
    pub(crate) fn shapes(&self, ty: &FieldType) -> Option<&[(FieldType, u32)]> {
        let FieldType::Ref(id) = ty else { return None };
        self.get(*id).message.as_deref()
    }

    /// Returns the first shape that matches. Returns `None` if no shape matches or the type has no shapes.
    pub(crate) fn shape(&self, ty: &FieldType, fits: impl Fn(&FieldType) -> bool) -> Option<&FieldType> {
        self.shapes(ty)?.iter().map(|(shape, _)| shape).find(|shape| fits(self.resolve(shape)))
    }

    /// Returns the zero value of a field type, which replaces null inside a list or map: `""`, 0, false, `{}` for a struct,
    /// null for lists, maps, bytes and times.
    #[must_use]
    pub fn zero(&self, ty: &FieldType) -> Value {
        match self.resolve(ty) {
            FieldType::String => Value::String(String::new()),
            FieldType::Int32 | FieldType::Int64 | FieldType::Number | FieldType::IntOrString => {
                Value::from(0)
            }
            FieldType::Quantity => Value::String("0".to_owned()),
            FieldType::Bool => Value::Bool(false),
            FieldType::Ref(_) => Value::Object(Map::new()),
            _ => Value::Null,
        }
    }
}

/// Collects types. A name may be used before its type is added.
#[derive(Clone, Debug, Default)]
pub struct TypeSetBuilder {
    types: Vec<Option<Type>>,
    names: Vec<Box<str>>,
    by_name: HashMap<Box<str>, TypeId>,
}

/// Inconsistent type descriptions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A name is used but not described.
    #[error("type {0} is used and not described")]
    Missing(Box<str>),
    /// A name is described more than once.
    #[error("type {0} has two descriptions")]
    Duplicate(Box<str>),
}

impl TypeSetBuilder {
    /// Returns the index of the type with this name, which may be added later.
    ///
    /// # Panics
    /// Does not panic in practice: 2^32 types do not fit into memory.
    pub fn id(&mut self, name: &str) -> TypeId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = TypeId(u32::try_from(self.types.len()).unwrap_or(u32::MAX));
        self.types.push(None);
        self.names.push(name.into());
        self.by_name.insert(name.into(), id);
        id
    }

    /// Adds a type and builds its `by_name` index.
    ///
    /// # Errors
    /// [`BuildError::Duplicate`].
    pub fn add(&mut self, mut ty: Type) -> Result<TypeId, BuildError> {
        let id = self.id(&ty.name);
        let slot = &mut self.types[id.0 as usize];
        if slot.is_some() {
            return Err(BuildError::Duplicate(ty.name));
        }
        let mut order: Vec<u16> = (0..=u16::MAX).take(ty.fields.len()).collect();
        order.sort_unstable_by(|a, b| ty.fields[usize::from(*a)].name.cmp(&ty.fields[usize::from(*b)].name));
        ty.by_name = order;
        ty.layout = super::layout::proto_fields(&ty);
        *slot = Some(ty);
        Ok(id)
    }

    /// Builds the set.
    ///
    /// # Errors
    /// [`BuildError::Missing`].
    pub fn build(self) -> Result<TypeSet, BuildError> {
        let mut types = Vec::with_capacity(self.types.len());
        for (ty, name) in self.types.into_iter().zip(self.names) {
            types.push(ty.ok_or(BuildError::Missing(name))?);
        }
        propagate_flag(&mut types, |ty| &mut ty.has_defaults, |field| field.default.is_some());
        propagate_flag(&mut types, |ty| &mut ty.has_rules, |field| field.rules != Rules::default());
        Ok(TypeSet { types, by_name: self.by_name })
    }
}

/// Sets a flag of each type that has a matching field, directly or in a nested type, so that walks can skip the other types.
fn propagate_flag(types: &mut [Type], flag: fn(&mut Type) -> &mut bool, has: fn(&Field) -> bool) {
    let mut marked: Vec<bool> = types.iter().map(|ty| ty.fields.iter().any(has)).collect();
    loop {
        let refers_to_marked = |ty: &Type| {
            ty.fields.iter().any(|f| referenced_type(&f.ty).is_some_and(|id| marked[id.0 as usize]))
        };
        let next: Vec<bool> =
            types.iter().zip(&marked).map(|(ty, done)| *done || refers_to_marked(ty)).collect();
        if next == marked {
            break;
        }
        marked = next;
    }
    for (ty, marked) in types.iter_mut().zip(marked) {
        *flag(ty) = marked;
    }
}

fn referenced_type(ty: &FieldType) -> Option<TypeId> {
    match ty {
        FieldType::Ref(id) => Some(*id),
        FieldType::List(of) | FieldType::Map(of) => referenced_type(of),
        _ => None,
    }
}
