//! Start of a new epoch of a store: after every revision that any client can have seen.

/// Default distance from the last known revision to the start of a new epoch: more than the writes since a backup was taken.
/// etcdutl's documentation recommends the same number.
pub const DEFAULT_REVISION_BUMP: i64 = 1_000_000_000;

/// Greatest revision at which an epoch may begin: leaves as many revisions for the epoch.
const MAX_REVISION: i64 = i64::MAX / 2;

/// Returns the epoch and revision at which a new epoch begins, `bump` after the greatest known ones; `None` if
/// no revisions are left.
pub(crate) fn next_epoch(epoch: i64, revision: i64, bump: i64) -> Option<(i64, i64)> {
    let revision = revision.checked_add(bump.max(1)).filter(|revision| *revision <= MAX_REVISION)?;
    Some((epoch.checked_add(1)?, revision))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_epoch_begins_after_all_known_revisions_or_fails() {
        assert_eq!(next_epoch(1, 5, 10), Some((2, 15)));
        assert_eq!(next_epoch(1, 5, -3), Some((2, 6)));
        assert_eq!(next_epoch(1, MAX_REVISION - 1, 1), Some((2, MAX_REVISION)));
        assert_eq!(next_epoch(1, MAX_REVISION, 1), None);
        assert_eq!(next_epoch(1, i64::MAX, 1), None);
        assert_eq!(next_epoch(i64::MAX, 1, 1), None);
    }
}
