//! Findings of an examination.

use crate::unreadable::Unreadable;

/// Problem of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// SQLite's integrity check reports a problem.
    Damaged(String),
    /// The current state of an object cannot be read.
    Unreadable(Unreadable),
    /// A past state cannot be read: objects are complete, but watches from before it must list again.
    UnreadableHistory(Unreadable),
    /// The name of a resource cannot be read: none of its objects is served.
    UnreadableResource {
        /// ID of the resource in the database.
        id: i64,
        /// Displayable remains of its name.
        remains: String,
    },
    /// Parts of the database are inconsistent with each other.
    Inconsistent(String),
}

/// Result of an examination.
#[derive(Clone, Debug, Default)]
pub struct Examination {
    /// Examined revision; 0 if it cannot be read.
    pub revision: i64,
    /// Number of objects that can be read, or that are sealed and were not opened.
    pub objects: u64,
    /// Number of states, including past ones.
    pub states: u64,
    /// Number of sealed states that were not opened because no keys were given.
    pub sealed: u64,
    /// Problems; empty if there are none.
    pub findings: Vec<Finding>,
}

impl Examination {
    /// True if no problems were found.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }

    pub(super) fn damaged(&mut self, error: &sqlx::Error) {
        self.findings.push(Finding::Damaged(error.to_string()));
    }

    pub(super) fn inconsistent(&mut self, text: String) {
        self.findings.push(Finding::Inconsistent(text));
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damaged(text) => write!(f, "damaged: {text}"),
            Self::Unreadable(o) => {
                write!(f, "unreadable: {} at revision {}: {}", o.key(), o.revision(), o.reason())
            }
            Self::UnreadableHistory(o) => {
                write!(f, "unreadable past state: {} at revision {}: {}", o.key(), o.revision(), o.reason())
            }
            Self::UnreadableResource { remains, .. } => {
                write!(f, "unreadable resource: {remains}: the name is not UTF-8")
            }
            Self::Inconsistent(text) => write!(f, "inconsistent: {text}"),
        }
    }
}
