//! Ratcheting of rules: an error at a place that stays as it was is a warning.

use std::cell::OnceCell;

use crate::structural::correlate::Pair;

/// A place that belongs to an old one, and whether both are the same.
pub(super) struct Correlated<'a> {
    pub pair: Pair<'a>,
    same: OnceCell<bool>,
}

impl<'a> Correlated<'a> {
    pub fn new(pair: Pair<'a>) -> Self {
        Self { pair, same: OnceCell::new() }
    }

    fn is_same(&self) -> bool {
        *self.same.get_or_init(|| self.pair.is_same())
    }
}

/// What errors of a place are measured by: itself, or the nearest above that belongs to an old one.
#[derive(Clone, Copy, Default)]
pub(super) struct Ratchet<'r, 'a> {
    current: Option<&'r Correlated<'a>>,
    nearest: Option<&'r Correlated<'a>>,
}

impl<'r, 'a> Ratchet<'r, 'a> {
    /// Of the whole object.
    pub fn of(root: Option<&'r Correlated<'a>>) -> Self {
        Self { current: root, nearest: None }
    }

    /// Of a place below, which is found from the pair of this one.
    pub fn below(self, found: Option<&'r Correlated<'a>>) -> Self {
        match self.current {
            None => self,
            Some(current) => Self { current: found, nearest: Some(current) },
        }
    }

    /// The place and the old one that belongs to it.
    pub fn pair(self) -> Option<&'r Pair<'a>> {
        self.current.map(|current| &current.pair)
    }

    /// Whether it is the whole object's.
    pub fn is_of_root(self) -> bool {
        self.nearest.is_none()
    }

    /// Whether nothing changed that an error could be blamed on.
    pub fn forgives(self) -> bool {
        self.current.or(self.nearest).is_some_and(Correlated::is_same)
    }
}
