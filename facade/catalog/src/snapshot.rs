//! One consistent view of what is served, and the documents made of it so far.
//!
//! Immutable but for what is computed at first ask. A change of the state makes the next request build another one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use portico_machinery::GroupVersion;
use portico_machinery::discovery::{Served, Source};
use portico_machinery::version_order::preferred_first;

use crate::discovery::Aggregated;
use crate::lazy_document::LazyDocument;
use crate::openapi::MergedDocument;
use crate::state::{Registered, State};

/// The aggregator's own group: first in both documents, above every priority.
pub(crate) const OWN_GROUP: &str = "apiregistration.k8s.io";
const OWN_VERSION: &str = "v1";

/// A group as the legacy documents show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub name: String,
    /// Preferred first.
    pub versions: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// By group version; the last of several APIServices of one (by name) counts.
    registered: HashMap<GroupVersion, Arc<Registered>>,
    /// The entry that wins per group version.
    served: BTreeMap<GroupVersion, Arc<Served>>,
    groups: OnceLock<Vec<Group>>,
    pub legacy: OnceLock<Bytes>,
    pub aggregated: LazyDocument<Aggregated>,
    pub aggregated_core: LazyDocument<Aggregated>,
    pub v3_index: OnceLock<Bytes>,
    pub v2: LazyDocument<MergedDocument>,
}

impl Snapshot {
    pub fn new(state: &State) -> Self {
        let registered: HashMap<_, _> =
            state.routes.values().map(|r| (r.group_version.clone(), r.clone())).collect();
        let remote = |gv: &GroupVersion| registered.get(gv).is_some_and(|r| !r.local);
        let mut served: BTreeMap<GroupVersion, Arc<Served>> = BTreeMap::new();
        for entry in state.served.values() {
            let gv = GroupVersion::new(&entry.group, &entry.version);
            // What requests reach is what is shown: of a routed version the backend's entry, of others a local one.
            if (entry.source == Source::Aggregator) != remote(&gv) {
                continue;
            }
            let winner = served.entry(gv).or_insert_with(|| entry.clone());
            if entry.source < winner.source {
                *winner = entry.clone();
            }
        }
        let mut snapshot = Self { registered, served, ..Self::default() };
        snapshot.add_unanswered();
        snapshot
    }

    /// A backend of which nothing is known yet is there, stale and without resources.
    fn add_unanswered(&mut self) {
        for registered in self.registered.values().filter(|r| !r.local) {
            let gv = &registered.group_version;
            let unknown = || {
                let (group, version) = (gv.group.clone(), gv.version.clone());
                let source = Source::Aggregator;
                Arc::new(Served { group, version, source, stale: true, ..Served::default() })
            };
            self.served.entry(gv.clone()).or_insert_with(unknown);
        }
    }

    /// The winning entry of a group version.
    pub fn served(&self, gv: &GroupVersion) -> Option<&Arc<Served>> {
        self.served.get(gv)
    }

    /// Whether requests for the group version leave for a backend.
    pub fn is_remote(&self, gv: &GroupVersion) -> bool {
        self.registered.get(gv).is_some_and(|r| !r.local)
    }

    /// All winning entries, by group and version.
    pub fn all_served(&self) -> impl Iterator<Item = &Arc<Served>> {
        self.served.values()
    }

    /// Groups of which at least one version is built in.
    pub fn builtin_groups(&self) -> BTreeSet<&str> {
        let builtin = self.served.values().filter(|s| s.source == Source::Builtin && !s.group.is_empty());
        builtin.map(|s| s.group.as_str()).collect()
    }

    /// Priority of the group (of this version of it) and of the version, as the aggregated document sees them.
    pub fn priority(&self, gv: &GroupVersion) -> (i32, i32) {
        let own = if gv.group == OWN_GROUP { i32::MAX } else { 0 };
        match self.registered.get(gv) {
            Some(r) => (r.first_priorities.0.max(own), r.first_priorities.1),
            None => (own, 0),
        }
    }

    /// The groups of the legacy documents: the aggregator's own, then by the order that upstream's `SortedByGroupAndVersion` gives.
    pub fn groups(&self) -> &[Group] {
        self.groups.get_or_init(|| {
            let mut all: Vec<&Registered> = self.registered.values().map(|r| &**r).collect();
            all.sort_by(|a, b| b.group_priority.cmp(&a.group_priority).then_with(|| a.name.cmp(&b.name)));
            legacy_order(&all)
        })
    }

    /// The group of this name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups().iter().find(|g| g.name == name)
    }
}

/// Upstream's `SortedByGroupAndVersion` over APIServices that are sorted by group priority and name.
fn legacy_order(sorted: &[&Registered]) -> Vec<Group> {
    let mut members: Vec<(&str, Vec<&Registered>)> = vec![(OWN_GROUP, Vec::new())];
    let mut places: HashMap<&str, usize> = HashMap::from([(OWN_GROUP, 0)]);
    for registered in sorted.iter().filter(|r| !r.group_version.group.is_empty()) {
        let group = registered.group_version.group.as_str();
        let place = *places.entry(group).or_insert_with(|| {
            members.push((group, Vec::new()));
            members.len() - 1
        });
        members[place].1.push(registered);
    }
    members.into_iter().map(|(name, members)| group_of(name, members)).collect()
}

fn group_of(name: &str, mut members: Vec<&Registered>) -> Group {
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
