//! How many objects a resource has that is not in memory, and how many follow a page of them: counted in the database once, then kept
//! along with the changes. The first count of many takes long; one with each page would take longer than the page.

use std::collections::{HashMap, VecDeque};

/// Namespaces of one resource past the cache for which a count is kept.
///
/// Limit (Storage and watches): it is counted again.
const SCOPES: usize = 64;
/// Changes during a count at most; a count that is overtaken by more is not kept.
const PENDING_CHANGES: usize = 65_536;
/// Changes after the oldest revision for which a count is known.
///
/// Limit (Storage and watches): it is counted again.
const CHANGES: usize = 1_024;
/// Page ends that are kept with these counts.
///
/// Limit (Storage and watches): it is counted again.
const PAGES: usize = 256;

/// See the module.
#[derive(Default)]
pub(super) struct Counts {
    /// By namespace; empty: all objects.
    scopes: HashMap<Box<str>, Scope>,
    pages: VecDeque<PageEnd>,
}

struct Scope {
    /// The revision at which it was counted, or is being counted.
    from: i64,
    /// Nothing while it is being counted.
    total: Option<i64>,
    /// What changed since: a revision, and how many more there are then than at `from`.
    changes: VecDeque<(i64, i64)>,
}

/// What follows a page.
struct PageEnd {
    namespace: Box<str>,
    revision: i64,
    after: Box<str>,
    remaining: i64,
}

impl Counts {
    /// Begins to count a scope at a revision, since which nothing has changed.
    pub(super) fn begin(&mut self, namespace: &str, revision: i64) {
        if self.scopes.len() >= SCOPES
            && let Some(oldest) =
                self.scopes.iter().min_by_key(|(_, scope)| scope.from).map(|(name, _)| name.clone())
        {
            self.scopes.remove(&oldest);
        }
        self.scopes.insert(namespace.into(), Scope { from: revision, total: None, changes: VecDeque::new() });
    }

    /// What was counted at that revision.
    pub(super) fn end(&mut self, namespace: &str, revision: i64, total: i64) {
        if let Some(scope) = self.scopes.get_mut(namespace).filter(|scope| scope.from == revision) {
            scope.total = Some(total);
        }
    }

    /// Forgets a scope whose count at that revision has not ended.
    pub(super) fn abandon(&mut self, namespace: &str, revision: i64) {
        let is_pending = |scope: &Scope| scope.from == revision && scope.total.is_none();
        if self.scopes.get(namespace).is_some_and(is_pending) {
            self.scopes.remove(namespace);
        }
    }

    /// One object more, or one less.
    pub(super) fn pass(&mut self, namespace: &str, revision: i64, more: i64) {
        for name in ["", namespace] {
            if let Some(scope) = self.scopes.get_mut(name) {
                scope.pass(revision, more);
                if scope.total.is_none() && scope.changes.len() > PENDING_CHANGES {
                    self.scopes.remove(name);
                }
            }
            if namespace.is_empty() {
                break;
            }
        }
    }

    /// How many objects a scope had at a revision, if that is known.
    pub(super) fn total(&self, namespace: &str, revision: i64) -> Option<i64> {
        self.scopes.get(namespace)?.at(revision)
    }

    /// How many objects a scope has now, if that is known.
    pub(super) fn newest(&self, namespace: &str) -> Option<i64> {
        self.total(namespace, i64::MAX)
    }

    /// How many follow this key, if a page that ended there reported it.
    pub(super) fn following(&self, namespace: &str, revision: i64, after: &str) -> Option<i64> {
        let found = self
            .pages
            .iter()
            .find(|page| page.revision == revision && *page.after == *after && *page.namespace == *namespace);
        found.map(|page| page.remaining)
    }

    /// A page ended with this key.
    pub(super) fn page_ended(&mut self, namespace: &str, revision: i64, after: &str, remaining: i64) {
        if self.pages.len() == PAGES {
            self.pages.pop_front();
        }
        let (namespace, after) = (namespace.into(), after.into());
        self.pages.push_back(PageEnd { namespace, revision, after, remaining });
    }
}

impl Scope {
    fn pass(&mut self, revision: i64, more: i64) {
        let sum = self.changes.back().map_or(0, |(_, sum)| *sum) + more;
        self.changes.push_back((revision, sum));
        // While it is counted all of them are needed.
        if self.changes.len() > CHANGES
            && let Some(total) = self.total
            && let Some((revision, sum)) = self.changes.pop_front()
        {
            // What is forgotten is the state that counts are kept from.
            self.from = revision;
            self.total = Some(total + sum);
            self.changes.iter_mut().for_each(|(_, later)| *later -= sum);
        }
    }

    fn at(&self, revision: i64) -> Option<i64> {
        let total = self.total.filter(|_| self.from <= revision)?;
        let before = self.changes.partition_point(|(changed, _)| *changed <= revision);
        Some(total + before.checked_sub(1).map_or(0, |last| self.changes[last].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_right_at_every_revision_since_it_began() {
        let mut counts = Counts::default();
        counts.begin("", 10);
        counts.begin("a", 10);
        // While it is counted objects come and go.
        counts.pass("a", 11, 1);
        assert_eq!(counts.total("", 11), None);
        counts.end("", 10, 100);
        counts.end("a", 9, 1);
        counts.end("a", 10, 7);
        counts.pass("b", 12, -1);
        let totals = |namespace| [9, 10, 11, 12, 13].map(|revision| counts.total(namespace, revision));
        assert_eq!(totals(""), [None, Some(100), Some(101), Some(100), Some(100)]);
        assert_eq!(totals("a"), [None, Some(7), Some(8), Some(8), Some(8)]);
        assert_eq!((counts.newest(""), counts.newest("b")), (Some(100), None));
    }

    #[test]
    fn a_count_that_does_not_end_is_forgotten() {
        let mut counts = Counts::default();
        counts.begin("", 1);
        counts.abandon("", 2);
        assert_eq!(counts.scopes.len(), 1, "another count of the scope goes on");
        counts.abandon("", 1);
        assert!(counts.scopes.is_empty());
        counts.begin("", 3);
        counts.end("", 3, 7);
        counts.abandon("", 3);
        assert_eq!(counts.newest(""), Some(7));
        counts.begin("", 4);
        (0..=PENDING_CHANGES as i64).for_each(|n| counts.pass("", 5 + n, 1));
        assert!(counts.scopes.is_empty());
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_newest_stays_right() {
        let mut counts = Counts::default();
        counts.begin("", 1);
        counts.end("", 1, 5);
        (2..=CHANGES as i64 + 11).for_each(|revision| counts.pass("", revision, 1));
        assert_eq!(counts.newest(""), Some(5 + CHANGES as i64 + 10));
        assert_eq!((counts.total("", 10), counts.total("", 12)), (None, Some(16)));
        (0..SCOPES as i64 + 5).for_each(|n| counts.begin(&n.to_string(), 5_000 + n));
        assert_eq!(counts.scopes.len(), SCOPES);
        (0..PAGES as i64 + 1).for_each(|n| counts.page_ended("a", 1, &n.to_string(), n));
        assert_eq!((counts.following("a", 1, "0"), counts.following("a", 1, "7")), (None, Some(7)));
        assert_eq!((counts.following("a", 2, "7"), counts.following("b", 1, "7")), (None, None));
    }
}
