//! Number of objects of an uncached resource, and number of objects after a page. Counted once in the database, then updated
//! with each change: counting many objects takes long, and a count for each page would take longer than the page.

use std::collections::{HashMap, VecDeque};

/// Namespaces of one resource past the cache for which a count is kept.
///
/// Limit (Storage and watches): it is counted again.
const SCOPES: usize = 64;
/// Maximum number of changes during a count. A count with more concurrent changes is discarded.
const PENDING_CHANGES: usize = 65_536;
/// Changes after the oldest revision for which a count is known.
///
/// Limit (Storage and watches): it is counted again.
const CHANGES: usize = 1_024;
/// Page ends that are kept with these counts.
///
/// Limit (Storage and watches): it is counted again.
const PAGES: usize = 256;

/// Object counts of one resource.
#[derive(Default)]
pub(super) struct Counts {
    /// Counts by namespace; the empty namespace counts all objects.
    scopes: HashMap<Box<str>, ScopeCount>,
    pages: VecDeque<PageEnd>,
}

struct ScopeCount {
    /// Revision of the count.
    base_revision: i64,
    /// Number of objects at `base_revision`; `None` while it is being counted.
    total: Option<i64>,
    /// Changes since `base_revision`: revision, and difference of the number of objects to that at `base_revision`.
    changes: VecDeque<(i64, i64)>,
}

/// End of a page, and the number of objects after it.
struct PageEnd {
    namespace: Box<str>,
    revision: i64,
    after: Box<str>,
    remaining: i64,
}

impl Counts {
    /// Starts to count a scope at a revision; nothing has changed since the revision.
    pub(super) fn begin(&mut self, namespace: &str, revision: i64) {
        if self.scopes.len() >= SCOPES
            && let Some(oldest) =
                self.scopes.iter().min_by_key(|(_, scope)| scope.base_revision).map(|(name, _)| name.clone())
        {
            self.scopes.remove(&oldest);
        }
        self.scopes.insert(
            namespace.into(),
            ScopeCount { base_revision: revision, total: None, changes: VecDeque::new() },
        );
    }

    /// Completes the count of a scope that started at this revision.
    pub(super) fn complete(&mut self, namespace: &str, revision: i64, total: i64) {
        if let Some(scope) = self.scopes.get_mut(namespace).filter(|scope| scope.base_revision == revision) {
            scope.total = Some(total);
        }
    }

    /// Discards a scope whose count at this revision is not complete.
    pub(super) fn abandon(&mut self, namespace: &str, revision: i64) {
        let is_pending = |scope: &ScopeCount| scope.base_revision == revision && scope.total.is_none();
        if self.scopes.get(namespace).is_some_and(is_pending) {
            self.scopes.remove(namespace);
        }
    }

    /// Records a change of the number of objects.
    pub(super) fn apply(&mut self, namespace: &str, revision: i64, difference: i64) {
        for name in ["", namespace] {
            if let Some(scope) = self.scopes.get_mut(name) {
                scope.apply(revision, difference);
                if scope.total.is_none() && scope.changes.len() > PENDING_CHANGES {
                    self.scopes.remove(name);
                }
            }
            if namespace.is_empty() {
                break;
            }
        }
    }

    /// Returns the number of objects of a scope at a revision, if known.
    pub(super) fn total(&self, namespace: &str, revision: i64) -> Option<i64> {
        self.scopes.get(namespace)?.count_at(revision)
    }

    /// Returns the current number of objects of a scope, if known.
    pub(super) fn current(&self, namespace: &str) -> Option<i64> {
        self.total(namespace, i64::MAX)
    }

    /// Returns the number of objects after this key, if a page that ended there recorded it.
    pub(super) fn count_after(&self, namespace: &str, revision: i64, after: &str) -> Option<i64> {
        let found = self
            .pages
            .iter()
            .find(|page| page.revision == revision && *page.after == *after && *page.namespace == *namespace);
        found.map(|page| page.remaining)
    }

    /// Records that a page ended with this key.
    pub(super) fn record_page_end(&mut self, namespace: &str, revision: i64, after: &str, remaining: i64) {
        if self.pages.len() == PAGES {
            self.pages.pop_front();
        }
        let (namespace, after) = (namespace.into(), after.into());
        self.pages.push_back(PageEnd { namespace, revision, after, remaining });
    }
}

impl ScopeCount {
    fn apply(&mut self, revision: i64, difference: i64) {
        let sum = self.changes.back().map_or(0, |(_, sum)| *sum) + difference;
        self.changes.push_back((revision, sum));
        // All changes are needed until the count is complete.
        if self.changes.len() > CHANGES
            && let Some(total) = self.total
            && let Some((revision, sum)) = self.changes.pop_front()
        {
            // Moves the base of the count to the oldest recorded change.
            self.base_revision = revision;
            self.total = Some(total + sum);
            self.changes.iter_mut().for_each(|(_, difference)| *difference -= sum);
        }
    }

    fn count_at(&self, revision: i64) -> Option<i64> {
        let total = self.total.filter(|_| self.base_revision <= revision)?;
        let applied = self.changes.partition_point(|(changed, _)| *changed <= revision);
        Some(total + applied.checked_sub(1).map_or(0, |last| self.changes[last].1))
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
        // Objects are created and deleted during the count.
        counts.apply("a", 11, 1);
        assert_eq!(counts.total("", 11), None);
        counts.complete("", 10, 100);
        counts.complete("a", 9, 1);
        counts.complete("a", 10, 7);
        counts.apply("b", 12, -1);
        let totals = |namespace| [9, 10, 11, 12, 13].map(|revision| counts.total(namespace, revision));
        assert_eq!(totals(""), [None, Some(100), Some(101), Some(100), Some(100)]);
        assert_eq!(totals("a"), [None, Some(7), Some(8), Some(8), Some(8)]);
        assert_eq!((counts.current(""), counts.current("b")), (Some(100), None));
    }

    #[test]
    fn a_count_that_does_not_end_is_forgotten() {
        let mut counts = Counts::default();
        counts.begin("", 1);
        counts.abandon("", 2);
        assert_eq!(counts.scopes.len(), 1, "another count of the scope continues");
        counts.abandon("", 1);
        assert!(counts.scopes.is_empty());
        counts.begin("", 3);
        counts.complete("", 3, 7);
        counts.abandon("", 3);
        assert_eq!(counts.current(""), Some(7));
        counts.begin("", 4);
        (0..=PENDING_CHANGES as i64).for_each(|n| counts.apply("", 5 + n, 1));
        assert!(counts.scopes.is_empty());
    }

    #[test]
    fn stored_counts_are_limited_and_the_current_count_stays_correct() {
        let mut counts = Counts::default();
        counts.begin("", 1);
        counts.complete("", 1, 5);
        (2..=CHANGES as i64 + 11).for_each(|revision| counts.apply("", revision, 1));
        assert_eq!(counts.current(""), Some(5 + CHANGES as i64 + 10));
        assert_eq!((counts.total("", 10), counts.total("", 12)), (None, Some(16)));
        (0..SCOPES as i64 + 5).for_each(|n| counts.begin(&n.to_string(), 5_000 + n));
        assert_eq!(counts.scopes.len(), SCOPES);
        (0..PAGES as i64 + 1).for_each(|n| counts.record_page_end("a", 1, &n.to_string(), n));
        assert_eq!((counts.count_after("a", 1, "0"), counts.count_after("a", 1, "7")), (None, Some(7)));
        assert_eq!((counts.count_after("a", 2, "7"), counts.count_after("b", 1, "7")), (None, None));
    }
}
