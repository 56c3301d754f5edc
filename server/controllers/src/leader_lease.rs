//! Leader election among several servers with a Lease in kube-system (upstream's `RunWithLeaderElection`, with client-go's
//! `LeaderElector`).

use std::time::Duration;

use jiff::Timestamp;
use portico_kit::tasks::TaskSet;
use portico_machinery::{GroupResource, GroupVersion, Object, Reason, Status, time};
use portico_registry::{Context, CreateOptions, ObjectPart, ObjectRef, Registry};
use tokio::sync::watch;
use tokio::time::Instant;

const NAMESPACE: &str = "kube-system";

/// Timing of a leader election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeadershipTimers {
    /// Time after the holder's last renewal before another server may acquire the Lease.
    pub lease_duration: Duration,
    /// Time from the start of the last renewal until the holder stops leading.
    pub renew_deadline: Duration,
    /// Delay between two attempts.
    pub retry_period: Duration,
}

impl LeadershipTimers {
    /// Returns the time that the leader's work may take to stop. Another server may acquire the Lease `lease_duration` after the
    /// last renewal: half of the time after `renew_deadline` remains as a margin.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline) / 2
    }
}

/// Client that acquires and renews a Lease.
pub struct LeaderLease {
    /// Name of the Lease.
    name: &'static str,
    /// User name of the writes.
    user: &'static str,
    identity: String,
    timers: LeadershipTimers,
    /// Last observed content of the Lease, and the time at which it was first observed.
    observed: Option<(Object, Instant)>,
}

impl LeaderLease {
    /// Creates a client of the Lease `name` that writes as `user`. `identity` is unique to this start of the server.
    #[must_use]
    pub fn new(name: &'static str, user: &'static str, identity: String, timers: LeadershipTimers) -> Self {
        Self { name, user, identity, timers, observed: None }
    }

    /// Acquires and renews the Lease until `tasks` is cancelled, then releases it. `leads` is true while the Lease is held.
    pub async fn run(mut self, registry: Registry, leads: watch::Sender<bool>, tasks: TaskSet) {
        let (name, timers) = (self.name, self.timers);
        let mut candidate = LeaseCandidate { lease: &mut self, registry: &registry };
        acquire_and_renew(name, timers, &leads, &mut candidate, &tasks).await;
        release(name, timers, &mut candidate).await;
    }

    /// Returns true if the Lease is held now (`tryAcquireOrRenew`). After an error or a conflict this is unknown.
    async fn attempt(&mut self, registry: &Registry) -> Result<bool, Box<Status>> {
        let current = registry.get_stored(&self.lease_ref()).await?.map(|stored| stored.object().clone());
        let since = self.observe(current.as_ref());
        let Some(lease) =
            acquired_lease(self.name, current.as_ref(), &self.identity, since, self.timers, Timestamp::now())
        else {
            return Ok(false);
        };
        let (context, options) = (Context::internal(self.user), CreateOptions::default());
        let written = if current.is_some() {
            registry.update(&context, &leases(), ObjectPart::Main, lease, &options).await
        } else {
            registry.create(&context, &leases(), lease, &options).await
        };
        self.observed = Some((written?.stored.object().clone(), Instant::now()));
        Ok(true)
    }

    fn lease_ref(&self) -> ObjectRef {
        ObjectRef { resource: leases(), namespace: NAMESPACE.to_owned(), name: self.name.to_owned() }
    }

    /// Returns the time for which the Lease has not changed, by the local clock instead of the holder's.
    fn observe(&mut self, current: Option<&Object>) -> Duration {
        let Some(current) = current else { return Duration::ZERO };
        match &self.observed {
            Some((seen, since)) if seen.at(&["spec"]).same_as(&current.at(&["spec"])) => since.elapsed(),
            _ => {
                self.observed = Some((current.clone(), Instant::now()));
                Duration::ZERO
            }
        }
    }

    /// Releases the Lease, so that other servers need not wait for its expiry (`ReleaseOnCancel`).
    async fn release(&self, registry: &Registry) -> Result<(), Box<Status>> {
        let Some(lease) = registry.get_stored(&self.lease_ref()).await? else { return Ok(()) };
        let mut lease = lease.object().clone();
        if lease.at(&["spec", "holderIdentity"]).str() != self.identity {
            return Ok(());
        }
        lease.set(&["spec", "holderIdentity"], "");
        lease.set(&["spec", "leaseDurationSeconds"], 1);
        for field in ["renewTime", "acquireTime"] {
            lease.set(&["spec", field], time::rfc3339_micro(Timestamp::now()));
        }
        let (context, options) = (Context::internal(self.user), CreateOptions::default());
        registry.update(&context, &leases(), ObjectPart::Main, lease, &options).await.map(drop)
    }
}

/// Acquires or renews a Lease.
trait Candidate {
    /// Returns true if the Lease is held now; after an error this is unknown.
    fn attempt(&mut self) -> impl Future<Output = Result<bool, Box<Status>>> + Send;
    /// Releases the Lease if it is held.
    fn release(&mut self) -> impl Future<Output = Result<(), Box<Status>>> + Send;
}

struct LeaseCandidate<'a> {
    lease: &'a mut LeaderLease,
    registry: &'a Registry,
}

impl Candidate for LeaseCandidate<'_> {
    async fn attempt(&mut self) -> Result<bool, Box<Status>> {
        self.lease.attempt(self.registry).await
    }

    async fn release(&mut self) -> Result<(), Box<Status>> {
        self.lease.release(self.registry).await
    }
}

/// Attempts to acquire or renew a Lease until `tasks` is cancelled, and sets `leads` while it is held: until `renew_deadline`
/// after the start of the last successful attempt, regardless of the duration of later attempts (client-go's `renew`).
async fn acquire_and_renew(
    name: &str,
    timers: LeadershipTimers,
    leads: &watch::Sender<bool>,
    candidate: &mut impl Candidate,
    tasks: &TaskSet,
) {
    let token = tasks.token();
    let mut renewed = None;
    while !token.is_cancelled() {
        let attempt_start = Instant::now();
        let deadline = renewed.unwrap_or(attempt_start) + timers.renew_deadline;
        // Not dropped on cancellation: its write could commit after the release.
        match tokio::time::timeout_at(deadline, candidate.attempt()).await {
            Ok(Ok(held)) => renewed = held.then_some(attempt_start),
            Ok(Err(status)) => {
                tracing::debug!(lease = name, error = %status, "lease renewal failed, retrying")
            }
            Err(_) => tracing::debug!(lease = name, "lease renewal timed out, retrying"),
        }
        renewed = renewed.filter(|since| since.elapsed() < timers.renew_deadline);
        let is_held = renewed.is_some();
        leads.send_if_modified(|leads| std::mem::replace(leads, is_held) != is_held);
        let next = Instant::now() + timers.retry_period;
        let next = renewed.map_or(next, |since| next.min(since + timers.renew_deadline));
        token.run_until_cancelled(tokio::time::sleep_until(next)).await;
    }
    leads.send_replace(false);
}

/// Releases the Lease within `renew_deadline`. A conflict means that a renewal committed after its timeout.
async fn release(name: &str, timers: LeadershipTimers, candidate: &mut impl Candidate) {
    let released = async {
        loop {
            match candidate.release().await {
                Err(status) if status.reason() == Reason::Conflict => {
                    tokio::time::sleep(timers.retry_period).await;
                }
                released => return released,
            }
        }
    };
    match tokio::time::timeout(timers.renew_deadline, released).await {
        Ok(Ok(())) => {}
        Ok(Err(status)) => {
            tracing::debug!(lease = name, error = %status, "lease release failed, lease left to expire")
        }
        Err(_) => tracing::debug!(lease = name, "lease release timed out, lease left to expire"),
    }
}

fn leases() -> GroupResource {
    GroupResource::new("coordination.k8s.io", "leases")
}

/// Returns the Lease acquired or renewed by this server; `None` while another server holds it. `since` is the time since the
/// last change of the Lease. Pure.
fn acquired_lease(
    name: &str,
    current: Option<&Object>,
    identity: &str,
    since: Duration,
    timers: LeadershipTimers,
    now: Timestamp,
) -> Option<Object> {
    let now = time::rfc3339_micro(now);
    let mut lease = current.cloned().unwrap_or_else(|| {
        let mut lease = Object::new(&GroupVersion::new("coordination.k8s.io", "v1").kind("Lease"));
        lease.set(&["metadata", "namespace"], NAMESPACE);
        lease.set(&["metadata", "name"], name);
        lease
    });
    let holder = lease.at(&["spec", "holderIdentity"]).str().to_owned();
    if holder != identity {
        let duration = lease.at(&["spec", "leaseDurationSeconds"]).i64().unwrap_or_default();
        if !holder.is_empty() && since < Duration::from_secs(duration.unsigned_abs()) {
            return None;
        }
        let transitions = lease.at(&["spec", "leaseTransitions"]).i64().unwrap_or_default();
        lease.set(&["spec", "leaseTransitions"], if current.is_some() { transitions + 1 } else { 0 });
        lease.set(&["spec", "acquireTime"], &now);
    }
    lease.set(&["spec", "holderIdentity"], identity);
    lease.set(&["spec", "leaseDurationSeconds"], timers.lease_duration.as_secs());
    lease.set(&["spec", "renewTime"], &now);
    Some(lease)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const TIMERS: LeadershipTimers = LeadershipTimers {
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    };

    #[test]
    fn a_free_lease_is_acquired_and_a_held_one_is_renewed() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let acquire = |lease: Option<&Object>, identity, since| {
            acquired_lease("l", lease, identity, Duration::from_secs(since), TIMERS, at(1_000))
        };
        let first = acquire(None, "a", 0).unwrap();
        assert_eq!(first.at(&["spec", "holderIdentity"]).str(), "a");
        assert_eq!(first.at(&["spec", "leaseDurationSeconds"]).i64(), Some(15));
        assert_eq!(first.at(&["spec", "leaseTransitions"]).i64(), Some(0));
        assert_eq!(acquire(Some(&first), "b", 14), None);
        let second = acquire(Some(&first), "b", 15).unwrap();
        assert_eq!(second.at(&["spec", "leaseTransitions"]).i64(), Some(1));
        let later = acquired_lease("l", Some(&second), "b", Duration::ZERO, TIMERS, at(2_000)).unwrap();
        assert!(later.at(&["spec", "acquireTime"]).same_as(&second.at(&["spec", "acquireTime"])));
        assert_eq!(later.at(&["spec", "renewTime"]).str(), "1970-01-01T00:33:20.000000Z");
        let mut free = second.clone();
        free.set(&["spec", "holderIdentity"], "");
        assert!(acquire(Some(&free), "c", 0).is_some());
    }

    #[derive(Clone, Copy)]
    enum AttemptResult {
        Held,
        HeldByOther,
        Conflict,
        Hang,
        /// The Lease is held after three seconds.
        Slow,
    }

    /// Results of attempts, of which the last repeats, and of releases.
    #[derive(Default)]
    struct Script {
        attempts: VecDeque<AttemptResult>,
        releases: VecDeque<AttemptResult>,
        ended: Vec<&'static str>,
    }

    impl Script {
        fn with_attempts(attempts: &[AttemptResult]) -> Self {
            Self { attempts: attempts.iter().copied().collect(), ..Self::default() }
        }
    }

    impl Candidate for Script {
        async fn attempt(&mut self) -> Result<bool, Box<Status>> {
            let attempts = &mut self.attempts;
            let result = if attempts.len() > 1 { attempts.pop_front() } else { attempts.front().copied() };
            let outcome = match result.unwrap() {
                AttemptResult::Held => Ok(true),
                AttemptResult::HeldByOther => Ok(false),
                AttemptResult::Conflict => Err(Box::new(Status::conflict(&leases(), "l", "changed"))),
                AttemptResult::Hang => std::future::pending().await,
                AttemptResult::Slow => {
                    tokio::time::sleep(Duration::from_secs(3)).await;
                    Ok(true)
                }
            };
            self.ended.push("attempt");
            outcome
        }

        async fn release(&mut self) -> Result<(), Box<Status>> {
            self.ended.push("release");
            match self.releases.pop_front() {
                Some(AttemptResult::Conflict) => Err(Box::new(Status::conflict(&leases(), "l", "changed"))),
                Some(AttemptResult::Hang) => std::future::pending().await,
                _ => Ok(()),
            }
        }
    }

    /// Returns the seconds at which leadership begins and ends, within 100 seconds.
    async fn changes(attempts: &[AttemptResult]) -> Vec<(u64, bool)> {
        let (leads, mut leading) = watch::channel(false);
        let (start, mut seen) = (Instant::now(), Vec::new());
        let (mut script, tasks) = (Script::with_attempts(attempts), TaskSet::new());
        let watching = async {
            while leading.changed().await.is_ok() {
                seen.push((start.elapsed().as_secs(), *leading.borrow_and_update()));
            }
        };
        let both =
            async { tokio::join!(acquire_and_renew("l", TIMERS, &leads, &mut script, &tasks), watching) };
        assert!(tokio::time::timeout(Duration::from_secs(100), both).await.is_err());
        seen
    }

    #[tokio::test(start_paused = true)]
    async fn leadership_ends_before_another_server_may_take_the_lease() {
        use AttemptResult::{Conflict, Hang, Held, HeldByOther};
        assert_eq!(changes([Held].as_slice()).await, [(0, true)]);
        assert_eq!(changes([HeldByOther].as_slice()).await, []);
        assert_eq!(changes([Held, Held, HeldByOther].as_slice()).await, [(0, true), (4, false)]);
        assert_eq!(
            changes([Held, Held, Conflict, Conflict, Held].as_slice()).await,
            [(0, true)],
            "conflicts are retried"
        );
        for broken in [Conflict, Hang] {
            assert_eq!(
                changes([Held, Held, broken].as_slice()).await,
                [(0, true), (12, false)],
                "the last renewal was at 2 s"
            );
        }
        assert_eq!(changes([Held, Hang, Held].as_slice()).await, [(0, true), (10, false), (12, true)]);
        assert!(TIMERS.renew_deadline + TIMERS.grace() < TIMERS.lease_duration);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_released_after_the_renewal_in_flight() {
        use AttemptResult::{Conflict, Hang, Held, Slow};
        for (attempts, releases, expected) in [
            (&[Held, Slow], &[][..], ["attempt", "attempt", "release"].as_slice()),
            // The first attempt to acquire is in flight.
            (&[Slow, Held], &[], &["attempt", "release"]),
            (&[Held, Hang], &[Conflict, Conflict], &["attempt", "release", "release", "release"]),
            (&[Held, Held], &[Hang], &["attempt", "attempt", "release"]),
        ] {
            let (tasks, (leads, leading)) = (TaskSet::new(), watch::channel(false));
            let mut script =
                Script { releases: releases.iter().copied().collect(), ..Script::with_attempts(attempts) };
            let running = async {
                acquire_and_renew("l", TIMERS, &leads, &mut script, &tasks).await;
                assert!(!*leading.borrow());
                release("l", TIMERS, &mut script).await;
            };
            let stopping = async {
                tokio::time::sleep(Duration::from_millis(2_500)).await;
                tasks.cancel();
            };
            tokio::time::timeout(Duration::from_secs(30), async { tokio::join!(running, stopping) })
                .await
                .unwrap();
            assert_eq!(script.ended, expected);
        }
    }
}
