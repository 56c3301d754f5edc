//! The mux of paths: complete decoded paths first, then prefixes, as upstream's `PathRecorderMux`.
//!
//! A value is cloned and changed by its single owner, and read as an immutable snapshot by requests. Does not depend on methods,
//! handlers or HTTP.
//!
//! Upstream tests prefixes with most slashes first, then the longest. Every prefix that matches a path is a
//! prefix of that same path, so more slashes is the same as longer, and there is one candidate per slash:
//! the lookup tries the path's own cuts, longest first, and needs no sorted list.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::sharded_map::ShardedMap;

/// Reason why a path cannot be registered.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MuxError {
    /// The prefix does not end in a slash. Upstream panics at registration.
    #[error("prefix {} must end in a slash", portico_gostd::strconv::quote(.0))]
    Prefix(String),
}

/// Targets of requests by path.
#[derive(Clone, Debug)]
pub struct PathRecorderMux<T> {
    exact: ShardedMap<RegisteredPath<T>>,
    prefix: ShardedMap<RegisteredPath<T>>,
    /// Maximum number of slashes in any registered prefix, which limits the lookups for a path with many slashes.
    max_slashes: usize,
}

#[derive(Clone, Debug)]
struct RegisteredPath<T> {
    target: T,
    is_listed: bool,
}

/// Visibility of a registered path in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// The index lists the path.
    Listed,
    /// The index does not list the path.
    Unlisted,
}

impl<T: Clone> PathRecorderMux<T> {
    /// Creates an empty mux.
    #[must_use]
    pub fn new() -> Self {
        Self { exact: ShardedMap::new(), prefix: ShardedMap::new(), max_slashes: 0 }
    }

    /// Registers a complete path; a later registration of the same path replaces it.
    pub fn handle(&mut self, path: &str, listing: Listing, target: T) {
        let registered = RegisteredPath { target, is_listed: listing == Listing::Listed };
        self.exact.insert(Arc::from(path), registered);
    }

    /// Registers a path that ends in a slash, and everything below it.
    ///
    /// # Errors
    /// [`MuxError::Prefix`] if the path does not end in a slash.
    pub fn handle_prefix(&mut self, path: &str, listing: Listing, target: T) -> Result<(), MuxError> {
        if !path.ends_with('/') {
            return Err(MuxError::Prefix(path.to_owned()));
        }
        self.max_slashes = self.max_slashes.max(slashes(path));
        let registered = RegisteredPath { target, is_listed: listing == Listing::Listed };
        self.prefix.insert(Arc::from(path), registered);
        Ok(())
    }

    /// Removes a path, both as a complete path and as a prefix. An unregistered path is not an error.
    pub fn unregister(&mut self, path: &str) {
        self.exact.remove(path);
        self.prefix.remove(path);
    }

    /// Target of a decoded path; `None` for the not-found handler.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&T> {
        if let Some(registered) = self.exact.get(path) {
            return Some(&registered.target);
        }
        let mut cut = end_of_slash(path, self.max_slashes)?;
        loop {
            if let Some(registered) = self.prefix.get(&path[..cut]) {
                return Some(&registered.target);
            }
            cut = path[..cut - 1].rfind('/')? + 1;
        }
    }

    /// Listed paths, sorted, each once; prefixes keep their slash.
    #[must_use]
    pub fn listed_paths(&self) -> BTreeSet<Arc<str>> {
        let all = self.exact.iter().chain(self.prefix.iter());
        all.filter(|(_, r)| r.is_listed).map(|(path, _)| path.clone()).collect()
    }
}

impl<T: Clone> Default for PathRecorderMux<T> {
    fn default() -> Self {
        Self::new()
    }
}

fn slashes(path: &str) -> usize {
    path.bytes().filter(|b| *b == b'/').count()
}

/// Length of the path up to and including the last of its first `max_slashes` slashes.
fn end_of_slash(path: &str, max_slashes: usize) -> Option<usize> {
    path.bytes().enumerate().filter(|(_, b)| *b == b'/').take(max_slashes).last().map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn complete_paths_do_not_match_as_prefixes_nor_the_other_way_round() {
        let mut mux = PathRecorderMux::new();
        mux.handle("/x", Listing::Listed, 1);
        mux.handle_prefix("/y/", Listing::Unlisted, 2).unwrap();
        assert_eq!((mux.find("/x"), mux.find("/x/")), (Some(&1), None));
        assert_eq!((mux.find("/y"), mux.find("/y/"), mux.find("/y/z")), (None, Some(&2), Some(&2)));
        assert_eq!(mux.listed_paths().into_iter().collect::<Vec<_>>(), [Arc::from("/x")]);
    }

    #[test]
    fn a_prefix_without_a_slash_is_refused() {
        let refused = PathRecorderMux::new().handle_prefix("/x", Listing::Listed, 1);
        assert_eq!(refused, Err(MuxError::Prefix("/x".into())));
    }

    #[test]
    fn an_unregistered_path_falls_to_the_next_match() {
        let mut mux = PathRecorderMux::new();
        mux.handle_prefix("/a/", Listing::Listed, 1).unwrap();
        mux.handle_prefix("/a/b/", Listing::Listed, 2).unwrap();
        assert_eq!(mux.find("/a/b/c"), Some(&2));
        mux.unregister("/a/b/");
        mux.unregister("/never");
        assert_eq!(mux.find("/a/b/c"), Some(&1));
    }

    /// Upstream's rule as written: sort by slashes, then length, then text; the first prefix that matches wins.
    fn naive<'a>(exact: &'a [(String, u8)], prefix: &'a [(String, u8)], path: &str) -> Option<u8> {
        if let Some((_, v)) = exact.iter().rfind(|(p, _)| p == path) {
            return Some(*v);
        }
        let mut sorted: Vec<_> = prefix.iter().collect();
        sorted.sort_by(|(a, _), (b, _)| {
            (slashes(b), b.len(), b.as_str()).cmp(&(slashes(a), a.len(), a.as_str()))
        });
        let best = sorted.iter().find(|(p, _)| path.starts_with(p.as_str()))?;
        prefix.iter().rfind(|(p, _)| *p == best.0).map(|(_, v)| *v)
    }

    proptest! {
        #[test]
        fn lookups_agree_with_the_sorted_list(
            exact in prop::collection::vec(("(/[ab]{0,2}){0,3}/?", 0u8..9), 0..8),
            prefix in prop::collection::vec(("(/[ab]{0,2}){0,3}/", 0u8..9), 0..8),
            paths in prop::collection::vec("(/[ab]{0,2}){0,5}/?", 1..20),
        ) {
            let mut mux = PathRecorderMux::new();
            for (path, v) in &exact {
                mux.handle(path, Listing::Listed, *v);
            }
            for (path, v) in &prefix {
                mux.handle_prefix(path, Listing::Listed, *v).unwrap();
            }
            for path in &paths {
                prop_assert_eq!(mux.find(path).copied(), naive(&exact, &prefix, path));
            }
        }
    }
}
