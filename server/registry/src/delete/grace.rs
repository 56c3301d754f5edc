//! Grace period of a deletion: duration until an object is removed, which later deletes may shorten.

use jiff::{SignedDuration, Timestamp};
use portico_machinery::{Object, time};

/// Effect of a delete on an object of a graceful kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Grace {
    /// The grace period is over: the object can be removed as soon as it has no finalizers.
    Expired,
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
    requested: Option<i64>,
    now: Timestamp,
    period: impl FnOnce(Option<i64>) -> i64,
) -> Grace {
    let Some(deadline) = object.deletion_timestamp() else {
        let seconds = period(requested);
        return Grace::Period { seconds, until: add_seconds(now, seconds), first: true };
    };
    let current = object.at(&["metadata", "deletionGracePeriodSeconds"]).i64().unwrap_or(0);
    match requested {
        _ if current == 0 => Grace::Expired,
        Some(requested) if requested < current => {
            let deadline = time::parse(deadline).unwrap_or(now);
            match add_seconds(add_seconds(deadline, -current), requested) {
                // A period that ended in the past is not extended, and ends now instead.
                past if past < now && requested != 0 => {
                    Grace::Period { seconds: 1, until: now, first: false }
                }
                past if past < now => Grace::Period { seconds: requested, until: now, first: false },
                until => Grace::Period { seconds: requested, until, first: false },
            }
        }
        _ => Grace::Pending,
    }
}

fn add_seconds(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grace_period_is_set_once_and_only_shortened() {
        let now: Timestamp = "2026-01-01T00:00:10Z".parse().unwrap();
        let mut pod = Object::default();
        let first = decide(&pod, None, now, |_| 30);
        assert_eq!(first, Grace::Period { seconds: 30, until: add_seconds(now, 30), first: true });
        pod.set(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:30Z");
        pod.set(&["metadata", "deletionGracePeriodSeconds"], 30);
        assert_eq!(decide(&pod, None, now, |_| 30), Grace::Pending);
        assert_eq!(decide(&pod, Some(60), now, |_| 60), Grace::Pending);
        let shorter = decide(&pod, Some(20), now, |_| 20);
        assert_eq!(shorter, Grace::Period { seconds: 20, until: add_seconds(now, 10), first: false });
        let past = decide(&pod, Some(5), now, |_| 5);
        assert_eq!(past, Grace::Period { seconds: 1, until: now, first: false });
        pod.set(&["metadata", "deletionGracePeriodSeconds"], 0);
        assert_eq!(decide(&pod, None, now, |_| 30), Grace::Expired);
    }
}
