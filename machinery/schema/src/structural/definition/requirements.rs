//! Requirements of a schema.

/// Requirements of a schema. Updates of old definitions may keep violations that were accepted before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirements {
    /// The schema must be structural.
    pub structural: bool,
    /// Types must be types of OpenAPI v3.
    pub known_types: bool,
    /// Defaults must not contain fields that the schema does not specify.
    pub pruned_defaults: bool,
    /// Items of sets must be atomic.
    pub atomic_sets: bool,
    /// Items of sets and maps must not be nullable; keys of maps must be required or have a default.
    pub strict_keys: bool,
    /// The definition has a status subresource, which validates `properties.status` on its own.
    pub has_status: bool,
    /// The schema is unchanged: cost limits of single rules are not checked again.
    pub is_unchanged: bool,
}

impl Requirements {
    /// Requirements of a new definition without a status subresource.
    pub const NEW_DEFINITION: Self = Self {
        structural: true,
        known_types: true,
        pruned_defaults: true,
        atomic_sets: true,
        strict_keys: true,
        has_status: false,
        is_unchanged: false,
    };
}
