//! Formats that a schema can require of strings and numbers.
//!
//! Dashes in names of string formats are ignored. Formats that are unknown, or belong to another type, are ignored.

mod codes;
mod email;
mod network;

use std::sync::Arc;

use portico_gostd::strfmt::{is_date, is_date_time, parse_duration};
use portico_gostd::url::check_request_uri;
use portico_machinery::names;

use super::json_type::JsonType;

/// Known format, with the spelling of the schema, which errors and expressions show.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    pub kind: FormatKind,
    /// Spelling of the schema.
    pub name: Arc<str>,
}

macro_rules! formats {
    ($($kind:ident $name:literal),* $(,)?) => {
        /// Formats that upstream knows.
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
    /// True for formats of strings.
    pub(super) fn is_textual(self) -> bool {
        self.numeric_type().is_none()
    }

    fn numeric_type(self) -> Option<JsonType> {
        match self {
            Self::Int32 | Self::Int64 => Some(JsonType::Integer),
            Self::Float | Self::Double => Some(JsonType::Number),
            _ => None,
        }
    }
}

impl Format {
    /// True if a string has this format. Formats of numbers are ranges, which the number checks validate.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        use FormatKind as F;
        match self.kind {
            F::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            F::Uri => check_request_uri(text).is_ok(),
            F::Email => email::is_address(text),
            F::Hostname => network::is_hostname(text),
            F::Ipv4 => network::is_ipv4(text),
            F::Ipv6 => network::is_ipv6(text),
            F::Cidr => network::is_cidr(text),
            F::Mac => network::is_mac(text),
            F::Uuid => codes::is_uuid(text, None),
            F::Uuid3 => codes::is_uuid(text, Some(b'3')),
            F::Uuid4 => codes::is_uuid(text, Some(b'4')),
            F::Uuid5 => codes::is_uuid(text, Some(b'5')),
            F::Isbn => codes::is_isbn10(text) || codes::is_isbn13(text),
            F::Isbn10 => codes::is_isbn10(text),
            F::Isbn13 => codes::is_isbn13(text),
            F::CreditCard => codes::is_credit_card(text),
            F::Ssn => codes::is_ssn(text),
            F::HexColor => codes::is_hex_color(text),
            F::RgbColor => codes::is_rgb_color(text),
            F::Byte => codes::is_base64(text),
            F::Date => is_date(text),
            F::Duration => parse_duration(text).is_ok(),
            F::DateTime => is_date_time(text),
            F::ShortName => names::dns1123_label(text).is_empty(),
            F::LongName => names::dns1123_subdomain(text).is_empty(),
            F::Password | F::Int32 | F::Int64 | F::Float | F::Double => true,
        }
    }

    /// Returns the format of this name for a value of this type; int-or-string has no single type. Returns `None` for formats
    /// that upstream does not recognize: it warns about them when a definition is written, and otherwise ignores them.
    #[must_use]
    pub fn recognized(name: &str, ty: Option<JsonType>) -> Option<Self> {
        let kind = match ty {
            None | Some(JsonType::String) => {
                let kind = FormatKind::of_plain_name(&name.replace('-', ""))?;
                kind.is_textual().then_some(kind)
            }
            Some(ty) => FormatKind::of_plain_name(name).filter(|kind| kind.numeric_type() == Some(ty)),
        }?;
        Some(Self { kind, name: name.into() })
    }
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
