//! Types as upstream's errors name them: Go's.

use crate::model::{Field, FieldType, TypeSet};

/// A type, and the name that Go gives it where it has one of its own.
#[derive(Clone, Copy)]
pub(crate) struct GoType<'s> {
    pub(crate) ty: &'s FieldType,
    name: Option<&'s str>,
}

impl<'s> GoType<'s> {
    /// What a field holds.
    pub(crate) fn of(field: &'s Field) -> Self {
        Self { ty: &field.ty, name: field.go.as_deref() }
    }

    /// A type that goes by its own name.
    pub(crate) fn plain(ty: &'s FieldType) -> Self {
        Self { ty, name: None }
    }

    /// What the list or map holds: of `[]v1.KeyUsage` it is `v1.KeyUsage`, of a list that has a name it is not known.
    pub(crate) fn element(self, ty: &'s FieldType) -> Self {
        let element = |name: &'s str| {
            name.strip_prefix("[]").or_else(|| name.strip_prefix("map[")?.split_once(']').map(|(_, of)| of))
        };
        Self { ty, name: self.name.and_then(element) }
    }

    /// The name, made of the type where it has none of its own.
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

/// The name of a struct that is embedded in another, of the name that protobuf gives the message.
pub(crate) fn embedded(message: &str) -> impl Iterator<Item = char> + '_ {
    let mut starts = true;
    message.chars().map(move |c| {
        let upper = if starts { c.to_ascii_uppercase() } else { c };
        starts = c == '.';
        upper
    })
}
