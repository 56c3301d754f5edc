//! The route table: destinations of requests, as an immutable snapshot.
//!
//! Built from entries of the configuration one at a time; the cost of a change is that of the few shards that it affects. Mirrors
//! upstream's `proxyHandler` and `APIAggregator.AddAPIService`. Does not depend on HTTP, nor on the source of entries.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use portico_machinery::discovery::{ServedVersion, Source};
use portico_machinery::route::{Route, Trust};
use portico_proxy::RouteEntry;

use crate::mux::{Listing, MuxError, PathRecorderMux};
use crate::sharded_map::ShardedMap;

/// Destination of a path.
#[derive(Clone, Debug)]
pub enum Target {
    /// A built-in endpoint.
    Builtin {
        /// True if it is served although the configuration is too old.
        when_stale: bool,
    },
    /// Discovery of one group.
    Group,
    /// Backend of an APIService.
    Route(Arc<RouteEntry>),
}

/// Destinations of all paths.
#[derive(Clone, Debug, Default)]
pub struct RouteTable {
    mux: PathRecorderMux<Target>,
    /// Routes by name.
    routes: ShardedMap<Arc<RouteEntry>>,
    /// Versions with a route, by group; usually one.
    groups: ShardedMap<Arc<[Box<str>]>>,
    /// Served group versions by the key of their entry.
    served: ShardedMap<Arc<ServedVersion>>,
    /// Number of entries of local servers, by `source/group/version` and by `source/group`.
    local_counts: ShardedMap<usize>,
    /// CA bundles (PEM) by hash.
    bundles: ShardedMap<Bytes>,
    /// Hashes that routes named before the bundle arrived.
    awaited: BTreeSet<Arc<str>>,
}

impl RouteTable {
    /// Creates a table with built-in endpoints only.
    ///
    /// # Errors
    /// [`MuxError`] if the prefix of an endpoint does not end in a slash.
    pub fn new(endpoints: &[BuiltinPath]) -> Result<Self, MuxError> {
        let mut table = Self::default();
        for BuiltinPath { path, prefix, listing, answers_when_stale } in endpoints {
            let target = Target::Builtin { when_stale: *answers_when_stale };
            if *prefix {
                table.mux.handle_prefix(path, *listing, target)?;
            } else {
                table.mux.handle(path, *listing, target);
            }
        }
        Ok(table)
    }

    /// Destination of a decoded path; `None` for the delegates of the director.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&Target> {
        self.mux.find(path)
    }

    /// Listed paths, sorted.
    #[must_use]
    pub fn listed_paths(&self) -> BTreeSet<Arc<str>> {
        self.mux.listed_paths()
    }

    /// All routes, unordered.
    pub fn routes(&self) -> impl Iterator<Item = &Arc<RouteEntry>> {
        self.routes.iter().map(|(_, upstream)| upstream)
    }

    /// All served group versions, unordered.
    pub fn served(&self) -> impl Iterator<Item = &Arc<ServedVersion>> {
        self.served.iter().map(|(_, served)| served)
    }

    /// Local server of this group version: built-in before CRD.
    #[must_use]
    pub fn local_source(&self, group: &str, version: &str) -> Option<Source> {
        let is_served_by =
            |source: &Source| self.local_counts.contains(&owner_key(*source, group, Some(version)));
        [Source::Builtin, Source::Crd].into_iter().find(is_served_by)
    }

    /// True if a route or a local server serves this group version.
    #[must_use]
    pub fn serves(&self, group: &str, version: &str) -> bool {
        let has_route = || {
            self.groups
                .get(group)
                .is_some_and(|versions| versions.iter().any(|existing| **existing == *version))
        };
        self.local_source(group, version).is_some() || has_route()
    }

    /// True if the core server owns the whole group: an unknown version of it is then a Status, not a text 404.
    #[must_use]
    pub fn is_builtin_group(&self, group: &str) -> bool {
        self.local_counts.contains(&owner_key(Source::Builtin, group, None))
    }

    /// Adds or replaces a route (upstream's `AddAPIService`).
    ///
    /// # Errors
    /// [`MuxError`], which does not occur for the paths built here.
    pub fn set_route(&mut self, route: Arc<Route>) -> Result<(), MuxError> {
        let name: Arc<str> = route.name.as_str().into();
        let has_same_version =
            self.routes.get(&name).map(|old| old.route().group_version == route.group_version);
        if has_same_version == Some(false) {
            self.remove_route(&name);
        }
        if let Some(hash) = bundle_of(&route).filter(|hash| !self.has_bundle(hash)) {
            self.awaited.insert(hash.into());
        }
        let bundles = &self.bundles;
        let upstream = Arc::new(RouteEntry::new(route, &|hash| bundles.get(hash).cloned()));
        if let Some(before) = self.routes.get(&name) {
            upstream.take_counts(before);
        }
        let gv = upstream.route().group_version.clone();
        let root = root_path(&gv.group, &gv.version);
        self.mux.handle(&root, Listing::Listed, Target::Route(upstream.clone()));
        self.mux.handle_prefix(&format!("{root}/"), Listing::Unlisted, Target::Route(upstream.clone()))?;
        self.routes.insert(name, upstream);
        if !gv.group.is_empty() {
            self.add_to_group(&gv.group, &gv.version);
        }
        Ok(())
    }

    /// Copies the state of the routes with the same names, such as counts, from the previous table.
    pub fn inherit_state(&self, previous: &Self) {
        for (name, upstream) in self.routes.iter() {
            if let Some(before) = previous.routes.get(name) {
                upstream.take_counts(before);
            }
        }
    }

    /// Removes a route (upstream's `RemoveAPIService`). An unknown name is not an error.
    pub fn remove_route(&mut self, name: &str) {
        let Some(old) = self.routes.remove(name) else { return };
        let gv = &old.route().group_version;
        let root = root_path(&gv.group, &gv.version);
        self.mux.unregister(&root);
        self.mux.unregister(&format!("{root}/"));
        let Some(versions) = self.groups.get(&gv.group) else { return };
        let remaining: Arc<[_]> = versions.iter().filter(|v| ***v != *gv.version).cloned().collect();
        if remaining.is_empty() {
            self.groups.remove(&gv.group);
            self.mux.unregister(&format!("/apis/{}", gv.group));
            self.mux.unregister(&format!("/apis/{}/", gv.group));
        } else {
            self.groups.insert(gv.group.as_str().into(), remaining);
        }
    }

    fn add_to_group(&mut self, group: &str, version: &str) {
        let existing = self.groups.get(group).map_or(&[][..], |versions| versions);
        if existing.iter().any(|version_of_group| **version_of_group == *version) {
            return;
        }
        let versions = existing.iter().cloned().chain([version.into()]).collect();
        if existing.is_empty() {
            self.mux.handle(&format!("/apis/{group}"), Listing::Listed, Target::Group);
            self.mux.handle(&format!("/apis/{group}/"), Listing::Unlisted, Target::Group);
        }
        self.groups.insert(group.into(), versions);
    }

    /// Adds or replaces the APIs of a group version, by the key of the entry.
    pub fn set_served(&mut self, key: &str, served: Arc<ServedVersion>) {
        self.remove_served(key);
        self.add_local_count(&served, 1);
        self.served.insert(key.into(), served);
    }

    /// Removes the APIs of a group version, by the key of the entry.
    pub fn remove_served(&mut self, key: &str) {
        if let Some(old) = self.served.remove(key) {
            self.add_local_count(&old, -1);
        }
    }

    fn add_local_count(&mut self, served: &ServedVersion, delta: isize) {
        let ServedVersion { source, group, version, .. } = served;
        if *source == Source::Aggregator {
            // Not needed: group versions of backends have routes.
            return;
        }
        for key in [owner_key(*source, group, Some(version)), owner_key(*source, group, None)] {
            let count = self.local_counts.get(&key).copied().unwrap_or(0).saturating_add_signed(delta);
            if count == 0 {
                self.local_counts.remove(&key);
            } else {
                self.local_counts.insert(key.into(), count);
            }
        }
    }

    /// Adds a CA bundle, and passes it to the routes that wait for it.
    ///
    /// # Errors
    /// [`MuxError`], as in [`RouteTable::set_route`].
    pub fn set_bundle(&mut self, hash: &str, pem: Bytes) -> Result<(), MuxError> {
        if self.bundles.insert(hash.into(), pem).is_some() {
            // Equal hashes mean equal content.
            return Ok(());
        }
        self.awaited.remove(hash);
        let waiting: Vec<Arc<Route>> =
            self.routes().filter(|u| bundle_of(u.route()) == Some(hash)).map(|u| u.shared_route()).collect();
        waiting.into_iter().try_for_each(|route| self.set_route(route))
    }

    /// Removes a CA bundle; routes that use it keep it.
    pub fn remove_bundle(&mut self, hash: &str) {
        self.bundles.remove(hash);
    }

    /// Hashes of CA bundles that routes name and that are not loaded.
    #[must_use]
    pub fn missing_bundles(&self) -> Vec<String> {
        // The waiting routes may have been removed.
        let is_referenced = |hash: &str| self.routes().any(|u| bundle_of(u.route()) == Some(hash));
        let missing = |hash: &&Arc<str>| !self.has_bundle(hash) && is_referenced(hash);
        self.awaited.iter().filter(missing).map(ToString::to_string).collect()
    }

    /// True if a CA bundle is loaded.
    #[must_use]
    pub fn has_bundle(&self, hash: &str) -> bool {
        self.bundles.contains(hash)
    }
}

/// Path of a built-in endpoint.
#[derive(Clone, Debug)]
pub struct BuiltinPath {
    /// The path; a prefix ends in a slash.
    pub path: String,
    /// True if the endpoint includes all paths below.
    pub prefix: bool,
    /// Visibility in the index.
    pub listing: Listing,
    /// True if it is served although the configuration is too old.
    pub answers_when_stale: bool,
}

/// Hash of the CA bundle that a route trusts.
#[must_use]
pub fn bundle_of(route: &Route) -> Option<&str> {
    match &route.backend.as_ref()?.trust {
        Trust::Bundle(hash) => Some(hash),
        Trust::System | Trust::Insecure => None,
    }
}

/// `/apis/G/V`, or `/api` for the core group (upstream's legacy rule).
fn root_path(group: &str, version: &str) -> String {
    if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}/{version}") }
}

fn owner_key(source: Source, group: &str, version: Option<&str>) -> String {
    let source = source.as_str();
    match version {
        Some(version) => format!("{source}/{group}/{version}"),
        None => format!("{source}/{group}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portico_machinery::GroupVersion;
    use proptest::prelude::*;

    fn route(name: &str) -> Arc<Route> {
        let (version, group) = name.split_once('.').unwrap();
        Route { name: name.to_owned(), group_version: GroupVersion::new(group, version), ..Route::default() }
            .into()
    }

    fn name_at(table: &RouteTable, path: &str) -> Option<String> {
        match table.find(path)? {
            Target::Route(upstream) => Some(upstream.route().name.clone()),
            Target::Group => Some("group".to_owned()),
            Target::Builtin { .. } => None,
        }
    }

    #[test]
    fn a_route_has_its_paths_and_a_group_lives_as_long_as_a_version_of_it() {
        let mut table = RouteTable::default();
        table.set_route(route("v1.a.example")).unwrap();
        table.set_route(route("v2.a.example")).unwrap();
        for (path, want) in [
            ("/apis/a.example/v1", Some("v1.a.example")),
            ("/apis/a.example/v1/", Some("v1.a.example")),
            ("/apis/a.example/v2/things/x", Some("v2.a.example")),
            ("/apis/a.example", Some("group")),
            ("/apis/a.example/", Some("group")),
            ("/apis/a.example/v3", None),
            ("/apis/a.example/v11", None),
        ] {
            assert_eq!(name_at(&table, path).as_deref(), want, "{path}");
        }
        table.remove_route("v1.a.example");
        assert_eq!(name_at(&table, "/apis/a.example").as_deref(), Some("group"));
        table.remove_route("v2.a.example");
        table.remove_route("v2.a.example");
        assert_eq!(name_at(&table, "/apis/a.example"), None);
        assert!(table.listed_paths().is_empty());
    }

    #[test]
    fn the_legacy_group_owns_everything_below_api() {
        let mut table = RouteTable::default();
        table.set_route(route("v1.")).unwrap();
        for path in ["/api", "/api/", "/api/v1", "/api/v9/x"] {
            assert_eq!(name_at(&table, path).as_deref(), Some("v1."), "{path}");
        }
        assert_eq!(name_at(&table, "/apis"), None);
    }

    #[test]
    fn a_group_is_builtin_while_a_version_of_it_is_served() {
        let mut table = RouteTable::default();
        let served = Arc::new(ServedVersion {
            group: "apps".into(),
            version: "v1".into(),
            source: Source::Builtin,
            ..ServedVersion::default()
        });
        table.set_served("builtin/apps/v1", served.clone());
        table.set_served("builtin/apps/v1", served);
        assert_eq!(
            (table.local_source("apps", "v1"), table.is_builtin_group("apps")),
            (Some(Source::Builtin), true)
        );
        table.remove_served("builtin/apps/v1");
        assert_eq!((table.local_source("apps", "v1"), table.is_builtin_group("apps")), (None, false));
    }

    proptest! {
        #[test]
        fn any_order_of_changes_results_in_the_table_of_the_remaining_routes(
            ops in prop::collection::vec(("v[12]\\.[ab]\\.c", any::<bool>()), 0..40),
        ) {
            let (mut table, mut names) = (RouteTable::default(), BTreeSet::new());
            for (name, add) in ops {
                if add {
                    table.set_route(route(&name)).unwrap();
                    names.insert(name);
                } else {
                    table.remove_route(&name);
                    names.remove(&name);
                }
            }
            let mut fresh = RouteTable::default();
            for name in &names {
                fresh.set_route(route(name)).unwrap();
            }
            prop_assert_eq!(table.listed_paths(), fresh.listed_paths());
            for path in ["/apis/a.c", "/apis/b.c/", "/apis/a.c/v1", "/apis/a.c/v2/x", "/apis/b.c/v1/", "/apis/b.c/v2"] {
                prop_assert_eq!(name_at(&table, path), name_at(&fresh, path));
            }
        }
    }
}
