//! Local variables while an estimate walks a tree.

use std::sync::Arc;

use super::entry::{EntrySize, Path};
use crate::size::SizeEstimate;

/// Path and size of a local variable.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub name: Arc<str>,
    pub path: Path,
    pub size: Option<SizeEstimate>,
    pub entries: Option<EntrySize>,
}

/// Local variables that are alive, the innermost last.
#[derive(Debug, Default)]
pub(super) struct Scopes(Vec<Local>);

impl Scopes {
    pub fn push(&mut self, local: Local) {
        self.0.push(local);
    }

    pub fn pop(&mut self) {
        self.0.pop();
    }

    pub fn find(&self, name: &str) -> Option<&Local> {
        self.0.iter().rev().find(|local| *local.name == *name)
    }
}
