//! Content of the configuration stream, reduced to the parts that discovery and OpenAPI use.

use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_machinery::discovery::ServedVersion;
use portico_machinery::route::Route;
use rpds::RedBlackTreeMapSync;

/// A changed entry of the stream; removed if the value is `None`.
#[derive(Clone, Debug)]
pub enum Change {
    /// Compiled APIService.
    Route {
        /// Key of the entry.
        key: String,
        /// New value.
        route: Option<Arc<Route>>,
    },
    /// Discovery and OpenAPI of a group version.
    Served {
        /// Key of the entry.
        key: String,
        /// New value.
        served: Option<Arc<ServedVersion>>,
    },
}

/// Registration of an APIService, for discovery. Availability and targets are omitted, because they have no effect here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiRegistration {
    pub name: String,
    pub group_version: GroupVersion,
    pub group_priority: i32,
    pub version_priority: i32,
    /// Priorities with which the group version first appeared, which order the aggregated document. Upstream ignores later
    /// changes until the group version was removed.
    pub first_priorities: (i32, i32),
    pub local: bool,
}

impl ApiRegistration {
    fn new(route: &Route, previous: Option<&Self>) -> Self {
        let priorities = (route.group_priority_minimum, route.version_priority);
        let previous = previous.filter(|b| b.group_version == route.group_version);
        Self {
            first_priorities: previous.map_or(priorities, |b| b.first_priorities),
            name: route.name.clone(),
            group_version: route.group_version.clone(),
            group_priority: route.group_priority_minimum,
            version_priority: route.version_priority,
            local: route.is_local(),
        }
    }
}

/// All entries by key. Persistent: a clone shares them and does not see later changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct EntryState {
    pub routes: ByKey<ApiRegistration>,
    pub served: ByKey<ServedVersion>,
}

type ByKey<T> = RedBlackTreeMapSync<String, Arc<T>>;

impl EntryState {
    /// Applies a change to a state that replaces `older`, from which the first priorities are taken.
    pub fn apply_over(&mut self, older: &Self, change: Change) {
        match change {
            Change::Route { key, route } => {
                let previous = older.routes.get(&key);
                let registered = route.map(|r| Arc::new(ApiRegistration::new(&r, previous.map(|b| &**b))));
                set(&mut self.routes, key, registered);
            }
            Change::Served { key, served } => {
                set(&mut self.served, key, served);
            }
        }
    }

    /// Applies a change. Returns true if documents change.
    pub fn apply(&mut self, change: Change) -> bool {
        match change {
            Change::Route { key, route } => {
                let previous = self.routes.get(&key).cloned();
                let registered = route.map(|r| Arc::new(ApiRegistration::new(&r, previous.as_deref())));
                set(&mut self.routes, key, registered)
            }
            Change::Served { key, served } => set(&mut self.served, key, served),
        }
    }
}

fn set<T: PartialEq>(map: &mut ByKey<T>, key: String, value: Option<Arc<T>>) -> bool {
    match value {
        None => map.remove_mut(&key),
        Some(value) if map.get(&key).is_some_and(|old| **old == *value) => false,
        Some(value) => {
            map.insert_mut(key, value);
            true
        }
    }
}
