//! Server-side apply: who owns which fields of an object, and what an update or an applied configuration changes in that.
//!
//! Structured-merge-diff's algorithm over the types of a [`TypeSet`](crate::TypeSet). Objects are JSON maps; who a manager is, times and
//! the form of `managedFields` belong to the caller.

mod along;
mod atomics;
mod check;
mod compare;
mod filter;
mod item;
mod merge;
mod misfit;
mod owned;
mod owners;
mod printed;
mod prune;
mod reading;
mod remove;
mod shape;
mod to_set;
mod versions;
mod view;

pub use compare::Comparison;
pub use filter::Filter;
pub use misfit::{Misfits, TypeMismatch};
pub use owned::{Owned, Owners};
pub use owners::{Conflicts, Failure, apply, update};
pub use versions::{Unconverted, Versions};

use portico_machinery::Object;

use self::check::Duplicates;
use self::reading::Reading;
use crate::decode::{DecodeError, Decoded, Format};
use crate::fields::Set;
use crate::schema::Schema;

impl Schema {
    fn shape(&self) -> shape::Map<'_> {
        match self.custom() {
            Some(custom) => shape::custom(custom),
            None => self.typed().map_or(shape::Map::DEDUCED, |typed| shape::structure(typed.root(), None)),
        }
    }

    /// How objects are read. Custom resources print what stands in them.
    fn reading(&self, typed: Reading) -> Reading {
        if self.custom().is_some() { Reading::Whole } else { typed }
    }

    /// What differs between two typed objects of this schema; the new one need not be normalized.
    ///
    /// # Errors
    /// [`TypeMismatch`].
    pub fn compare(&self, old: &Object, new: &Object) -> Result<Comparison, TypeMismatch> {
        compare::objects(
            self.types_in_use(),
            self.shape(),
            old.map(),
            new.map(),
            self.reading(Reading::Typed),
        )
    }

    /// What differs between two objects as they stand there.
    ///
    /// # Errors
    /// [`TypeMismatch`].
    pub fn compare_raw(&self, old: &Object, new: &Object) -> Result<Comparison, TypeMismatch> {
        compare::objects(self.types_in_use(), self.shape(), old.map(), new.map(), self.reading(Reading::Raw))
    }

    /// Whether a configuration can be applied: no unknown fields, no element of a list without its keys or twice.
    ///
    /// # Errors
    /// [`Misfits`], in the order in which they stand there.
    pub fn check_applied(&self, config: &Object) -> Result<(), Misfits> {
        check::object(self.types_in_use(), self.shape(), config.map(), Duplicates::Refused)
    }

    /// Whether a state of an object fits its types: as [`Self::check_applied`], but elements of a list may stand there
    /// twice. Objects of built-in kinds were decoded along their types.
    ///
    /// # Errors
    /// [`Misfits`].
    pub fn check_state(&self, object: &Object) -> Result<(), Misfits> {
        match self.custom() {
            Some(_) => check::object(self.types_in_use(), self.shape(), object.map(), Duplicates::Allowed),
            None => Ok(()),
        }
    }

    /// The fields that a configuration names.
    #[must_use]
    pub fn fields_of(&self, config: &Object) -> Set {
        to_set::object(self.types_in_use(), self.shape(), config.map())
    }

    /// Paths of lists and maps in a configuration that are applied as a whole.
    #[must_use]
    pub fn atomics_of(&self, config: &Object) -> Vec<String> {
        atomics::object(self.types_in_use(), self.shape(), config.map())
    }

    /// A configuration merged into an object; nothing is removed.
    ///
    /// # Errors
    /// [`TypeMismatch`].
    pub fn merge_applied(&self, live: &Object, config: &Object) -> Result<Object, TypeMismatch> {
        let merged = merge::objects(self.types_in_use(), self.shape(), live.map(), config.map())?;
        Ok(Object::from_map(merged))
    }

    /// The object without these fields.
    #[must_use]
    pub fn without(&self, object: &Object, gone: &Set) -> Object {
        Object::from_map(remove::object(self.types_in_use(), self.shape(), object.map(), gone))
    }

    /// Reads an applied configuration, JSON or YAML, as it stands there: unknown fields and nulls are kept. Beside it
    /// the typed reading, whose strict diagnostics count.
    ///
    /// # Errors
    /// [`DecodeError`] when it is neither JSON nor YAML, or no object.
    pub fn read_applied(&self, body: &[u8]) -> Result<(Object, Decoded), DecodeError> {
        let raw = crate::decode::configuration(body)?;
        // What does not fit the types is refused by the check or by the typed reading of the merged object.
        let typed = self.decode_untagged(body, Format::Yaml).unwrap_or_default();
        Ok((raw, typed))
    }
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "apply_custom_tests.rs"]
mod custom_tests;
