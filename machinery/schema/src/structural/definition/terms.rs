//! What is demanded of a schema.

/// What is demanded of a schema. Old definitions keep what was let through before (1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The schema must be structural.
    pub structural: bool,
    /// Types must be those of OpenAPI v3.
    pub known_types: bool,
    /// Defaults must hold nothing that the schema does not know.
    pub pruned_defaults: bool,
    /// Items of sets must be atomic.
    pub atomic_sets: bool,
    /// Items of sets and maps must not be nullable, keys of maps must be there.
    pub settled_keys: bool,
    /// A status subresource will validate `properties.status` alone.
    pub status: bool,
    /// The schema stays as it was: what a single rule may cost is not validated again.
    pub stays: bool,
}

impl Terms {
    /// Those of a new definition without a status subresource.
    pub const NEW: Self = Self {
        structural: true,
        known_types: true,
        pruned_defaults: true,
        atomic_sets: true,
        settled_keys: true,
        status: false,
        stays: false,
    };
}
