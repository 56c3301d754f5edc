//! What watchers were shown, and lists.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::history::State;

/// Which objects a watcher sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Selection {
    /// All of the namespace.
    All,
    /// Those with this label.
    Group(String),
    /// The one of this name.
    Name(String),
}

impl Selection {
    /// Whether an object in this state is one of them.
    pub(crate) fn matches(&self, object: &str, state: &State) -> bool {
        match self {
            Self::All => true,
            Self::Group(group) => state.content.group == *group,
            Self::Name(name) => object == name,
        }
    }
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Added,
    Modified,
    Deleted,
}

/// What a watcher was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) at: u64,
    pub(crate) kind: Kind,
    pub(crate) object: String,
    pub(crate) state: State,
}

/// A list at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) revision: u64,
    pub(crate) states: BTreeMap<String, State>,
}

/// What followed a list, without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Segment {
    pub(crate) list: Listed,
    pub(crate) events: Vec<Event>,
    /// The last revision of an event or of a bookmark.
    pub(crate) reached: u64,
}

/// A watcher's whole time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Watched {
    pub(crate) name: String,
    pub(crate) selection: Selection,
    pub(crate) segments: Vec<Segment>,
    /// How often its connection was lost and the watch resumed.
    pub(crate) resumed: u64,
}
