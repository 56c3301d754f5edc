//! Where a new epoch of a store begins: past everything that anybody can have seen.

/// How far the revision is moved past the last one that is known, by default: further than writes can have
/// gone on since a backup was taken. etcdutl's documentation recommends the same number.
pub const DEFAULT_REVISION_BUMP: i64 = 1_000_000_000;

/// The greatest revision that an epoch may begin at: as many are left for it.
const MAX_REVISION: i64 = i64::MAX / 2;

/// Epoch and revision at which a new epoch begins, `bump` past the greatest that are known; none when no revisions are left.
pub(crate) fn after(epoch: i64, revision: i64, bump: i64) -> Option<(i64, i64)> {
    let revision = revision.checked_add(bump.max(1)).filter(|revision| *revision <= MAX_REVISION)?;
    Some((epoch.checked_add(1)?, revision))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_begins_past_what_is_known_or_not_at_all() {
        assert_eq!(after(1, 5, 10), Some((2, 15)));
        assert_eq!(after(1, 5, -3), Some((2, 6)));
        assert_eq!(after(1, MAX_REVISION - 1, 1), Some((2, MAX_REVISION)));
        assert_eq!(after(1, MAX_REVISION, 1), None);
        assert_eq!(after(1, i64::MAX, 1), None);
        assert_eq!(after(i64::MAX, 1, 1), None);
    }
}
