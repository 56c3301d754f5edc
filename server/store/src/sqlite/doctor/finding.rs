//! What an examination finds.

use crate::unreadable::Unreadable;

/// Something that is wrong with a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// SQLite's integrity check complains.
    Damaged(String),
    /// An object's current state cannot be read.
    Unreadable(Unreadable),
    /// A past state cannot be read: no object misses anything, watches from before it must list again.
    UnreadableHistory(Unreadable),
    /// The name of a resource cannot be read: none of its objects is served.
    UnreadableResource {
        /// Its number in the database.
        id: i64,
        /// What is left of its name.
        shown: String,
    },
    /// Parts of the database contradict each other.
    Inconsistent(String),
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Examination {
    /// The revision that was looked at; 0 when it cannot be read.
    pub revision: i64,
    /// How many objects can be read, or are sealed and were left so.
    pub objects: u64,
    /// How many states are kept, past ones included.
    pub states: u64,
    /// How many of the states are sealed and were not opened: what they are sealed with was not given.
    pub sealed: u64,
    /// What is wrong; nothing when the database is sound.
    pub findings: Vec<Finding>,
}

impl Examination {
    /// Whether nothing is wrong.
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
            Self::UnreadableResource { shown, .. } => {
                write!(f, "unreadable resource: {shown}: the name is not UTF-8")
            }
            Self::Inconsistent(text) => write!(f, "inconsistent: {text}"),
        }
    }
}
