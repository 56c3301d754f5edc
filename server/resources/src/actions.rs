//! What a POST does that keeps no object of its own kind: reviews, bindings, evictions, tokens.

pub(crate) mod access_review;
pub(crate) mod binding;
pub(crate) mod eviction;
pub(crate) mod rules_review;
