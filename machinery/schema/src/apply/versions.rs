//! The versions of a kind, and an object in the version that it is written in.

use std::borrow::Cow;

use portico_machinery::Object;

use super::along;
use super::filter::Filter;
use crate::fields::Set;
use crate::schema::Schema;

/// The versions of a kind.
pub trait Versions {
    /// The schema of a version; nothing when it is not there.
    fn schema(&self, version: &str) -> Option<&Schema>;

    /// An object of one version in another.
    ///
    /// # Errors
    /// [`Unconverted`].
    fn convert(&self, object: &Object, from: &str, to: &str) -> Result<Object, Unconverted>;

    /// What a write of this version may make managers own.
    fn filter(&self, version: &str) -> &Filter;
}

/// Why an object is not there in another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unconverted {
    /// The version is not there any more: who wrote in it is forgotten.
    Gone,
    /// It was asked for. Whoever asked begins anew once it is known.
    Pending,
    /// It cannot be converted, or does not fit the version.
    Failed(String),
}

impl Unconverted {
    /// The same, with the step during which it failed.
    pub(super) fn during(self, what: &str) -> Self {
        match self {
            Self::Failed(text) => Self::Failed(format!("{what}: {text}")),
            other => other,
        }
    }
}

/// The version that objects are in.
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

    /// Another version.
    pub(super) fn of(&self, version: &'a str) -> Result<Self, Unconverted> {
        Self::new(self.versions, version)
    }

    /// What passes the filter of the version.
    pub(super) fn filtered(&self, set: Set) -> Set {
        self.versions.filter(self.version).of(set)
    }

    /// The set with named fields as members.
    pub(super) fn named(&self, set: &Set) -> Set {
        along::with_named_fields(self.schema.types_in_use(), self.schema.shape(), set)
    }

    /// The set as the types are now, when it does not fit them as it is.
    pub(super) fn reconciled(&self, set: &Set) -> Option<Set> {
        let (types, shape) = (self.schema.types_in_use(), self.schema.shape());
        (!along::fits(types, shape, set)).then(|| along::reconciled(types, shape, set))
    }

    /// The object in another version, and that version. What was converted has to fit.
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

    /// `pruned` with what `merged` has of the fields in `owned`.
    pub(super) fn restored(&self, merged: &Object, pruned: &Object, owned: &Set) -> Object {
        let kept = self.named(&self.schema.fields_of(pruned)).union(&self.named(owned));
        self.schema.without(merged, &self.named(&self.schema.fields_of(merged)).difference(&kept))
    }
}
