//! Ratcheting of rules: errors of unchanged values become warnings.

use std::cell::OnceCell;

use crate::structural::correlate::CorrelatedPair;

/// Value with its old value, and the cached result of their comparison.
pub(super) struct CachedPair<'a> {
    pub pair: CorrelatedPair<'a>,
    same: OnceCell<bool>,
}

impl<'a> CachedPair<'a> {
    pub fn new(pair: CorrelatedPair<'a>) -> Self {
        Self { pair, same: OnceCell::new() }
    }

    fn is_same(&self) -> bool {
        *self.same.get_or_init(|| self.pair.is_same())
    }
}

/// Values whose comparison decides about ratcheting: the value itself, or the nearest parent that has an old value.
#[derive(Clone, Copy, Default)]
pub(super) struct Ratchet<'r, 'a> {
    current: Option<&'r CachedPair<'a>>,
    nearest: Option<&'r CachedPair<'a>>,
}

impl<'r, 'a> Ratchet<'r, 'a> {
    /// Creates the ratchet of the whole object.
    pub fn of(root: Option<&'r CachedPair<'a>>) -> Self {
        Self { current: root, nearest: None }
    }

    /// Returns the ratchet of a child, whose pair was found through the pair of this value.
    pub fn child(self, found: Option<&'r CachedPair<'a>>) -> Self {
        match self.current {
            None => self,
            Some(current) => Self { current: found, nearest: Some(current) },
        }
    }

    /// Returns the value with its old value.
    pub fn pair(self) -> Option<&'r CorrelatedPair<'a>> {
        self.current.map(|current| &current.pair)
    }

    /// True for the whole object.
    pub fn is_root(self) -> bool {
        self.nearest.is_none()
    }

    /// True if the value, or its nearest correlated parent, is unchanged, so that errors become warnings.
    pub fn is_unchanged(self) -> bool {
        self.current.or(self.nearest).is_some_and(CachedPair::is_same)
    }
}
