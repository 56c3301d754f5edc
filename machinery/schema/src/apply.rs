//! Server-side apply: field ownership of an object, and the changes to it by updates and applied configurations.
//!
//! The algorithm of structured-merge-diff, based on the types of a [`TypeSet`](crate::TypeSet). Objects are JSON maps. Identities
//! of managers, times and the form of `managedFields` are the caller's.

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

    /// Returns the read mode. Custom resources are always compared with the values that they contain.
    fn reading(&self, typed: Reading) -> Reading {
        if self.custom().is_some() { Reading::Whole } else { typed }
    }

    /// Compares two typed objects of this schema; the new one need not be normalized.
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

    /// Compares two objects by the values that they contain.
    ///
    /// # Errors
    /// [`TypeMismatch`].
    pub fn compare_raw(&self, old: &Object, new: &Object) -> Result<Comparison, TypeMismatch> {
        compare::objects(self.types_in_use(), self.shape(), old.map(), new.map(), self.reading(Reading::Raw))
    }

    /// Checks that a configuration can be applied: no unknown fields, no list element without keys, and no duplicate elements.
    ///
    /// # Errors
    /// [`TypeMismatches`], in document order.
    pub fn check_applied(&self, config: &Object) -> Result<(), Misfits> {
        check::object(self.types_in_use(), self.shape(), config.map(), Duplicates::Refused)
    }

    /// Checks that a state of an object matches its types. Same as [`Self::check_applied`], but allows duplicate list elements.
    /// Objects of built-in kinds have been decoded according to their types and are not checked.
    ///
    /// # Errors
    /// [`TypeMismatches`].
    pub fn check_state(&self, object: &Object) -> Result<(), Misfits> {
        match self.custom() {
            Some(_) => check::object(self.types_in_use(), self.shape(), object.map(), Duplicates::Allowed),
            None => Ok(()),
        }
    }

    /// Returns the fields that a configuration contains.
    #[must_use]
    pub fn fields_of(&self, config: &Object) -> Set {
        to_set::object(self.types_in_use(), self.shape(), config.map())
    }

    /// Returns the paths of lists and maps in a configuration that are applied as a whole.
    #[must_use]
    pub fn atomics_of(&self, config: &Object) -> Vec<String> {
        atomics::object(self.types_in_use(), self.shape(), config.map())
    }

    /// Merges a configuration into an object. Does not remove fields.
    ///
    /// # Errors
    /// [`TypeMismatch`].
    pub fn merge_applied(&self, live: &Object, config: &Object) -> Result<Object, TypeMismatch> {
        let merged = merge::objects(self.types_in_use(), self.shape(), live.map(), config.map())?;
        Ok(Object::from_map(merged))
    }

    /// Returns the object without these fields.
    #[must_use]
    pub fn without(&self, object: &Object, gone: &Set) -> Object {
        Object::from_map(remove::object(self.types_in_use(), self.shape(), object.map(), gone))
    }

    /// Parses an applied configuration, JSON or YAML, with its unknown fields and nulls. Also returns the typed decoding for its
    /// strict errors.
    ///
    /// # Errors
    /// [`DecodeError`] if it is neither JSON nor YAML, or not an object.
    pub fn read_applied(&self, body: &[u8]) -> Result<(Object, Decoded), DecodeError> {
        let raw = crate::decode::configuration(body)?;
        // Type errors are reported by `check_applied` or when the merged object is decoded.
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
