//! Server-side apply: field ownership of an object, and the changes to it by updates and applied configurations.
//!
//! The algorithm of structured-merge-diff, based on the types of a [`TypeSet`](crate::TypeSet). Objects are JSON maps. Identities
//! of managers, times and the form of `managedFields` are the caller's.

mod atomics;
mod check;
mod compare;
mod filter;
mod item;
mod merge;
mod ownership;
mod printed;
mod prune;
mod reading;
mod remove;
mod set_types;
mod shape;
mod to_set;
mod type_mismatch;
mod updater;
mod versions;
mod view;

pub use compare::Comparison;
pub use filter::FieldFilter;
pub use ownership::{FieldOwners, OwnedFields};
pub use type_mismatch::{TypeMismatch, TypeMismatches};
pub use updater::{ApplyError, Conflicts, apply, update_owners};
pub use versions::{ConversionError, Versions};

use portico_machinery::Object;

use self::check::Duplicates;
use self::reading::ReadMode;
use crate::decode::{DecodeError, Decoded, Format};
use crate::fields::FieldSet;
use crate::schema::Schema;

impl Schema {
    fn shape(&self) -> shape::Map<'_> {
        match self.custom() {
            Some(custom) => shape::custom_resource_map(custom),
            None => self.typed().map_or(shape::Map::DEDUCED, |typed| shape::struct_map(typed.root(), None)),
        }
    }

    /// Returns the read mode. Custom resources are always compared with the values that they contain.
    fn read_mode(&self, typed: ReadMode) -> ReadMode {
        if self.custom().is_some() { ReadMode::RawWithNull } else { typed }
    }

    /// Compares two typed objects of this schema; the new one need not be normalized.
    ///
    /// # Errors
    /// [`TypeMismatch`].
    pub fn compare(&self, old: &Object, new: &Object) -> Result<Comparison, TypeMismatch> {
        compare::compare_objects(
            self.types_in_use(),
            self.shape(),
            old.map(),
            new.map(),
            self.read_mode(ReadMode::Typed),
        )
    }

    /// Compares two objects by the values that they contain.
    ///
    /// # Errors
    /// [`TypeMismatch`].
    pub fn compare_raw(&self, old: &Object, new: &Object) -> Result<Comparison, TypeMismatch> {
        compare::compare_objects(
            self.types_in_use(),
            self.shape(),
            old.map(),
            new.map(),
            self.read_mode(ReadMode::Raw),
        )
    }

    /// Checks that a configuration can be applied: no unknown fields, no list element without keys, and no duplicate elements.
    ///
    /// # Errors
    /// [`TypeMismatches`], in document order.
    pub fn check_applied(&self, config: &Object) -> Result<(), TypeMismatches> {
        check::check_object(self.types_in_use(), self.shape(), config.map(), Duplicates::Rejected)
    }

    /// Checks that a state of an object matches its types. Same as [`Self::check_applied`], but allows duplicate list elements.
    /// Objects of built-in kinds have been decoded according to their types and are not checked.
    ///
    /// # Errors
    /// [`TypeMismatches`].
    pub fn check_state(&self, object: &Object) -> Result<(), TypeMismatches> {
        match self.custom() {
            Some(_) => {
                check::check_object(self.types_in_use(), self.shape(), object.map(), Duplicates::Allowed)
            }
            None => Ok(()),
        }
    }

    /// Returns the fields that a configuration contains.
    #[must_use]
    pub fn fields_of(&self, config: &Object) -> FieldSet {
        to_set::set_of_object(self.types_in_use(), self.shape(), config.map())
    }

    /// Returns the paths of lists and maps in a configuration that are applied as a whole.
    #[must_use]
    pub fn atomics_of(&self, config: &Object) -> Vec<String> {
        atomics::find_atomics(self.types_in_use(), self.shape(), config.map())
    }

    /// Merges a configuration into an object. Does not remove fields.
    ///
    /// # Errors
    /// [`TypeMismatch`].
    pub fn merge_applied(&self, live: &Object, config: &Object) -> Result<Object, TypeMismatch> {
        let merged = merge::merge_objects(self.types_in_use(), self.shape(), live.map(), config.map())?;
        Ok(Object::from_map(merged))
    }

    /// Returns the object without these fields.
    #[must_use]
    pub fn without_fields(&self, object: &Object, removed: &FieldSet) -> Object {
        Object::from_map(remove::remove_fields(self.types_in_use(), self.shape(), object.map(), removed))
    }

    /// Parses an applied configuration, JSON or YAML, with its unknown fields and nulls. Also returns the typed decoding for its
    /// strict errors.
    ///
    /// # Errors
    /// [`DecodeError`] if it is neither JSON nor YAML, or not an object.
    pub fn read_applied(&self, body: &[u8]) -> Result<(Object, Decoded), DecodeError> {
        let raw = crate::decode::parse_configuration(body)?;
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
