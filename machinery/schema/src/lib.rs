//! One schema engine for built-in kinds and custom resources, without IO.
//!
//! A [`TypeSet`] contains the descriptions of types; a [`Schema`] is one of them as the root of an object. A schema decodes
//! objects strictly, sets defaults, validates, normalizes and merges. There are two dialects: *typed* (built-in kinds: zero
//! values are dropped according to the emit rule of each field) and *structural* (custom resources: a [`Structural`] schema).
//!
//! Does not depend on particular kinds, storage, HTTP or gRPC.

pub mod apply;
pub mod configuration;
pub mod decode;
mod default;
pub mod description;
mod equality;
mod expression_type;
pub mod fields;
pub mod managed;
pub mod merge;
pub mod model;
mod normalize;
mod protobuf;
mod schema;
mod stored_definition;
pub mod structural;
mod typed;
mod validate;

pub use decode::times::canonical_seconds as rfc3339;
pub use decode::{DecodeError, Decoded, Format, duplicate_keys, parse_object, patch_status};
pub use equality::same_content;
pub use merge::PatchError;
pub use model::{Field, FieldType, Type, TypeId, TypeSet};
pub use schema::Schema;
pub use stored_definition::{definition_from_v1beta1, definition_to_v1beta1};
pub use structural::Structural;
pub use typed::Typed;

#[cfg(test)]
mod growth_tests;
