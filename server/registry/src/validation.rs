//! Validation that kinds share: metadata (rules 6.3), and values that occur in several kinds.

mod metadata;
pub(crate) mod values;

pub(crate) use metadata::{
    MetaRules, validate_create, validate_labels, validate_standard_finalizers, validate_update,
};
