//! The set that types live in, and the builder that links them.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Field, FieldType, Rules, Type, TypeId};

/// Types that may refer to each other. Immutable once built; shared by all schemas made of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypeSet {
    types: Vec<Type>,
    by_name: HashMap<Box<str>, TypeId>,
}

impl TypeSet {
    /// The type at this place.
    #[must_use]
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// The place of the type of this name.
    #[must_use]
    pub fn id(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// The type of this name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Type> {
        self.id(name).map(|id| self.get(id))
    }

    /// All types, in the order in which they were described.
    pub fn iter(&self) -> impl Iterator<Item = &Type> {
        self.types.iter()
    }

    /// What a field type is once names for plain values are looked through.
    #[must_use]
    pub fn resolve<'a>(&'a self, ty: &'a FieldType) -> &'a FieldType {
        match ty {
            FieldType::Ref(id) => self.get(*id).plain.as_ref().unwrap_or(ty),
            plain => plain,
        }
    }

    /// The shapes of a plain type that protobuf writes as another field of a message for each of them, with numbers.
    pub(crate) fn shapes(&self, ty: &FieldType) -> Option<&[(FieldType, u32)]> {
        let FieldType::Ref(id) = ty else { return None };
        self.get(*id).message.as_deref()
    }

    /// The one of these shapes that fits; nothing where none does, and for types without shapes.
    pub(crate) fn shape(&self, ty: &FieldType, fits: impl Fn(&FieldType) -> bool) -> Option<&FieldType> {
        self.shapes(ty)?.iter().map(|(shape, _)| shape).find(|shape| fits(self.resolve(shape)))
    }

    /// The zero value of a field type, which null stands for inside a list or map: `""`, 0, false, `{}` for a struct,
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

/// Collects types; names may be used before they are described.
#[derive(Clone, Debug, Default)]
pub struct TypeSetBuilder {
    types: Vec<Option<Type>>,
    names: Vec<Box<str>>,
    by_name: HashMap<Box<str>, TypeId>,
}

/// Descriptions that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A name that nothing describes.
    #[error("type {0} is used and not described")]
    Missing(Box<str>),
    /// A name that is described twice.
    #[error("type {0} is described twice")]
    Twice(Box<str>),
}

impl TypeSetBuilder {
    /// The place of the type of this name, described or not yet.
    ///
    /// # Panics
    /// Never: 2^32 types do not fit into memory.
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

    /// Adds a type; its `by_name` index is made here.
    ///
    /// # Errors
    /// [`BuildError::Twice`].
    pub fn add(&mut self, mut ty: Type) -> Result<TypeId, BuildError> {
        let id = self.id(&ty.name);
        let slot = &mut self.types[id.0 as usize];
        if slot.is_some() {
            return Err(BuildError::Twice(ty.name));
        }
        let mut order: Vec<u16> = (0..=u16::MAX).take(ty.fields.len()).collect();
        order.sort_unstable_by(|a, b| ty.fields[usize::from(*a)].name.cmp(&ty.fields[usize::from(*b)].name));
        ty.by_name = order;
        ty.layout = super::layout::of(&ty);
        *slot = Some(ty);
        Ok(id)
    }

    /// The finished set.
    ///
    /// # Errors
    /// [`BuildError::Missing`].
    pub fn build(self) -> Result<TypeSet, BuildError> {
        let mut types = Vec::with_capacity(self.types.len());
        for (ty, name) in self.types.into_iter().zip(self.names) {
            types.push(ty.ok_or(BuildError::Missing(name))?);
        }
        mark(&mut types, |ty| &mut ty.has_defaults, |field| field.default.is_some());
        mark(&mut types, |ty| &mut ty.has_rules, |field| field.rules != Rules::default());
        Ok(TypeSet { types, by_name: self.by_name })
    }
}

/// Marks the types that have a field with some property, directly or below, so that walks skip the others.
fn mark(types: &mut [Type], flag: fn(&mut Type) -> &mut bool, has: fn(&Field) -> bool) {
    let mut marked: Vec<bool> = types.iter().map(|ty| ty.fields.iter().any(has)).collect();
    loop {
        let below =
            |ty: &Type| ty.fields.iter().any(|f| target(&f.ty).is_some_and(|id| marked[id.0 as usize]));
        let next: Vec<bool> = types.iter().zip(&marked).map(|(ty, done)| *done || below(ty)).collect();
        if next == marked {
            break;
        }
        marked = next;
    }
    for (ty, marked) in types.iter_mut().zip(marked) {
        *flag(ty) = marked;
    }
}

fn target(ty: &FieldType) -> Option<TypeId> {
    match ty {
        FieldType::Ref(id) => Some(*id),
        FieldType::List(of) | FieldType::Map(of) => target(of),
        _ => None,
    }
}
