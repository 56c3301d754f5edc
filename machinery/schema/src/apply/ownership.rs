//! Field ownership of an object.

use std::collections::BTreeMap;

use crate::fields::FieldSet;

/// Fields that one manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedFields {
    pub set: FieldSet,
    /// `apiVersion` in which the fields are named.
    pub version: Box<str>,
    /// True if the fields were applied, false if they were updated.
    pub applied: bool,
}

/// Fields of all managers of an object.
pub type FieldOwners<K> = BTreeMap<K, OwnedFields>;
