//! Settings of the compiler: mode of the resolver, own address, and group versions of the local chain.

use portico_machinery::GroupVersion;
use portico_machinery::resolve::ResolveMode;
use portico_machinery::route::Target;

/// Settings of resolution and publication.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Resolver mode, from `--enable-aggregator-routing`.
    pub mode: ResolveMode,
    /// Address of this API's own facade, which is used for the Service `default/kubernetes`, port 443. `None`: that Service is
    /// resolved like others.
    pub loopback: Option<Target>,
    /// Route changes that are kept for facades that fall behind.
    ///
    /// Limit (Facades and control services): the facade gets a new snapshot.
    pub history: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { mode: ResolveMode::default(), loopback: None, history: 4_096 }
    }
}

/// Group version that the local chain serves, with its default priorities if there is no APIService.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalGroupVersion {
    /// Served group and version.
    pub group_version: GroupVersion,
    /// Default of `spec.groupPriorityMinimum`.
    pub group_priority_minimum: i32,
    /// Default of `spec.versionPriority`.
    pub version_priority: i32,
}
