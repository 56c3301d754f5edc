//! Who owns what of an object.

use std::collections::BTreeMap;

use crate::fields::Set;

/// What a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The fields.
    pub set: Set,
    /// The `apiVersion` in which they are named.
    pub version: Box<str>,
    /// Whether they were applied, not updated.
    pub applied: bool,
}

/// All managers of an object.
pub type Owners<K> = BTreeMap<K, Owned>;
