//! Serialized descriptions of types, which are read into a [`TypeSet`](crate::TypeSet).
//!
//! A type expression is `string`, `int32`, `int64`, `boolean`, `number`, `bytes`, `time`, `micro-time`, `quantity`,
//! `int-or-string`, `any`, `object`, `[]T`, `{}T`, or the name of a type: a short name in the same package,
//! `alias.Name` through the imports, or the full name.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

use crate::model::{
    BuildError, Emit, Field, FieldType, ListType, MapType, PatchStrategy, Rules, Type, TypeSetBuilder, Union,
};

/// Types by package and short name.
pub type Packages = IndexMap<String, IndexMap<String, TypeDescription>>;

/// Serialized form of a type.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct TypeDescription {
    /// Kinds that are served with this type, as `group/version/kind`.
    pub kinds: Vec<String>,
    /// True if apply replaces a value of this type as a whole.
    pub atomic: bool,
    /// Embedded protobuf messages by path, with their field numbers.
    pub inline: IndexMap<String, u32>,
    /// Groups of fields of which at most one is set.
    pub unions: Vec<Union>,
    /// Underlying plain type, if this type is a named plain value.
    pub is: Option<String>,
    /// Protobuf message of a plain type that is encoded differently for each JSON shape: type expressions and field numbers.
    pub message: Option<IndexMap<String, u32>>,
    pub fields: IndexMap<String, FieldDescription>,
}

/// Serialized form of a field.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct FieldDescription {
    /// Type expression.
    #[serde(rename = "type")]
    pub ty: String,
    /// Go type that upstream's errors print, if it is a named type: `[]v1.KeyUsage` for a list of strings.
    pub go: Option<String>,
    /// Protobuf field number.
    pub number: u32,
    /// Embedded protobuf message that contains the field.
    pub inside: Option<String>,
    /// Listed as required in OpenAPI.
    pub required: bool,
    /// Rule that decides if the field is printed.
    pub emit: EmitDescription,
    /// Default that OpenAPI shows.
    pub openapi_default: Option<Value>,
    /// Default that the server sets.
    pub default: Option<Value>,
    /// `atomic`, `set` or `map`.
    pub list: Option<ListDescription>,
    /// Keys of a list that is merged as a map.
    pub keys: Vec<String>,
    /// True if apply replaces the map or struct as a whole. `None` selects the rule of the field's type.
    pub atomic: Option<bool>,
    /// `merge`, `retainKeys`, `replace`, joined by commas.
    pub patch: String,
    /// Merge key of strategic merge patch.
    pub merge_key: Option<String>,
    /// Known values.
    #[serde(rename = "enum")]
    pub enumeration: Vec<String>,
    /// True if only known values are accepted.
    pub enumerated: bool,
    /// True if the field must not be absent or empty.
    pub not_empty: bool,
    /// Smallest accepted number.
    pub minimum: Option<i64>,
    /// Largest accepted number.
    pub maximum: Option<i64>,
    /// Maximum length of a string or list.
    pub max_length: Option<usize>,
    /// True if the field must not change.
    pub immutable: bool,
}

/// Serialized form of [`Emit`].
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmitDescription {
    #[default]
    Absent,
    Always,
    Struct,
    Pointer,
    Nullable,
    Nonzero,
}

/// Serialized form of [`ListType`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListDescription {
    Atomic,
    Set,
    Map,
}

/// Adds described types to the builder of a set.
///
/// # Errors
/// [`BuildError::Duplicate`].
pub fn add(
    builder: &mut TypeSetBuilder,
    imports: &IndexMap<String, String>,
    packages: Packages,
) -> Result<(), BuildError> {
    for (package, types) in packages {
        for (name, description) in types {
            let scope = Scope { package: &package, imports };
            let ty = scope.type_of(builder, &name, description);
            builder.add(ty)?;
        }
    }
    Ok(())
}

/// Package and imports in which type names are resolved.
struct Scope<'a> {
    package: &'a str,
    imports: &'a IndexMap<String, String>,
}

impl Scope<'_> {
    fn type_of(&self, builder: &mut TypeSetBuilder, name: &str, description: TypeDescription) -> Type {
        let TypeDescription { kinds, atomic, inline, unions, is, message, fields } = description;
        Type {
            name: format!("{}.{name}", self.package).into(),
            gvks: kinds.into_iter().map(Into::into).collect(),
            map_type: if atomic { MapType::Atomic } else { MapType::Granular },
            embedded_messages: inline.into_iter().map(|(path, number)| (path.into(), number)).collect(),
            unions,
            plain: is.map(|text| self.field_type(builder, &text)),
            message: message.map(|shapes| {
                shapes.into_iter().map(|(text, number)| (self.field_type(builder, &text), number)).collect()
            }),
            fields: fields.into_iter().map(|(name, field)| self.field(builder, name, field)).collect(),
            ..Type::default()
        }
    }

    fn field(&self, builder: &mut TypeSetBuilder, name: String, field: FieldDescription) -> Field {
        Field {
            name: name.into(),
            ty: self.field_type(builder, &field.ty),
            go_type: field.go.map(Into::into),
            number: field.number,
            embedded_in: field.inside.map(Into::into),
            required: field.required,
            emit: field.emit.into(),
            openapi_default: field.openapi_default,
            default: field.default,
            list_type: field.list.map(Into::into),
            list_keys: field.keys.into_iter().map(Into::into).collect(),
            map_type: field.atomic.map(|atomic| if atomic { MapType::Atomic } else { MapType::Granular }),
            patch: PatchStrategy {
                merge: field.patch.split(',').any(|word| word == "merge"),
                retain_keys: field.patch.split(',').any(|word| word == "retainKeys"),
                replace: field.patch.split(',').any(|word| word == "replace"),
            },
            merge_key: field.merge_key.map(Into::into),
            enumeration: field.enumeration.into_iter().map(Into::into).collect(),
            rules: Rules {
                enumerated: field.enumerated,
                not_empty: field.not_empty,
                minimum: field.minimum,
                maximum: field.maximum,
                max_length: field.max_length,
                immutable: field.immutable,
            },
        }
    }

    fn field_type(&self, builder: &mut TypeSetBuilder, text: &str) -> FieldType {
        if let Some(of) = text.strip_prefix("[]") {
            return FieldType::List(Box::new(self.field_type(builder, of)));
        }
        if let Some(of) = text.strip_prefix("{}") {
            return FieldType::Map(Box::new(self.field_type(builder, of)));
        }
        match text {
            "string" => FieldType::String,
            "int32" => FieldType::Int32,
            "int64" => FieldType::Int64,
            "boolean" => FieldType::Bool,
            "number" => FieldType::Number,
            "bytes" => FieldType::Bytes,
            "time" => FieldType::Time,
            "micro-time" => FieldType::MicroTime,
            "quantity" => FieldType::Quantity,
            "int-or-string" => FieldType::IntOrString,
            "any" => FieldType::Any,
            "object" => FieldType::AnyObject,
            name => FieldType::Ref(builder.id(&self.full_name(name))),
        }
    }

    fn full_name(&self, name: &str) -> String {
        match name.split_once('.') {
            None => format!("{}.{name}", self.package),
            Some((alias, short)) => match self.imports.get(alias) {
                Some(package) => format!("{package}.{short}"),
                None => name.to_owned(),
            },
        }
    }
}

impl From<EmitDescription> for Emit {
    fn from(emit: EmitDescription) -> Self {
        match emit {
            EmitDescription::Absent => Self::OmitEmpty,
            EmitDescription::Always => Self::Always,
            EmitDescription::Struct => Self::Struct,
            EmitDescription::Pointer => Self::Pointer,
            EmitDescription::Nullable => Self::Nullable,
            EmitDescription::Nonzero => Self::OmitZero,
        }
    }
}

impl From<ListDescription> for ListType {
    fn from(list: ListDescription) -> Self {
        match list {
            ListDescription::Atomic => Self::Atomic,
            ListDescription::Set => Self::Set,
            ListDescription::Map => Self::Map,
        }
    }
}
