//! Group versions and their priorities.

use portico_machinery::GroupVersion;

/// Priorities of a built-in group version, which may or may not be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupVersionInfo {
    pub group_version: GroupVersion,
    /// `groupPriorityMinimum` of its APIService.
    pub group_priority: i32,
    /// `versionPriority` of its APIService.
    pub version_priority: i32,
    /// True if the group version has an APIService. Only the group of APIServices has none.
    pub has_api_service: bool,
}
