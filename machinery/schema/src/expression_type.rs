//! Type of a whole object for expressions that are checked against any kind (upstream's `SchemaDeclType` over published
//! schemas). Fields are resolved lazily: the full type of a kind is large, and an expression uses few of its fields.

use std::fmt;
use std::sync::Arc;

use portico_cel::decl::{FieldTypes, escape};
use portico_cel::{DeclType, RESERVED, Type};

use crate::model::{FieldType, TypeId};
use crate::typed::Typed;

/// Returns the expression type, named `name`, of a struct of a set.
pub(crate) fn of_struct(typed: &Typed, name: &str) -> Type {
    nested_struct_type(typed, name, Vec::new())
}

/// Returns the type of a custom resource as declared by its schema, with the metadata fields that all objects have.
pub(crate) fn of_custom(declared: Arc<DeclType>, object_meta: &Typed, name: &str) -> Type {
    let metadata = of_struct(object_meta, &format!("{name}.metadata"));
    Type::open_object(name, Arc::new(CustomFields { declared, metadata }))
}

/// Returns the type of a nested struct. `ancestors` are the enclosing types: a recursive occurrence of one of them has no
/// fields, as upstream cuts cycles.
fn nested_struct_type(typed: &Typed, name: &str, ancestors: Vec<TypeId>) -> Type {
    if ancestors.contains(&typed.root_id()) {
        return Type::object(name);
    }
    Type::open_object(name, Arc::new(StructFields { typed: typed.clone(), name: name.into(), ancestors }))
}

/// Fields of a struct.
struct StructFields {
    typed: Typed,
    name: Box<str>,
    ancestors: Vec<TypeId>,
}

/// Fields of a custom resource.
#[derive(Debug)]
struct CustomFields {
    declared: Arc<DeclType>,
    metadata: Type,
}

impl fmt::Debug for StructFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Struct").field(&self.name).finish()
    }
}

impl FieldTypes for StructFields {
    fn field(&self, escaped: &str) -> Option<Type> {
        let field = self.typed.root().fields.iter().find(|field| is_spelled(&field.name, escaped))?;
        self.type_of(&field.ty, &format!("{}.{}", self.name, field.name))
    }
}

impl FieldTypes for CustomFields {
    fn field(&self, escaped: &str) -> Option<Type> {
        match escaped {
            "metadata" => Some(self.metadata.clone()),
            other => self.declared.field(other).map(|field| field.of.ty.clone()),
        }
    }
}

impl StructFields {
    /// Returns `None` for values that expressions cannot access: values without a type in the published schema, and lists and
    /// maps of such values.
    fn type_of(&self, ty: &FieldType, name: &str) -> Option<Type> {
        Some(match self.typed.types().resolve(ty) {
            FieldType::String => Type::String,
            FieldType::Int32 | FieldType::Int64 => Type::Int,
            FieldType::Bool => Type::Bool,
            FieldType::Number => Type::Double,
            FieldType::Bytes => Type::Bytes,
            FieldType::Time | FieldType::MicroTime => Type::Timestamp,
            FieldType::IntOrString => Type::Dyn,
            FieldType::Quantity | FieldType::Any => return None,
            FieldType::AnyObject => Type::object(name),
            FieldType::List(of) => Type::list(self.type_of(of, &format!("{name}.@idx"))?),
            FieldType::Map(of) => Type::map(Type::String, self.type_of(of, &format!("{name}.@elem"))?),
            FieldType::Ref(id) => {
                let ancestors = self.ancestors.iter().copied().chain([self.typed.root_id()]).collect();
                nested_struct_type(&Typed::new(Arc::clone(self.typed.types()), *id), name, ancestors)
            }
        })
    }
}

/// True if `escaped` is the spelling of the field in expressions. Reserved words that parse as names need no escape.
fn is_spelled(name: &str, escaped: &str) -> bool {
    (name == escaped && RESERVED.contains(&escaped)) || escape(name).is_some_and(|spelled| spelled == escaped)
}
