//! A schema: one type of a set as the root of an object, and everything that walking it can do.

use std::fmt;
use std::sync::Arc;

use portico_machinery::gvk::GroupVersionKind;
use portico_machinery::protobuf::seal;
use portico_machinery::{Object, field};

use crate::decode::{self, DecodeError, Decoded, Format};
use crate::merge::{self, PatchError};
use crate::model::{FieldType, Type, TypeId, TypeSet};
use crate::{default, normalise, protobuf, validate};

/// The schema of an object. Cheap to clone.
#[derive(Clone)]
pub struct Schema {
    types: Arc<TypeSet>,
    root: TypeId,
}

impl Schema {
    /// A type of this set as root.
    #[must_use]
    pub fn new(types: Arc<TypeSet>, root: TypeId) -> Self {
        Self { types, root }
    }

    /// A type of this set by name.
    #[must_use]
    pub fn named(types: &Arc<TypeSet>, name: &str) -> Option<Self> {
        Some(Self::new(types.clone(), types.id(name)?))
    }

    /// The struct that a field of the root holds, as a schema of its own.
    #[must_use]
    pub fn of_field(&self, name: &str) -> Option<Self> {
        match self.root().field(name)?.ty {
            FieldType::Ref(id) => Some(Self::new(self.types.clone(), id)),
            _ => None,
        }
    }

    /// The set that the root and all types below it live in: what discovery and OpenAPI walk.
    #[must_use]
    pub fn types(&self) -> &Arc<TypeSet> {
        &self.types
    }

    /// The root type's place in the set.
    #[must_use]
    pub fn root_id(&self) -> TypeId {
        self.root
    }

    /// The root type.
    #[must_use]
    pub fn root(&self) -> &Type {
        self.types.get(self.root)
    }

    /// Decodes a request body that should hold an `expected` object: an absent `kind` or `apiVersion` is filled in, a
    /// different one is refused. Unknown and duplicate fields are dropped and named in [`Decoded::strict`]; nulls are
    /// dropped; key order is kept.
    ///
    /// # Errors
    /// [`DecodeError`]; [`DecodeError::status`] is the answer for it.
    pub fn decode(
        &self,
        body: &[u8],
        format: Format,
        expected: &GroupVersionKind,
    ) -> Result<Decoded, DecodeError> {
        decode::object(self, body, format, expected)
    }

    /// Decodes options (DeleteOptions and the like) or other bodies whose `kind` and `apiVersion` are not looked at.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode_untagged(&self, body: &[u8], format: Format) -> Result<Decoded, DecodeError> {
        decode::untagged(self, body, format)
    }

    /// Runs an object that was put together elsewhere (a patch's result) through the decoder: what does not fit the
    /// types is refused, what is unknown is dropped and named.
    ///
    /// # Errors
    /// [`DecodeError`]; after a patch, [`DecodeError::patch_status`] is the answer for it.
    pub fn retype(&self, object: &Object, expected: &GroupVersionKind) -> Result<Decoded, DecodeError> {
        decode::object(self, &object.to_json(), Format::Json, expected)
    }

    /// The object as a protobuf message, without an envelope; `kind` and `apiVersion` are the envelope's. What does not
    /// fit the types is left out.
    #[must_use]
    pub fn to_protobuf(&self, object: &Object) -> Vec<u8> {
        protobuf::message(&self.types, self.root(), object.map())
    }

    /// The object in its envelope, which says of what kind it is.
    #[must_use]
    pub fn to_sealed_protobuf(&self, object: &Object) -> Vec<u8> {
        seal(object.api_version(), object.kind(), &self.to_protobuf(object))
    }

    /// Sets the static defaults of absent fields, inside what is there.
    pub fn default(&self, object: &mut Object) {
        default::object(self, object);
    }

    /// Brings an object into canonical form: fields in wire order, zero values dropped or kept by each field's emit
    /// rule, structs that are always printed made, map keys sorted, times canonical. Idempotent; to be done last,
    /// before encoding.
    pub fn normalise(&self, object: &mut Object) {
        normalise::object(self, object);
    }

    /// The rules that the data states of single fields: enumerations, ranges, what must not be empty. Requiredness in
    /// the OpenAPI sense is not checked here, as upstream's typed decoding does not.
    #[must_use]
    pub fn validate(&self, object: &Object) -> Vec<field::Error> {
        validate::object(self, object)
    }

    /// The rules that the data states of changes: immutable fields.
    #[must_use]
    pub fn validate_update(&self, new: &Object, old: &Object) -> Vec<field::Error> {
        validate::update(self, new, old)
    }

    /// Applies a strategic merge patch (JSON or, as upstream takes it, YAML) to an object of this schema.
    ///
    /// # Errors
    /// [`PatchError`]; [`PatchError::status`] is the answer for it.
    pub fn strategic_merge(&self, current: &Object, patch: &[u8]) -> Result<Object, PatchError> {
        merge::strategic(self, current, patch)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.root().name).finish()
    }
}
