//! What the configuration stream has delivered, reduced to what discovery and OpenAPI show.

use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_machinery::discovery::Served;
use portico_machinery::route::Route;
use rpds::RedBlackTreeMapSync;

/// One entry of the stream: new, changed or (nothing) gone.
#[derive(Clone, Debug)]
pub enum Change {
    /// A compiled APIService.
    Route {
        /// The entry's key.
        key: String,
        /// What it says now.
        route: Option<Arc<Route>>,
    },
    /// A group version's discovery and OpenAPI.
    Served {
        /// The entry's key.
        key: String,
        /// What it says now.
        served: Option<Arc<Served>>,
    },
}

/// What an APIService means for discovery. Availability and targets are left out: they change nothing here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registered {
    pub name: String,
    pub group_version: GroupVersion,
    pub group_priority: i32,
    pub version_priority: i32,
    /// What the aggregated document orders by: the priorities that the group version first came with. Upstream does
    /// not look at later ones until it has been gone.
    pub first_priorities: (i32, i32),
    pub local: bool,
}

impl Registered {
    fn new(route: &Route, before: Option<&Self>) -> Self {
        let now = (route.group_priority_minimum, route.version_priority);
        let before = before.filter(|b| b.group_version == route.group_version);
        Self {
            first_priorities: before.map_or(now, |b| b.first_priorities),
            name: route.name.clone(),
            group_version: route.group_version.clone(),
            group_priority: route.group_priority_minimum,
            version_priority: route.version_priority,
            local: route.is_local(),
        }
    }
}

/// Everything, by key. Persistent: a clone shares all of it and does not see later changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub routes: ByKey<Registered>,
    pub served: ByKey<Served>,
}

type ByKey<T> = RedBlackTreeMapSync<String, Arc<T>>;

impl State {
    /// Applies one change to a state that takes the place of an older one, which knows how group versions first came.
    pub fn apply_over(&mut self, older: &Self, change: Change) {
        match change {
            Change::Route { key, route } => {
                let before = older.routes.get(&key);
                let registered = route.map(|r| Arc::new(Registered::new(&r, before.map(|b| &**b))));
                set(&mut self.routes, key, registered);
            }
            Change::Served { key, served } => {
                set(&mut self.served, key, served);
            }
        }
    }

    /// Applies one change; whether anything that shows is different now.
    pub fn apply(&mut self, change: Change) -> bool {
        match change {
            Change::Route { key, route } => {
                let before = self.routes.get(&key).cloned();
                let registered = route.map(|r| Arc::new(Registered::new(&r, before.as_deref())));
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
