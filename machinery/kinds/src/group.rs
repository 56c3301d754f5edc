//! Group versions and their priorities.

use portico_machinery::GroupVersion;

/// A built-in group version, served or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupVersionInfo {
    /// Which.
    pub group_version: GroupVersion,
    /// `groupPriorityMinimum` of its APIService.
    pub group_priority: i32,
    /// `versionPriority` of its APIService.
    pub version_priority: i32,
    /// Whether it is published as an APIService of its own: all but the group that holds APIServices.
    pub api_service: bool,
}
