//! Schema of the objects of one kind in one version, and all operations that follow it.
//!
//! There are two dialects: a type of a set describes a built-in kind, a structural schema describes a custom resource. Users
//! of a [`Schema`] need not know the dialect; features that only types have (OpenAPI, protobuf) use [`Schema::typed`].

use std::fmt;
use std::sync::Arc;

use portico_machinery::gvk::GroupVersionKind;
use portico_machinery::protobuf::encode_envelope;
use portico_machinery::{Object, field};

use crate::decode::{self, DecodeError, Decoded, Format};
use crate::merge::{self, PatchError};
use crate::model::{TypeId, TypeSet};
use crate::structural::{CompileError, CustomResource, ObjectSource, Structural};
use crate::typed::Typed;
use crate::{default, equality, expression_type, normalize, protobuf, validate};

/// The schema of an object. Cheap to clone.
#[derive(Clone)]
pub struct Schema(Dialect);

#[derive(Clone)]
enum Dialect {
    Typed(Typed),
    Structural(Arc<CustomResource>),
}

impl Schema {
    /// Creates a schema whose root is a type of this set.
    #[must_use]
    pub fn new(types: Arc<TypeSet>, root: TypeId) -> Self {
        Self(Dialect::Typed(Typed::new(types, root)))
    }

    /// Creates a schema whose root is the type of this name. Returns `None` if the set has no such type.
    #[must_use]
    pub fn named(types: &Arc<TypeSet>, name: &str) -> Option<Self> {
        Some(Self::new(types.clone(), types.id(name)?))
    }

    /// Creates the schema of a custom resource. `object_meta` is the typed schema of `ObjectMeta`, which describes `metadata`
    /// of the root and of embedded resources.
    #[must_use]
    pub fn structural(schema: Arc<Structural>, object_meta: Typed) -> Self {
        Self::structural_lazy(move || Ok(schema), object_meta)
    }

    /// Creates the schema of a custom resource, compiled at the first use: a kind that is only listed, discovered or watched
    /// is never compiled. [`CustomResource::check`] reports the error of the compilation.
    #[must_use]
    pub fn structural_lazy(
        compile: impl FnOnce() -> Result<Arc<Structural>, CompileError> + Send + Sync + 'static,
        object_meta: Typed,
    ) -> Self {
        Self(Dialect::Structural(Arc::new(CustomResource::new(Box::new(compile), object_meta))))
    }

    /// Returns the type and its set, or `None` for a custom resource.
    #[must_use]
    pub fn typed(&self) -> Option<&Typed> {
        match &self.0 {
            Dialect::Typed(typed) => Some(typed),
            Dialect::Structural(_) => None,
        }
    }

    /// Returns the structural schema and its settings, or `None` for a built-in kind.
    #[must_use]
    pub fn custom(&self) -> Option<&CustomResource> {
        match &self.0 {
            Dialect::Typed(_) => None,
            Dialect::Structural(custom) => Some(custom),
        }
    }

    /// Returns the set that contains the types of this schema; for a custom resource, the types of its metadata.
    pub(crate) fn types_in_use(&self) -> &TypeSet {
        match &self.0 {
            Dialect::Typed(typed) => typed.types(),
            Dialect::Structural(custom) => custom.object_meta().types(),
        }
    }

    /// Returns the schema of a struct field of the root. For a custom resource, only `metadata` has one.
    #[must_use]
    pub fn field_schema(&self, name: &str) -> Option<Self> {
        let typed = match &self.0 {
            Dialect::Typed(typed) => typed.field_schema(name),
            Dialect::Structural(custom) => (name == "metadata").then(|| custom.object_meta().clone()),
        };
        typed.map(|typed| Self(Dialect::Typed(typed)))
    }

    /// Returns the type of a whole object, named `name`, for the expression checker. Returns `None` if expressions cannot
    /// access the object.
    #[must_use]
    pub fn expression_type(&self, name: &str) -> Option<portico_cel::Type> {
        match &self.0 {
            Dialect::Typed(typed) => Some(expression_type::of_struct(typed, name)),
            Dialect::Structural(custom) => {
                let declared = custom.declared_type()?;
                Some(expression_type::of_custom(declared, custom.object_meta(), name))
            }
        }
    }

    /// Decodes a request body that should contain an `expected` object. An absent `kind` or `apiVersion` is filled in; a
    /// different one is an error (except the kind of a custom resource, which validation checks). Unknown and duplicate fields
    /// are dropped and listed in [`Decoded::strict`]; nulls are dropped unless the schema allows them; key order is kept.
    /// Custom resources also get their defaults.
    ///
    /// # Errors
    /// [`DecodeError`]; [`DecodeError::status`] is the response for it.
    pub fn decode(
        &self,
        body: &[u8],
        format: Format,
        expected: &GroupVersionKind,
    ) -> Result<Decoded, DecodeError> {
        let decoded = match &self.0 {
            Dialect::Typed(typed) => decode::decode_object(typed, body, format, expected),
            Dialect::Structural(custom) => custom.decode(body, format, expected),
        };
        decoded.map(|decoded| decode::reword_diagnostics(body, format, decoded))
    }

    /// Decodes options (DeleteOptions and similar) or other bodies whose `kind` and `apiVersion` are ignored.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode_untagged(&self, body: &[u8], format: Format) -> Result<Decoded, DecodeError> {
        let decoded = match &self.0 {
            Dialect::Typed(typed) => decode::decode_untagged(typed, body, format),
            Dialect::Structural(custom) => custom.decode_untagged(body, format),
        };
        decoded.map(|decoded| decode::reword_diagnostics(body, format, decoded))
    }

    /// Decodes an object that the server assembled (the result of a patch): values of a wrong type are an error, unknown
    /// fields are dropped and listed.
    ///
    /// # Errors
    /// [`DecodeError`]; after a patch, [`DecodeError::patch_status`] is the response for it.
    pub fn retype(&self, object: &Object, expected: &GroupVersionKind) -> Result<Decoded, DecodeError> {
        match &self.0 {
            Dialect::Typed(typed) => decode::decode_object(typed, &object.to_json(), Format::Json, expected),
            Dialect::Structural(custom) => custom.retype(object.clone(), expected, ObjectSource::Patch),
        }
    }

    /// Decodes the result of an applied configuration or of a strategic merge patch. Unlike [`Self::retype`], follows upstream's
    /// conversion from maps instead of JSON, which accepts a little more. Nulls of a custom resource are kept, and validation
    /// rejects them.
    ///
    /// # Errors
    /// [`DecodeError`], for built-in kinds [`DecodeError::Unconvertible`].
    pub fn convert(&self, object: Object, expected: &GroupVersionKind) -> Result<Decoded, DecodeError> {
        match &self.0 {
            Dialect::Typed(typed) => {
                decode::convert(typed, object, expected).map_err(DecodeError::Unconvertible)
            }
            Dialect::Structural(custom) => custom.retype(object, expected, ObjectSource::Configuration),
        }
    }

    /// Encodes the object as a protobuf message without an envelope; `kind` and `apiVersion` belong to the envelope. Values
    /// that do not match their types are omitted. A custom resource has no protobuf form, and its message is empty (content
    /// negotiation has already answered such requests with 406).
    #[must_use]
    pub fn to_protobuf(&self, object: &Object) -> Vec<u8> {
        let message = |typed: &Typed| protobuf::encode_message(typed.types(), typed.root(), object.map());
        self.typed().map(message).unwrap_or_default()
    }

    /// Encodes the object as a protobuf message in an envelope, which contains the kind and `apiVersion`.
    #[must_use]
    pub fn to_enveloped_protobuf(&self, object: &Object) -> Vec<u8> {
        encode_envelope(object.api_version(), object.kind(), &self.to_protobuf(object))
    }

    /// Sets the static defaults of absent fields, including fields of nested values that are present.
    pub fn default(&self, object: &mut Object) {
        match &self.0 {
            Dialect::Typed(typed) => default::default_object(typed, object),
            Dialect::Structural(custom) => {
                custom.default(object);
            }
        }
    }

    /// Converts numbers with a zero fraction to integers, as storage reads them back. Before that, a custom resource is
    /// validated with the floats that the client sent.
    pub fn floats_to_integers(&self, object: &mut Object) {
        if let Dialect::Structural(_) = &self.0 {
            CustomResource::floats_to_integers(object);
        }
    }

    /// Converts an object to canonical form; the last step before encoding. Idempotent. A built-in kind gets its fields in wire
    /// order, zero values dropped or kept according to the emit rule of each field, structs that are always printed, sorted map
    /// keys and canonical times. A custom resource gets sorted keys, and its metadata is normalized like that of built-in kinds.
    pub fn normalize(&self, object: &mut Object) {
        match &self.0 {
            Dialect::Typed(typed) => normalize::normalize_object(typed, object),
            Dialect::Structural(custom) => custom.normalize(object),
        }
    }

    /// True if both objects have equal values at a path. Quantities of built-in kinds are compared by amount, not by spelling.
    /// Both objects must be in canonical form.
    #[must_use]
    pub fn is_semantically_equal(&self, path: &[&str], new: &Object, old: &Object) -> bool {
        self.typed().is_some_and(|typed| equality::is_semantically_equal(typed, path, new, old))
    }

    /// Adapts a stored object to the current schema, as upstream does at each read: drops unknown fields, nulls that are not
    /// allowed and members of metadata that cannot be read from a custom resource, and sets defaults. Returns true if the
    /// object changed. Idempotent; does not change built-in kinds.
    pub fn coerce_and_default(&self, object: &mut Object) -> bool {
        self.custom().is_some_and(|custom| custom.coerce_and_default(object))
    }

    /// Same as [`Self::coerce_and_default`] without the defaults. Upstream does this with an object that was converted to the
    /// version of this schema.
    pub fn coerce(&self, object: &mut Object) -> bool {
        self.custom().is_some_and(|custom| custom.coerce(object))
    }

    /// True if [`Self::coerce_and_default`] would not change a stored object with these bytes. Cheaper than decoding it.
    #[must_use]
    pub fn is_coerced_and_defaulted(&self, json: &[u8]) -> bool {
        self.custom().is_none_or(|custom| custom.is_coerced_and_defaulted(json))
    }

    /// Checks the rules that the type descriptions state for single fields of a built-in kind: enumerations, ranges, non-empty
    /// values. Does not check OpenAPI's `required`, as upstream's typed decoding does not. Custom resources are validated
    /// through [`Self::custom`], one group of rules after the other, as in upstream's strategy for custom resources.
    #[must_use]
    pub fn validate(&self, object: &Object) -> Vec<field::Error> {
        self.typed().map(|typed| validate::validate_object(typed, object)).unwrap_or_default()
    }

    /// Checks the rules that the type descriptions state for updates of a built-in kind: immutable fields.
    #[must_use]
    pub fn validate_update(&self, new: &Object, old: &Object) -> Vec<field::Error> {
        self.typed().map(|typed| validate::validate_update(typed, new, old)).unwrap_or_default()
    }

    /// Applies a strategic merge patch (JSON or, as in upstream, YAML) to an object of this schema.
    ///
    /// # Errors
    /// [`PatchError`]; [`PatchError::status`] is the response for it. Custom resources do not support such patches.
    pub fn strategic_merge(&self, current: &Object, patch: &[u8]) -> Result<Object, PatchError> {
        let untyped =
            || PatchError::Malformed("custom resources do not support strategic merge patches".to_owned());
        merge::strategic_merge(self.typed().ok_or_else(untyped)?, current, patch)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Dialect::Typed(typed) => f.debug_tuple("Schema").field(&typed.root().name).finish(),
            Dialect::Structural(_) => f.debug_tuple("Schema").field(&"structural").finish(),
        }
    }
}
