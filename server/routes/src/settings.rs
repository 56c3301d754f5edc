//! The compiler's inputs from outside: the resolver's mode, the own address, and what the local chain serves.

use portico_machinery::GroupVersion;
use portico_machinery::resolve::Mode;
use portico_machinery::route::Target;

/// Settings of resolving and publishing.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `--enable-aggregator-routing`.
    pub mode: Mode,
    /// Where the Service `default/kubernetes`, port 443, really is: this API's own facade. Absent: resolved as any other.
    pub loopback: Option<Target>,
    /// Route changes that are kept for facades that fall behind.
    ///
    /// Limit (Facades and control services): the facade gets a new snapshot.
    pub history: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { mode: Mode::default(), loopback: None, history: 4_096 }
    }
}

/// A group version that the local chain serves, with the priorities that it has when no APIService says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// What is served.
    pub group_version: GroupVersion,
    /// As `spec.groupPriorityMinimum`.
    pub group_priority_minimum: i32,
    /// As `spec.versionPriority`.
    pub version_priority: i32,
}
