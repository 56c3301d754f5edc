//! Group versions whose requests are never forwarded: those that definitions and APIServices serve here, and for a grace period
//! after the last of them is removed, because other servers can still list them.

use std::collections::HashMap;
use std::time::Duration;

use portico_machinery::GroupVersion;
use tokio::time::Instant;

/// Upstream's `defaultExclusionGracePeriod`.
const GRACE: Duration = Duration::from_secs(5 * 60);

/// Excluded group versions.
#[derive(Debug, Default)]
pub(super) struct ExcludedVersions {
    /// End of the exclusion; `None` while definitions or APIServices serve the group version.
    until: HashMap<GroupVersion, Option<Instant>>,
}

impl ExcludedVersions {
    /// Updates a group version that definitions or APIServices serve here if `is_shared`. Returns true if it is excluded.
    pub(super) fn update(&mut self, gv: &GroupVersion, is_shared: bool, now: Instant) -> bool {
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

    /// Time at which the next exclusion ends.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.until.values().flatten().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_group_version_is_excluded_while_shared_and_five_minutes_longer() {
        let (mut excluded, gv, start) =
            (ExcludedVersions::default(), GroupVersion::new("g", "v1"), Instant::now());
        assert!(!excluded.update(&gv, false, start));
        assert!(excluded.update(&gv, true, start));
        assert_eq!(excluded.next_end(), None);
        assert!(excluded.update(&gv, false, start));
        assert_eq!(excluded.next_end(), Some(start + GRACE));
        assert!(excluded.update(&gv, false, start + GRACE / 2));
        assert!(!excluded.update(&gv, false, start + GRACE));
        assert_eq!(excluded.next_end(), None);
    }
}
