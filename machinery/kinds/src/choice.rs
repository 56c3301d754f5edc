//! Options of kinds that data files select by name.

/// Rule for the names of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameRule {
    /// RFC 1123 subdomain, at most 253 characters.
    #[default]
    Subdomain,
    /// RFC 1123 label, at most 63 characters.
    Label,
    /// Any text that is valid as one segment of a path.
    PathSegment,
    /// IP address in canonical form.
    IpAddress,
    /// Key of a ConfigMap.
    ConfigKey,
    /// Group and resource, such as `apps.deployments`.
    GroupAndResource,
}

/// Treatment of dependents if the delete request specifies no propagation policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DefaultPropagation {
    /// Dependents are deleted in the background. No finalizer is set.
    #[default]
    Background,
    /// Dependents are orphaned: the finalizer `orphan` is set.
    Orphan,
    /// Objects have no dependents. Neither `orphan` nor `foregroundDeletion` is ever set.
    None,
}
