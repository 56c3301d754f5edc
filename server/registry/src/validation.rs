//! Validation that kinds share: metadata (rules 6.3), and values that occur in several kinds.

pub(crate) mod checks;
mod metadata;
pub(crate) mod ranges;
pub(crate) mod values;

pub(crate) use metadata::{
    MetaRules, validate_create, validate_labels, validate_standard_finalizers, validate_update,
};
