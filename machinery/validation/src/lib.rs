//! Validation and defaulting that kinds share: metadata (upstream's `ValidateObjectMetaAccessor`), values that occur in
//! several kinds, and pod specs.
//!
//! Pure: objects in, field errors out. Knows no kind, no request and no store.

pub mod checks;
pub mod conditions;
pub mod counts;
pub mod label_selector;
pub mod metadata;
pub mod node_labels;
pub mod node_selector;
pub mod paths;
pub mod pem;
pub mod pod_spec;
pub mod ranges;
pub mod tolerations;
pub mod values;
pub mod volume_source;
pub mod webhook;

pub use conditions::validate_conditions;
pub use label_selector::label_selector;
pub use metadata::{
    MetaRules, validate_annotations, validate_any_update, validate_create, validate_labels,
    validate_own_update, validate_standard_finalizers, validate_update,
};

/// Field errors, collected in upstream's order.
pub type Errors = Vec<portico_machinery::field::Error>;
