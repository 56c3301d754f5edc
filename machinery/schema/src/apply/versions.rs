//! Versions of a kind, and views of objects in one of them.

use std::borrow::Cow;

use portico_machinery::Object;

use super::filter::FieldFilter;
use super::set_types;
use crate::fields::FieldSet;
use crate::schema::Schema;

pub trait Versions {
    /// Returns the schema of a version, or `None` if it does not exist.
    fn schema(&self, version: &str) -> Option<&Schema>;

    /// Converts an object from one version to another.
    ///
    /// # Errors
    /// [`ConversionError`].
    fn convert(&self, object: &Object, from: &str, to: &str) -> Result<Object, ConversionError>;

    /// Returns the filter of the fields that a write in this version can own.
    fn filter(&self, version: &str) -> &FieldFilter;
}

/// Reason why an object is not available in another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversionError {
    /// The version no longer exists: its managers are dropped.
    VersionRemoved,
    /// The conversion has been requested. The caller retries when the result is known.
    Pending,
    /// The object cannot be converted, or does not match the version.
    Failed(String),
}

impl ConversionError {
    /// Adds the step during which the conversion failed.
    pub(super) fn with_context(self, context: &str) -> Self {
        match self {
            Self::Failed(text) => Self::Failed(format!("{context}: {text}")),
            other => other,
        }
    }
}

/// Version of objects, with its schema.
#[derive(Clone, Copy)]
pub(super) struct VersionView<'a> {
    versions: &'a dyn Versions,
    pub(super) version: &'a str,
    pub(super) schema: &'a Schema,
}

impl<'a> VersionView<'a> {
    pub(super) fn new(versions: &'a dyn Versions, version: &'a str) -> Result<Self, ConversionError> {
        let schema = versions.schema(version).ok_or(ConversionError::VersionRemoved)?;
        Ok(Self { versions, version, schema })
    }

    /// Returns the view of another version.
    pub(super) fn in_version(&self, version: &'a str) -> Result<Self, ConversionError> {
        Self::new(self.versions, version)
    }

    /// Returns the fields that pass the filter of the version.
    pub(super) fn filter_set(&self, set: FieldSet) -> FieldSet {
        self.versions.filter(self.version).apply(set)
    }

    /// Returns the set with declared fields as members.
    pub(super) fn with_named_fields(&self, set: &FieldSet) -> FieldSet {
        set_types::with_named_fields(self.schema.types_in_use(), self.schema.shape(), set)
    }

    /// Converts the set to the current types. Returns `None` if it already matches them.
    pub(super) fn reconcile_atomics(&self, set: &FieldSet) -> Option<FieldSet> {
        let (types, shape) = (self.schema.types_in_use(), self.schema.shape());
        (!set_types::matches_atomics(types, shape, set))
            .then(|| set_types::reconcile_atomics(types, shape, set))
    }

    /// Converts an object to another version, and returns that version. The result is checked against its schema.
    pub(super) fn convert<'o>(
        &self,
        object: &'o Object,
        to: &'a str,
    ) -> Result<(Cow<'o, Object>, Self), ConversionError> {
        if to == self.version {
            return Ok((Cow::Borrowed(object), *self));
        }
        let converted = self.versions.convert(object, self.version, to)?;
        let view = self.in_version(to)?;
        view.schema
            .check_applied(&converted)
            .map_err(|mismatches| ConversionError::Failed(mismatches.to_string()))?;
        Ok((Cow::Owned(converted), view))
    }

    /// Returns `pruned` with the fields of `merged` that are in `owned`.
    pub(super) fn restore_owned(&self, merged: &Object, pruned: &Object, owned: &FieldSet) -> Object {
        let kept_fields =
            self.with_named_fields(&self.schema.fields_of(pruned)).union(&self.with_named_fields(owned));
        self.schema.without_fields(
            merged,
            &self.with_named_fields(&self.schema.fields_of(merged)).difference(&kept_fields),
        )
    }
}
