//! A schema: what an object of one version of one kind may hold, and everything that walking it can do.
//!
//! Two dialects: built-in kinds are described by a type of a set, custom resources by a structural schema. Who holds a
//! [`Schema`] need not know which; what only types contain (OpenAPI, protobuf) asks for [`Schema::typed`].

use std::fmt;
use std::sync::Arc;

use portico_machinery::gvk::GroupVersionKind;
use portico_machinery::protobuf::seal;
use portico_machinery::{Object, field};

use crate::decode::{self, DecodeError, Decoded, Format};
use crate::merge::{self, PatchError};
use crate::model::{TypeId, TypeSet};
use crate::structural::{CompileError, CustomResource, Source, Structural};
use crate::typed::Typed;
use crate::{default, equality, expression_type, normalise, protobuf, validate};

/// The schema of an object. Cheap to clone.
#[derive(Clone)]
pub struct Schema(Dialect);

#[derive(Clone)]
enum Dialect {
    Typed(Typed),
    Structural(Arc<CustomResource>),
}

impl Schema {
    /// A type of this set as root.
    #[must_use]
    pub fn new(types: Arc<TypeSet>, root: TypeId) -> Self {
        Self(Dialect::Typed(Typed::new(types, root)))
    }

    /// A type of this set by name.
    #[must_use]
    pub fn named(types: &Arc<TypeSet>, name: &str) -> Option<Self> {
        Some(Self::new(types.clone(), types.id(name)?))
    }

    /// The schema of a custom resource. `object_meta` is the typed schema of `ObjectMeta`, which `metadata` follows at the
    /// root and in embedded resources.
    #[must_use]
    pub fn structural(schema: Arc<Structural>, object_meta: Typed) -> Self {
        Self::structural_on_use(move || Ok(schema), object_meta)
    }

    /// The same of a schema that is made when the first object is walked along it: a kind that is only listed, discovered
    /// or waited for takes none. Where it cannot be made, [`CustomResource::check`] says so.
    #[must_use]
    pub fn structural_on_use(
        compile: impl FnOnce() -> Result<Arc<Structural>, CompileError> + Send + Sync + 'static,
        object_meta: Typed,
    ) -> Self {
        Self(Dialect::Structural(Arc::new(CustomResource::new(Box::new(compile), object_meta))))
    }

    /// The type and its set; nothing for a custom resource.
    #[must_use]
    pub fn typed(&self) -> Option<&Typed> {
        match &self.0 {
            Dialect::Typed(typed) => Some(typed),
            Dialect::Structural(_) => None,
        }
    }

    /// The structural schema and what belongs to it; nothing for a built-in kind.
    #[must_use]
    pub fn custom(&self) -> Option<&CustomResource> {
        match &self.0 {
            Dialect::Typed(_) => None,
            Dialect::Structural(custom) => Some(custom),
        }
    }

    /// The set in which the types of this schema live; of a custom resource those of its metadata.
    pub(crate) fn types_in_use(&self) -> &TypeSet {
        match &self.0 {
            Dialect::Typed(typed) => typed.types(),
            Dialect::Structural(custom) => custom.object_meta().types(),
        }
    }

    /// The struct that a field of the root holds, as a schema of its own; of a custom resource only `metadata`.
    #[must_use]
    pub fn of_field(&self, name: &str) -> Option<Self> {
        let typed = match &self.0 {
            Dialect::Typed(typed) => typed.of_field(name),
            Dialect::Structural(custom) => (name == "metadata").then(|| custom.object_meta().clone()),
        };
        typed.map(|typed| Self(Dialect::Typed(typed)))
    }

    /// The type of a whole object for the checker of expressions, called `name`; nothing where expressions do not see it.
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

    /// Decodes a request body that should hold an `expected` object: an absent `kind` or `apiVersion` is filled in, a
    /// different one is refused (of a custom resource another kind is left for validation). Unknown and duplicate fields
    /// are dropped and named in [`Decoded::strict`]; nulls are dropped unless the schema allows them; key order is kept.
    /// Of a custom resource the defaults are set, too.
    ///
    /// # Errors
    /// [`DecodeError`]; [`DecodeError::status`] is the answer for it.
    pub fn decode(
        &self,
        body: &[u8],
        format: Format,
        expected: &GroupVersionKind,
    ) -> Result<Decoded, DecodeError> {
        let decoded = match &self.0 {
            Dialect::Typed(typed) => decode::object(typed, body, format, expected),
            Dialect::Structural(custom) => custom.decode(body, format, expected),
        };
        decoded.map(|decoded| decode::reported(body, format, decoded))
    }

    /// Decodes options (DeleteOptions and the like) or other bodies whose `kind` and `apiVersion` are not looked at.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode_untagged(&self, body: &[u8], format: Format) -> Result<Decoded, DecodeError> {
        let decoded = match &self.0 {
            Dialect::Typed(typed) => decode::untagged(typed, body, format),
            Dialect::Structural(custom) => custom.decode_untagged(body, format),
        };
        decoded.map(|decoded| decode::reported(body, format, decoded))
    }

    /// Runs an object that was put together elsewhere (a patch's result) through the decoder: what does not fit the
    /// types is refused, what is unknown is dropped and named.
    ///
    /// # Errors
    /// [`DecodeError`]; after a patch, [`DecodeError::patch_status`] is the answer for it.
    pub fn retype(&self, object: &Object, expected: &GroupVersionKind) -> Result<Decoded, DecodeError> {
        match &self.0 {
            Dialect::Typed(typed) => decode::object(typed, &object.to_json(), Format::Json, expected),
            Dialect::Structural(custom) => custom.retype(object.clone(), expected, Source::Patch),
        }
    }

    /// As [`Self::retype`] for what an applied configuration or a strategic merge patch made: upstream converts it from maps,
    /// not from JSON, and takes a little more. Nulls of a custom resource stay where they are, for validation to refuse.
    ///
    /// # Errors
    /// [`DecodeError`], for built-in kinds [`DecodeError::Unconvertible`].
    pub fn convert(&self, object: Object, expected: &GroupVersionKind) -> Result<Decoded, DecodeError> {
        match &self.0 {
            Dialect::Typed(typed) => {
                decode::convert(typed, object, expected).map_err(DecodeError::Unconvertible)
            }
            Dialect::Structural(custom) => custom.retype(object, expected, Source::Configuration),
        }
    }

    /// The object as a protobuf message, without an envelope; `kind` and `apiVersion` are the envelope's. What does not
    /// fit the types is left out. A custom resource has no such form (who asks for it is answered with 406 before): its
    /// message is empty.
    #[must_use]
    pub fn to_protobuf(&self, object: &Object) -> Vec<u8> {
        let message = |typed: &Typed| protobuf::message(typed.types(), typed.root(), object.map());
        self.typed().map(message).unwrap_or_default()
    }

    /// The object in its envelope, which says of what kind it is.
    #[must_use]
    pub fn to_sealed_protobuf(&self, object: &Object) -> Vec<u8> {
        seal(object.api_version(), object.kind(), &self.to_protobuf(object))
    }

    /// Sets the static defaults of absent fields, inside what is there.
    pub fn default(&self, object: &mut Object) {
        match &self.0 {
            Dialect::Typed(typed) => default::object(typed, object),
            Dialect::Structural(custom) => {
                custom.default(object);
            }
        }
    }

    /// Makes whole numbers of those that were written with a fraction of nothing, as storage reads them back. Until then
    /// a custom resource is validated with the floats that it was written with.
    pub fn whole_numbers(&self, object: &mut Object) {
        if let Dialect::Structural(_) = &self.0 {
            CustomResource::whole_numbers(object);
        }
    }

    /// Brings an object into canonical form, to be done last, before encoding; idempotent. A built-in kind: fields in wire
    /// order, zero values dropped or kept by each field's emit rule, structs that are always printed made, map keys
    /// sorted, times canonical. A custom resource: all keys sorted, its metadata as that of built-in kinds.
    pub fn normalise(&self, object: &mut Object) {
        match &self.0 {
            Dialect::Typed(typed) => normalise::object(typed, object),
            Dialect::Structural(custom) => custom.normalise(object),
        }
    }

    /// True if both objects have equal values at a path, where quantities of built-in kinds are equal by amount, however they
    /// are spelled. Both must be in canonical form.
    #[must_use]
    pub fn same_amounts(&self, path: &[&str], new: &Object, old: &Object) -> bool {
        self.typed().is_some_and(|typed| equality::same_amounts(typed, path, new, old))
    }

    /// Brings a stored object to what the schema is now, as upstream does at each read: of a custom resource what is
    /// unknown goes, as do nulls that are not allowed and members of metadata that cannot be read, and defaults are set.
    /// Whether anything changed. Idempotent; nothing is done to built-in kinds.
    pub fn settle(&self, object: &mut Object) -> bool {
        self.custom().is_some_and(|custom| custom.settle(object))
    }

    /// As [`Self::settle`], but no defaults are set: what upstream does with an object that was converted to the version of
    /// this schema.
    pub fn coerce(&self, object: &mut Object) -> bool {
        self.custom().is_some_and(|custom| custom.coerce(object))
    }

    /// Whether [`Self::settle`] would leave these bytes of a stored object alone; cheaper than decoding them.
    #[must_use]
    pub fn is_settled(&self, json: &[u8]) -> bool {
        self.custom().is_none_or(|custom| custom.is_settled(json))
    }

    /// The rules that the data states of single fields of a built-in kind: enumerations, ranges, what must not be empty.
    /// Requiredness in the OpenAPI sense is not checked here, as upstream's typed decoding does not. A custom resource is
    /// validated by what [`Self::custom`] offers, as upstream's strategy for them does it, one rule after the other.
    #[must_use]
    pub fn validate(&self, object: &Object) -> Vec<field::Error> {
        self.typed().map(|typed| validate::object(typed, object)).unwrap_or_default()
    }

    /// The rules that the data states of changes of a built-in kind: immutable fields.
    #[must_use]
    pub fn validate_update(&self, new: &Object, old: &Object) -> Vec<field::Error> {
        self.typed().map(|typed| validate::update(typed, new, old)).unwrap_or_default()
    }

    /// Applies a strategic merge patch (JSON or, as upstream takes it, YAML) to an object of this schema.
    ///
    /// # Errors
    /// [`PatchError`]; [`PatchError::status`] is the answer for it. A custom resource takes no such patch.
    pub fn strategic_merge(&self, current: &Object, patch: &[u8]) -> Result<Object, PatchError> {
        let untyped = || PatchError::Malformed("custom resources take no strategic merge patch".to_owned());
        merge::strategic(self.typed().ok_or_else(untyped)?, current, patch)
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
