//! Requests and responses of clients, and states seen by watchers: the input of every check.
//!
//! Times are nanoseconds since the run began, by one clock for all clients. Does not depend on the transport.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A client's request for one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Operation {
    /// Unique number in the run; a write stores it in the object, so that each state identifies its writer.
    pub(crate) id: u64,
    /// Name of the client.
    pub(crate) client: String,
    /// Name of the object.
    pub(crate) object: String,
    /// Time of the request.
    pub(crate) begun: u64,
    /// Time of the response.
    pub(crate) ended: u64,
    pub(crate) request: Request,
    pub(crate) response: Response,
}

impl Operation {
    /// Returns the latest time at which the operation may have taken effect.
    pub(crate) fn latest(&self) -> u64 {
        if self.response == Response::Unknown { u64::MAX } else { self.ended }
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Creates the object.
    Create(Content),
    /// Reads the object: by name, or as part of a list.
    Read,
    /// Replaces the state with this revision.
    Update(u64, Content),
    /// Changes any state of the object; see [`Content::patched`].
    Patch(Patch),
    /// Deletes any state of the object; with a uid, only the object with this uid.
    Delete(Option<String>),
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Response {
    /// The state that was read or written.
    State(State),
    /// The object with this uid was deleted.
    Deleted(String),
    /// The object does not exist.
    Absent,
    /// The object exists already.
    Exists,
    /// The object has another state.
    Conflict,
    /// The request was not executed, for a reason independent of the object, such as too many requests.
    Refused(String),
    /// The outcome is unknown: the request may have been executed, or may still be.
    Unknown,
}

/// Content of an object, all written by the clients of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Content {
    /// Operation that wrote the content.
    pub(crate) writer: u64,
    /// Number of consecutive updates that have read and replaced the content.
    pub(crate) count: u64,
    /// The last patch of each kind.
    pub(crate) marks: BTreeMap<String, u64>,
    /// Label, by which watchers select.
    pub(crate) group: String,
}

/// A merge patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Patch {
    /// Operation of the patch.
    pub(crate) writer: u64,
    /// Key of the mark that is set to the operation.
    pub(crate) mark: String,
    /// New label, if it changes.
    pub(crate) group: Option<String>,
}

impl Content {
    /// Returns the content after a patch.
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
    pub(crate) uid: String,
    /// resourceVersion of the object.
    pub(crate) revision: u64,
    pub(crate) content: Content,
}

/// A state that a watcher of any selection received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sighting {
    /// Time of the event.
    pub(crate) at: u64,
    /// Revision of the event; for a deletion, that of the deletion.
    pub(crate) revision: u64,
    /// True if the object was deleted at this revision.
    pub(crate) deleted: bool,
    /// State of the object; for a deletion, the last one.
    pub(crate) state: State,
}

/// A violated rule, with the operations that prove it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Violation {
    /// Name of the object.
    pub(crate) object: String,
    /// Description of the violation.
    pub(crate) what: String,
    /// Operations that prove the violation, in the order in which they were sent.
    pub(crate) operations: Vec<Operation>,
}

impl Violation {
    /// Creates a violation that these operations prove.
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
