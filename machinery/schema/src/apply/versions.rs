//! Versions of a kind, and views of objects in one of them.

use std::borrow::Cow;

use portico_machinery::Object;

use super::along;
use super::filter::Filter;
use crate::fields::Set;
use crate::schema::Schema;

pub trait Versions {
    /// Returns the schema of a version, or `None` if it does not exist.
    fn schema(&self, version: &str) -> Option<&Schema>;

    /// Converts an object from one version to another.
    ///
    /// # Errors
    /// [`ConversionError`].
    fn convert(&self, object: &Object, from: &str, to: &str) -> Result<Object, Unconverted>;

    /// Returns the filter of the fields that a write in this version can own.
    fn filter(&self, version: &str) -> &Filter;
}

/// Reason why an object is not available in another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unconverted {
    /// The version no longer exists: its managers are dropped.
    Gone,
    /// The conversion has been requested. The caller retries when the result is known.
    Pending,
    /// The object cannot be converted, or does not match the version.
    Failed(String),
}

impl Unconverted {
    /// Adds the step during which the conversion failed.
    pub(super) fn during(self, what: &str) -> Self {
        match self {
            Self::Failed(text) => Self::Failed(format!("{what}: {text}")),
            other => other,
        }
    }
}

/// Version of objects, with its schema.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    versions: &'a dyn Versions,
    pub(super) version: &'a str,
    pub(super) schema: &'a Schema,
}

impl<'a> At<'a> {
    pub(super) fn new(versions: &'a dyn Versions, version: &'a str) -> Result<Self, Unconverted> {
        let schema = versions.schema(version).ok_or(Unconverted::Gone)?;
        Ok(Self { versions, version, schema })
    }

    /// Returns the view of another version.
    pub(super) fn of(&self, version: &'a str) -> Result<Self, Unconverted> {
        Self::new(self.versions, version)
    }

    /// Returns the fields that pass the filter of the version.
    pub(super) fn filtered(&self, set: Set) -> Set {
        self.versions.filter(self.version).of(set)
    }

    /// Returns the set with declared fields as members.
    pub(super) fn named(&self, set: &Set) -> Set {
        along::with_named_fields(self.schema.types_in_use(), self.schema.shape(), set)
    }

    /// Converts the set to the current types. Returns `None` if it already matches them.
    pub(super) fn reconciled(&self, set: &Set) -> Option<Set> {
        let (types, shape) = (self.schema.types_in_use(), self.schema.shape());
        (!along::fits(types, shape, set)).then(|| along::reconciled(types, shape, set))
    }

    /// Converts an object to another version, and returns that version. The result is checked against its schema.
    pub(super) fn convert<'o>(
        &self,
        object: &'o Object,
        to: &'a str,
    ) -> Result<(Cow<'o, Object>, Self), Unconverted> {
        if to == self.version {
            return Ok((Cow::Borrowed(object), *self));
        }
        let converted = self.versions.convert(object, self.version, to)?;
        let there = self.of(to)?;
        there.schema.check_applied(&converted).map_err(|misfits| Unconverted::Failed(misfits.to_string()))?;
        Ok((Cow::Owned(converted), there))
    }

    /// Returns `pruned` with the fields of `merged` that are in `owned`.
    pub(super) fn restored(&self, merged: &Object, pruned: &Object, owned: &Set) -> Object {
        let kept = self.named(&self.schema.fields_of(pruned)).union(&self.named(owned));
        self.schema.without(merged, &self.named(&self.schema.fields_of(merged)).difference(&kept))
    }
}
