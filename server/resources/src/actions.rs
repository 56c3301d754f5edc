//! Actions: POST requests that do not store an object of their kind (reviews, bindings, evictions).

pub(crate) mod access_review;
pub(crate) mod binding;
pub(crate) mod eviction;
pub(crate) mod rules_review;
