//! Validation that kinds share: metadata (`ValidateObjectMetaAccessor` upstream), and values that occur in several kinds.

pub(crate) mod checks;
mod conditions;
pub(crate) mod counts;
mod label_selector;
mod metadata;
pub(crate) mod node_labels;
pub(crate) mod node_selector;
pub(crate) mod paths;
pub(crate) mod pem;
pub(crate) mod ranges;
pub(crate) mod tolerations;
pub(crate) mod values;
pub(crate) mod webhook;

pub(crate) use conditions::validate_conditions;
pub(crate) use label_selector::label_selector;
pub(crate) use metadata::{
    MetaRules, validate_annotations, validate_any_update, validate_create, validate_labels,
    validate_own_update, validate_standard_finalizers, validate_update,
};
