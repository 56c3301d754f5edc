//! Names of the `meta/v1` types.

/// Names of the `meta/v1` types that operations use.
pub(crate) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
