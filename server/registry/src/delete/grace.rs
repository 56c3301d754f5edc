//! Grace period of a deletion: duration until an object is removed, which later deletes may shorten.

use jiff::{SignedDuration, Timestamp};
use portico_machinery::{Object, time};

/// Effect of a delete on an object of a graceful kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Grace {
    /// The grace period is over: the object can be removed as soon as it has no finalizers.
    Over,
    /// The object is being deleted, and this delete changes nothing.
    Pending,
    /// The object gets this grace period.
    Period {
        /// Duration in seconds.
        seconds: i64,
        /// End of the period.
        until: Timestamp,
        /// True for the first delete of the object.
        first: bool,
    },
}

/// Computes the effect of a delete; `period` is the kind's grace period for the seconds that the caller requests.
pub(super) fn decide(
    object: &Object,
    wanted: Option<i64>,
    now: Timestamp,
    period: impl FnOnce(Option<i64>) -> i64,
) -> Grace {
    let Some(deadline) = object.deletion_timestamp() else {
        let seconds = period(wanted);
        return Grace::Period { seconds, until: later(now, seconds), first: true };
    };
    let current = object.at(&["metadata", "deletionGracePeriodSeconds"]).i64().unwrap_or(0);
    match wanted {
        _ if current == 0 => Grace::Over,
        Some(wanted) if wanted < current => {
            let deadline = time::parse(deadline).unwrap_or(now);
            match later(later(deadline, -current), wanted) {
                // A period that ended in the past is not extended, and ends now instead.
                past if past < now && wanted != 0 => Grace::Period { seconds: 1, until: now, first: false },
                past if past < now => Grace::Period { seconds: wanted, until: now, first: false },
                until => Grace::Period { seconds: wanted, until, first: false },
            }
        }
        _ => Grace::Pending,
    }
}

fn later(at: Timestamp, seconds: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grace_is_given_once_and_only_shortened() {
        let now: Timestamp = "2026-01-01T00:00:10Z".parse().unwrap();
        let mut pod = Object::default();
        let first = decide(&pod, None, now, |_| 30);
        assert_eq!(first, Grace::Period { seconds: 30, until: later(now, 30), first: true });
        pod.set(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:30Z");
        pod.set(&["metadata", "deletionGracePeriodSeconds"], 30);
        assert_eq!(decide(&pod, None, now, |_| 30), Grace::Pending);
        assert_eq!(decide(&pod, Some(60), now, |_| 60), Grace::Pending);
        let shorter = decide(&pod, Some(20), now, |_| 20);
        assert_eq!(shorter, Grace::Period { seconds: 20, until: later(now, 10), first: false });
        let past = decide(&pod, Some(5), now, |_| 5);
        assert_eq!(past, Grace::Period { seconds: 1, until: now, first: false });
        pod.set(&["metadata", "deletionGracePeriodSeconds"], 0);
        assert_eq!(decide(&pod, None, now, |_| 30), Grace::Over);
    }
}
