//! What clients asked, what they were answered, and what watchers saw: the material of every check.
//!
//! Times are nanoseconds since the run began, by one clock for everybody. It must not know how any of it was sent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A client's request about one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Operation {
    /// Unique in the run; a write puts it into the object, so that each state says who wrote it.
    pub(crate) id: u64,
    /// Which client.
    pub(crate) client: String,
    /// Which object.
    pub(crate) object: String,
    /// When it was sent.
    pub(crate) begun: u64,
    /// When it was answered.
    pub(crate) ended: u64,
    /// What was asked.
    pub(crate) request: Request,
    /// What came back.
    pub(crate) response: Response,
}

impl Operation {
    /// The latest moment at which it may have taken effect.
    pub(crate) fn latest(&self) -> u64 {
        if self.response == Response::Unknown { u64::MAX } else { self.ended }
    }
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Creates it.
    Create(Content),
    /// Reads it: by name, or as a part of a list.
    Read,
    /// Replaces the state that has this revision.
    Update(u64, Content),
    /// Changes whatever state it has; see [`Content::patched`].
    Patch(Patch),
    /// Deletes it, whatever state it has, if it has this uid where one is named.
    Delete(Option<String>),
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Response {
    /// This state: what was read, or what was written.
    State(State),
    /// The object of this uid was deleted.
    Deleted(String),
    /// There is no such object.
    Absent,
    /// There is such an object already.
    Exists,
    /// Its state is another one.
    Conflict,
    /// Nothing was done, for a reason that says nothing of the object: too many requests, never sent.
    Refused(String),
    /// Nobody knows whether it was done or will be.
    Unknown,
}

/// What an object says; all of it is ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Content {
    /// The operation that wrote it.
    pub(crate) writer: u64,
    /// How many updates have read and replaced it, one after the other.
    pub(crate) count: u64,
    /// The last patch of each kind.
    pub(crate) marks: BTreeMap<String, u64>,
    /// Its label, by which watchers select.
    pub(crate) group: String,
}

/// A merge patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Patch {
    /// The operation.
    pub(crate) writer: u64,
    /// Which mark becomes the operation.
    pub(crate) mark: String,
    /// The label, where it changes.
    pub(crate) group: Option<String>,
}

impl Content {
    /// The content after a patch.
    pub(crate) fn patched(&self, patch: &Patch) -> Self {
        let mut next = self.clone();
        next.writer = patch.writer;
        next.marks.insert(patch.mark.clone(), patch.writer);
        if let Some(group) = &patch.group {
            next.group.clone_from(group);
        }
        next
    }
}

/// An object at a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// Its uid.
    pub(crate) uid: String,
    /// Its resourceVersion.
    pub(crate) revision: u64,
    /// What it says.
    pub(crate) content: Content,
}

/// A state that some watcher was shown, whatever its selection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sighting {
    /// When.
    pub(crate) at: u64,
    /// The event's revision: that of the deletion, where it is one.
    pub(crate) revision: u64,
    /// Whether the object was deleted at this revision.
    pub(crate) deleted: bool,
    /// The state, of a deletion the last one.
    pub(crate) state: State,
}

/// A rule that was broken, with the least that shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Violation {
    /// Which object.
    pub(crate) object: String,
    /// What is wrong.
    pub(crate) what: String,
    /// The operations that show it, in the order in which they were sent.
    pub(crate) operations: Vec<Operation>,
}

impl Violation {
    /// One that these operations show.
    pub(crate) fn new<'a>(
        object: &str,
        what: impl Into<String>,
        operations: impl IntoIterator<Item = &'a Operation>,
    ) -> Self {
        let mut operations: Vec<Operation> = operations.into_iter().cloned().collect();
        operations.sort_by_key(|operation| (operation.begun, operation.id));
        operations.dedup_by_key(|operation| operation.id);
        Self { object: object.to_owned(), what: what.into(), operations }
    }
}
