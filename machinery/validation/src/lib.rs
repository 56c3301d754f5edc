//! Validation and defaulting shared by kinds: metadata (upstream's `ValidateObjectMetaAccessor`), common values, and pod specs.
//!
//! Performs no I/O: input are objects, output are field errors. Does not depend on a kind, a request or the store.

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
    MetaRules, validate_annotations, validate_common_update, validate_create, validate_labels,
    validate_object_meta_update, validate_standard_finalizers, validate_update,
};

/// List of field errors, in upstream's order.
pub type Errors = Vec<portico_machinery::field::Error>;
