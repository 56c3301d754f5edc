//! A consistent view of the served APIs, and the documents built from it so far.
//!
//! Immutable except for documents that are built on first use. After a change of the state, the next request
//! builds another snapshot.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use portico_machinery::GroupVersion;
use portico_machinery::discovery::{ServedVersion, Source};
use portico_machinery::version_order::preferred_first;

use crate::discovery::AggregatedDocument;
use crate::lazy_document::LazyDocument;
use crate::openapi::MergedDocument;
use crate::state::{ApiRegistration, EntryState};

/// The group of the aggregator: first in both documents, above every priority.
pub(crate) const OWN_GROUP: &str = "apiregistration.k8s.io";
const OWN_VERSION: &str = "v1";

/// A group in the legacy documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub name: String,
    /// Versions, preferred one first.
    pub versions: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// Registrations by group version; if there are several, the last one by APIService name counts.
    registered: HashMap<GroupVersion, Arc<ApiRegistration>>,
    /// Selected entry per group version.
    served: BTreeMap<GroupVersion, Arc<ServedVersion>>,
    groups: OnceLock<Vec<Group>>,
    pub legacy: OnceLock<Bytes>,
    pub aggregated: LazyDocument<AggregatedDocument>,
    pub aggregated_core: LazyDocument<AggregatedDocument>,
    pub v3_index: OnceLock<Bytes>,
    pub v2: LazyDocument<MergedDocument>,
}

impl Snapshot {
    pub fn new(state: &EntryState) -> Self {
        let registered: HashMap<_, _> =
            state.routes.values().map(|r| (r.group_version.clone(), r.clone())).collect();
        let remote = |gv: &GroupVersion| registered.get(gv).is_some_and(|r| !r.local);
        let mut served: BTreeMap<GroupVersion, Arc<ServedVersion>> = BTreeMap::new();
        for entry in state.served.values() {
            let gv = GroupVersion::new(&entry.group, &entry.version);
            // Documents show the server that requests reach: the backend for a routed version, otherwise a local one.
            if (entry.source == Source::Aggregator) != remote(&gv) {
                continue;
            }
            let winner = served.entry(gv).or_insert_with(|| entry.clone());
            if entry.source < winner.source {
                *winner = entry.clone();
            }
        }
        let mut snapshot = Self { registered, served, ..Self::default() };
        snapshot.add_backends_without_discovery();
        snapshot
    }

    /// Adds backends without discovery so far, as stale and without resources.
    fn add_backends_without_discovery(&mut self) {
        for registered in self.registered.values().filter(|r| !r.local) {
            let gv = &registered.group_version;
            let unknown = || {
                let (group, version) = (gv.group.clone(), gv.version.clone());
                let source = Source::Aggregator;
                Arc::new(ServedVersion { group, version, source, stale: true, ..ServedVersion::default() })
            };
            self.served.entry(gv.clone()).or_insert_with(unknown);
        }
    }

    /// Selected entry of a group version.
    pub fn served_version(&self, gv: &GroupVersion) -> Option<&Arc<ServedVersion>> {
        self.served.get(gv)
    }

    /// True if a backend serves the group version.
    pub fn is_remote(&self, gv: &GroupVersion) -> bool {
        self.registered.get(gv).is_some_and(|r| !r.local)
    }

    /// Selected entries, by group and version.
    pub fn all_served(&self) -> impl Iterator<Item = &Arc<ServedVersion>> {
        self.served.values()
    }

    /// Groups with at least one built-in version.
    pub fn builtin_groups(&self) -> BTreeSet<&str> {
        let builtin = self.served.values().filter(|s| s.source == Source::Builtin && !s.group.is_empty());
        builtin.map(|s| s.group.as_str()).collect()
    }

    /// Priorities of the group (for this version) and of the version, for the aggregated document.
    pub fn priority(&self, gv: &GroupVersion) -> (i32, i32) {
        let own_priority = if gv.group == OWN_GROUP { i32::MAX } else { 0 };
        match self.registered.get(gv) {
            Some(r) => (r.first_priorities.0.max(own_priority), r.first_priorities.1),
            None => (own_priority, 0),
        }
    }

    /// Groups of the legacy documents: the aggregator's own, then in the order of upstream's `SortedByGroupAndVersion`.
    pub fn groups(&self) -> &[Group] {
        self.groups.get_or_init(|| {
            let mut all: Vec<&ApiRegistration> = self.registered.values().map(|r| &**r).collect();
            all.sort_by(|a, b| b.group_priority.cmp(&a.group_priority).then_with(|| a.name.cmp(&b.name)));
            legacy_order(&all)
        })
    }

    /// Returns the group with this name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups().iter().find(|g| g.name == name)
    }
}

/// Implements upstream's `SortedByGroupAndVersion` for APIServices that are sorted by group priority and name.
fn legacy_order(sorted: &[&ApiRegistration]) -> Vec<Group> {
    let mut members: Vec<(&str, Vec<&ApiRegistration>)> = vec![(OWN_GROUP, Vec::new())];
    let mut positions: HashMap<&str, usize> = HashMap::from([(OWN_GROUP, 0)]);
    for registered in sorted.iter().filter(|r| !r.group_version.group.is_empty()) {
        let group = registered.group_version.group.as_str();
        let position = *positions.entry(group).or_insert_with(|| {
            members.push((group, Vec::new()));
            members.len() - 1
        });
        members[position].1.push(registered);
    }
    members.into_iter().map(|(name, members)| group_with_versions(name, members)).collect()
}

fn group_with_versions(name: &str, mut members: Vec<&ApiRegistration>) -> Group {
    members.sort_by(|a, b| {
        let order = b.version_priority.cmp(&a.version_priority);
        order.then_with(|| preferred_first(&a.group_version.version, &b.group_version.version))
    });
    let mut versions: Vec<_> = members.iter().map(|m| m.group_version.version.clone()).collect();
    if versions.is_empty() {
        versions.push(OWN_VERSION.to_owned());
    }
    Group { name: name.to_owned(), versions }
}
