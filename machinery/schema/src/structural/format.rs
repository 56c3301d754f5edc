//! Formats that a schema may demand of strings and numbers.
//!
//! Dashes in the names of string formats do not count; what is unknown, or does not belong to the type, is no format.

use std::sync::Arc;

use super::model::JsonType;

/// A known format, and how the schema spells it: errors and expressions tell that spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// Which one.
    pub kind: FormatKind,
    /// As it is written.
    pub name: Arc<str>,
}

macro_rules! formats {
    ($($kind:ident $name:literal),* $(,)?) => {
        /// The formats that upstream knows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum FormatKind {
            $(#[doc = concat!("`", $name, "`")] $kind,)*
        }

        impl FormatKind {
            /// The format of this name, dashes left out.
            fn of_plain_name(name: &str) -> Option<Self> {
                Some(match name { $($name => Self::$kind,)* _ => return None })
            }
        }
    };
}

formats! {
    BsonObjectId "bsonobjectid", Uri "uri", Email "email", Hostname "hostname", Ipv4 "ipv4", Ipv6 "ipv6", Cidr "cidr",
    Mac "mac", Uuid "uuid", Uuid3 "uuid3", Uuid4 "uuid4", Uuid5 "uuid5", Isbn "isbn", Isbn10 "isbn10", Isbn13 "isbn13",
    CreditCard "creditcard", Ssn "ssn", HexColor "hexcolor", RgbColor "rgbcolor", Byte "byte", Password "password",
    Date "date", Duration "duration", DateTime "datetime", ShortName "k8sshortname", LongName "k8slongname",
    Int32 "int32", Int64 "int64", Float "float", Double "double",
}

impl FormatKind {
    fn is_numeric(self) -> Option<JsonType> {
        match self {
            Self::Int32 | Self::Int64 => Some(JsonType::Integer),
            Self::Float | Self::Double => Some(JsonType::Number),
            _ => None,
        }
    }
}

impl Format {
    /// The format of this name on a value of this type; int-or-string has no single type. Nothing for what upstream does
    /// not recognise there, which it warns of when a definition is written and then ignores.
    #[must_use]
    pub fn recognised(name: &str, ty: Option<JsonType>) -> Option<Self> {
        let kind = match ty {
            None | Some(JsonType::String) => {
                let kind = FormatKind::of_plain_name(&name.replace('-', ""))?;
                kind.is_numeric().is_none().then_some(kind)
            }
            Some(ty) => FormatKind::of_plain_name(name).filter(|kind| kind.is_numeric() == Some(ty)),
        }?;
        Some(Self { kind, name: name.into() })
    }
}
