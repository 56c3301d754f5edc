//! Events and lists that watchers received.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::history::State;

/// Objects that a watcher selects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Selection {
    /// All objects of the namespace.
    All,
    /// Objects with this label.
    Group(String),
    /// The object with this name.
    Name(String),
}

impl Selection {
    /// Returns true if the watcher selects an object in this state.
    pub(crate) fn matches(&self, object: &str, state: &State) -> bool {
        match self {
            Self::All => true,
            Self::Group(group) => state.content.group == *group,
            Self::Name(name) => object == name,
        }
    }
}

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Added,
    Modified,
    Deleted,
}

/// An event that a watcher received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) at: u64,
    pub(crate) kind: Kind,
    pub(crate) object: String,
    pub(crate) state: State,
}

/// A list at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedStates {
    pub(crate) revision: u64,
    pub(crate) states: BTreeMap<String, State>,
}

/// A list and the events that followed it without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Segment {
    pub(crate) list: ListedStates,
    pub(crate) events: Vec<Event>,
    /// Last revision of an event or of a bookmark.
    pub(crate) reached: u64,
}

/// Complete record of a watcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WatcherRecord {
    pub(crate) name: String,
    pub(crate) selection: Selection,
    pub(crate) segments: Vec<Segment>,
    /// Number of resumptions after a lost connection.
    pub(crate) resumed: u64,
}
