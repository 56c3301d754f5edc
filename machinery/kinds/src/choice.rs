//! What data files choose by name.

/// The rule that names follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameRule {
    /// RFC 1123 subdomain, at most 253 characters.
    #[default]
    Subdomain,
    /// RFC 1123 label, at most 63 characters.
    Label,
    /// Anything that can stand as one part of a path.
    PathSegment,
    /// An IP address in its canonical spelling.
    IpAddress,
    /// A key as config maps have them.
    ConfigKey,
    /// A group and a resource, `apps.deployments`.
    GroupAndResource,
}

/// What happens to dependents when the caller does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Orphaning {
    /// They are collected in the background: no finalizer.
    #[default]
    Background,
    /// They are orphaned: the finalizer `orphan` is set.
    Orphan,
    /// There are none, and neither `orphan` nor `foregroundDeletion` is ever set.
    None,
}
