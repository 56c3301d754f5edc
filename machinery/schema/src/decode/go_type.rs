//! Go names of types, which upstream's errors contain.

use crate::model::{Field, FieldType, TypeSet};

/// Type, and the name of its Go type if that is a named type.
#[derive(Clone, Copy)]
pub(crate) struct GoType<'s> {
    pub(crate) ty: &'s FieldType,
    name: Option<&'s str>,
}

impl<'s> GoType<'s> {
    /// Returns the type of a field.
    pub(crate) fn of(field: &'s Field) -> Self {
        Self { ty: &field.ty, name: field.go_type.as_deref() }
    }

    /// Returns a type without a separate Go name.
    pub(crate) fn plain(ty: &'s FieldType) -> Self {
        Self { ty, name: None }
    }

    /// Returns the element type of a list or map: of `[]v1.KeyUsage` it is `v1.KeyUsage`, of a named list it is unknown.
    pub(crate) fn element(self, ty: &'s FieldType) -> Self {
        let element = |name: &'s str| {
            name.strip_prefix("[]").or_else(|| name.strip_prefix("map[")?.split_once(']').map(|(_, of)| of))
        };
        Self { ty, name: self.name.and_then(element) }
    }

    /// Returns the Go name, derived from the type if it is not a named type.
    pub(crate) fn name(self, types: &TypeSet) -> String {
        self.name.map_or_else(|| name(types, self.ty), str::to_owned)
    }
}

fn name(types: &TypeSet, ty: &FieldType) -> String {
    match ty {
        FieldType::String => "string".to_owned(),
        FieldType::Int32 => "int32".to_owned(),
        FieldType::Int64 => "int64".to_owned(),
        FieldType::Bool => "bool".to_owned(),
        FieldType::Number => "float64".to_owned(),
        FieldType::Bytes => "[]uint8".to_owned(),
        FieldType::Time => "v1.Time".to_owned(),
        FieldType::MicroTime => "v1.MicroTime".to_owned(),
        FieldType::Quantity => "resource.Quantity".to_owned(),
        FieldType::IntOrString => "intstr.IntOrString".to_owned(),
        FieldType::Any | FieldType::AnyObject => "interface {}".to_owned(),
        FieldType::List(of) => format!("[]{}", name(types, of)),
        FieldType::Map(of) => format!("map[string]{}", name(types, of)),
        FieldType::Ref(id) => {
            let mut parts = types.get(*id).name.rsplit('.');
            let (name, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            format!("{package}.{name}")
        }
    }
}

/// Returns the Go name of an embedded struct, given the name of its protobuf message.
pub(crate) fn embedded_struct_name(message: &str) -> impl Iterator<Item = char> + '_ {
    let mut starts = true;
    message.chars().map(move |c| {
        let upper = if starts { c.to_ascii_uppercase() } else { c };
        starts = c == '.';
        upper
    })
}
