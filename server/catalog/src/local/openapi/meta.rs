//! Prefix of the names of `meta/v1` types.

/// Prefix of the names of `meta/v1` types.
pub(crate) const META_PREFIX: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
