//! Which group versions are never another server's: those that definitions and APIServices serve here, and for a while after the
//! last of them is gone, since other servers may still show them.

use std::collections::HashMap;
use std::time::Duration;

use portico_machinery::GroupVersion;
use tokio::time::Instant;

/// Upstream's `defaultExclusionGracePeriod`.
const GRACE: Duration = Duration::from_secs(5 * 60);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Excluded {
    /// Until when; nothing while they are served.
    until: HashMap<GroupVersion, Option<Instant>>,
}

impl Excluded {
    /// Whether the group version is none of a peer's, now that it is served here by definitions or APIServices or is not.
    pub(super) fn looked_at(&mut self, gv: &GroupVersion, is_shared: bool, now: Instant) -> bool {
        if is_shared {
            self.until.insert(gv.clone(), None);
            return true;
        }
        let Some(until) = self.until.get_mut(gv) else { return false };
        let is_excluded = *until.get_or_insert(now + GRACE) > now;
        if !is_excluded {
            self.until.remove(gv);
        }
        is_excluded
    }

    /// When the next one ends.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.until.values().flatten().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_group_version_is_no_peers_while_it_is_shared_and_five_minutes_more() {
        let (mut excluded, gv, start) = (Excluded::default(), GroupVersion::new("g", "v1"), Instant::now());
        assert!(!excluded.looked_at(&gv, false, start));
        assert!(excluded.looked_at(&gv, true, start));
        assert_eq!(excluded.next_end(), None);
        assert!(excluded.looked_at(&gv, false, start));
        assert_eq!(excluded.next_end(), Some(start + GRACE));
        assert!(excluded.looked_at(&gv, false, start + GRACE / 2));
        assert!(!excluded.looked_at(&gv, false, start + GRACE));
        assert_eq!(excluded.next_end(), None);
    }
}
