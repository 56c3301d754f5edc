//! What the stream has said, reduced to what discovery and OpenAPI show.

use std::collections::BTreeMap;
use std::sync::Arc;

use portico_machinery::GroupVersion;
use portico_machinery::discovery::Served;
use portico_machinery::route::Route;

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
    pub local: bool,
}

impl From<&Route> for Registered {
    fn from(route: &Route) -> Self {
        Self {
            name: route.name.clone(),
            group_version: route.group_version.clone(),
            group_priority: route.group_priority_minimum,
            version_priority: route.version_priority,
            local: route.is_local(),
        }
    }
}

/// Everything, by key.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub routes: BTreeMap<String, Arc<Registered>>,
    pub served: BTreeMap<String, Arc<Served>>,
}

impl State {
    /// Applies one change; whether anything that shows is different now.
    pub fn apply(&mut self, change: Change) -> bool {
        match change {
            Change::Route { key, route } => {
                set(&mut self.routes, key, route.map(|r| Arc::new(Registered::from(&*r))))
            }
            Change::Served { key, served } => set(&mut self.served, key, served),
        }
    }
}

fn set<T: PartialEq>(map: &mut BTreeMap<String, Arc<T>>, key: String, value: Option<Arc<T>>) -> bool {
    match value {
        None => map.remove(&key).is_some(),
        Some(value) if map.get(&key).is_some_and(|old| **old == *value) => false,
        Some(value) => {
            map.insert(key, value);
            true
        }
    }
}
