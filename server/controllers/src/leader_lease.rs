//! Which of several servers does something: the one that holds a Lease of kube-system (upstream's `RunWithLeaderElection`, on
//! client-go's `LeaderElector`).

use std::time::Duration;

use jiff::Timestamp;
use portico_kit::tasks::TaskSet;
use portico_machinery::{GroupResource, GroupVersion, Object, Status, time};
use portico_registry::{Context, CreateOptions, ObjectRef, Part, Registry};
use tokio::sync::watch;
use tokio::time::Instant;

const NAMESPACE: &str = "kube-system";

/// How servers compete for a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeadershipTimers {
    /// How long others wait after the holder's last renewal.
    pub lease_duration: Duration,
    /// How long after the start of its last renewal the holder stops leading.
    pub renew_deadline: Duration,
    /// How long to wait between two tries.
    pub retry_period: Duration,
}

impl LeadershipTimers {
    /// How long what runs while leading may take to end. Another server may acquire the Lease `lease_duration` after the last
    /// renewal: half of what is left after `renew_deadline` remains as a margin.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline) / 2
    }
}

/// Acquires and renews a Lease.
pub struct LeaderLease {
    /// The Lease's name.
    name: &'static str,
    /// In whose name it is written.
    user: &'static str,
    identity: String,
    timers: LeadershipTimers,
    /// The last content of the Lease, and since when it has it.
    observed: Option<(Object, Instant)>,
}

impl LeaderLease {
    /// Of this name, written as this user. `identity` differs from that of every other start of a server.
    #[must_use]
    pub fn new(name: &'static str, user: &'static str, identity: String, timers: LeadershipTimers) -> Self {
        Self { name, user, identity, timers, observed: None }
    }

    /// Shows in `leads` whether the Lease is held, until `tasks` is cancelled; then gives it back.
    pub async fn run(mut self, registry: Registry, leads: watch::Sender<bool>, tasks: TaskSet) {
        let (name, timers) = (self.name, self.timers);
        let mut candidate = LeaseCandidate { lease: &mut self, registry: &registry };
        tasks.token().run_until_cancelled(compete(name, timers, &leads, &mut candidate)).await;
        if leads.send_replace(false) {
            let released = self.release(&registry).await;
            let _logged =
                released.inspect_err(|status| tracing::debug!(%status, "the lease is left to expire"));
        }
    }

    /// Whether the Lease is held now (`tryAcquireOrRenew`). An error leaves that open, a conflict with another write, too.
    async fn attempt(&mut self, registry: &Registry) -> Result<bool, Box<Status>> {
        let current = registry.get_stored(&self.at()).await?.map(|stored| stored.object().clone());
        let since = self.observe(current.as_ref());
        let Some(lease) =
            taken(self.name, current.as_ref(), &self.identity, since, self.timers, Timestamp::now())
        else {
            return Ok(false);
        };
        let (context, options) = (Context::internal(self.user), CreateOptions::default());
        let written = if current.is_some() {
            registry.update(&context, &leases(), Part::Main, lease, &options).await
        } else {
            registry.create(&context, &leases(), lease, &options).await
        };
        self.observed = Some((written?.stored.object().clone(), Instant::now()));
        Ok(true)
    }

    fn at(&self) -> ObjectRef {
        ObjectRef { resource: leases(), namespace: NAMESPACE.to_owned(), name: self.name.to_owned() }
    }

    /// For how long the Lease has not changed: by this clock, not by the holder's.
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

    /// `ReleaseOnCancel`: the next one need not wait.
    async fn release(&self, registry: &Registry) -> Result<(), Box<Status>> {
        let Some(lease) = registry.get_stored(&self.at()).await? else { return Ok(()) };
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
        registry.update(&context, &leases(), Part::Main, lease, &options).await.map(drop)
    }
}

/// Acquires or renews a Lease.
trait Candidate {
    /// Whether the Lease is held now. An error leaves that open.
    fn attempt(&mut self) -> impl Future<Output = Result<bool, Box<Status>>> + Send;
}

struct LeaseCandidate<'a> {
    lease: &'a mut LeaderLease,
    registry: &'a Registry,
}

impl Candidate for LeaseCandidate<'_> {
    async fn attempt(&mut self) -> Result<bool, Box<Status>> {
        self.lease.attempt(self.registry).await
    }
}

/// Attempts to acquire or renew a Lease, for ever, and shows in `leads` whether it is held: until `renew_deadline` after the start of
/// the last attempt that succeeded, however long later attempts take (client-go's `renew`).
async fn compete(
    name: &str,
    timers: LeadershipTimers,
    leads: &watch::Sender<bool>,
    candidate: &mut impl Candidate,
) {
    let mut renewed = None;
    loop {
        let begun = Instant::now();
        let deadline = renewed.unwrap_or(begun) + timers.renew_deadline;
        match tokio::time::timeout_at(deadline, candidate.attempt()).await {
            Ok(Ok(held)) => renewed = held.then_some(begun),
            Ok(Err(status)) => tracing::debug!(lease = name, %status, "the lease is not renewed"),
            Err(_) => tracing::debug!(lease = name, "the lease is not renewed: no answer in time"),
        }
        renewed = renewed.filter(|since| since.elapsed() < timers.renew_deadline);
        let held = renewed.is_some();
        leads.send_if_modified(|leads| std::mem::replace(leads, held) != held);
        let next = Instant::now() + timers.retry_period;
        tokio::time::sleep_until(renewed.map_or(next, |since| next.min(since + timers.renew_deadline))).await;
    }
}

fn leases() -> GroupResource {
    GroupResource::new("coordination.k8s.io", "leases")
}

/// The Lease as this server holds it; nothing while somebody else does. `since` is how long it has been what it is. Pure.
fn taken(
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
        let lasts = lease.at(&["spec", "leaseDurationSeconds"]).i64().unwrap_or_default();
        if !holder.is_empty() && since < Duration::from_secs(lasts.unsigned_abs()) {
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
    use super::*;

    const TIMERS: LeadershipTimers = LeadershipTimers {
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    };

    #[test]
    fn the_lease_is_taken_when_it_is_free_and_kept_while_it_is_held() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let take = |lease: Option<&Object>, who, since| {
            taken("l", lease, who, Duration::from_secs(since), TIMERS, at(1_000))
        };
        let first = take(None, "a", 0).unwrap();
        assert_eq!(first.at(&["spec", "holderIdentity"]).str(), "a");
        assert_eq!(first.at(&["spec", "leaseDurationSeconds"]).i64(), Some(15));
        assert_eq!(first.at(&["spec", "leaseTransitions"]).i64(), Some(0));
        assert_eq!(take(Some(&first), "b", 14), None);
        let second = take(Some(&first), "b", 15).unwrap();
        assert_eq!(second.at(&["spec", "leaseTransitions"]).i64(), Some(1));
        let later = taken("l", Some(&second), "b", Duration::ZERO, TIMERS, at(2_000)).unwrap();
        assert!(later.at(&["spec", "acquireTime"]).same_as(&second.at(&["spec", "acquireTime"])));
        assert_eq!(later.at(&["spec", "renewTime"]).str(), "1970-01-01T00:33:20.000000Z");
        let mut free = second.clone();
        free.set(&["spec", "holderIdentity"], "");
        assert!(take(Some(&free), "c", 0).is_some());
    }

    /// What becomes of an attempt.
    #[derive(Clone, Copy)]
    enum Then {
        Held,
        OfAnother,
        Conflict,
        Hang,
    }

    /// Attempts that end like this, the last one for ever.
    struct Script(std::collections::VecDeque<Then>);

    impl Candidate for Script {
        async fn attempt(&mut self) -> Result<bool, Box<Status>> {
            let then = if self.0.len() > 1 { self.0.pop_front() } else { self.0.front().copied() };
            match then.unwrap() {
                Then::Held => Ok(true),
                Then::OfAnother => Ok(false),
                Then::Conflict => Err(Box::new(Status::conflict(&leases(), "l", "changed"))),
                Then::Hang => std::future::pending().await,
            }
        }
    }

    /// When leadership begins and ends within 100 seconds.
    async fn changes(attempts: &[Then]) -> Vec<(u64, bool)> {
        let (leads, mut leading) = watch::channel(false);
        let (begun, mut seen) = (Instant::now(), Vec::new());
        let mut script = Script(attempts.iter().copied().collect());
        let watching = async {
            while leading.changed().await.is_ok() {
                seen.push((begun.elapsed().as_secs(), *leading.borrow_and_update()));
            }
        };
        let both = async { tokio::join!(compete("l", TIMERS, &leads, &mut script), watching) };
        assert!(tokio::time::timeout(Duration::from_secs(100), both).await.is_err());
        seen
    }

    #[tokio::test(start_paused = true)]
    async fn leadership_ends_before_another_server_may_take_the_lease() {
        use Then::{Conflict, Hang, Held, OfAnother};
        assert_eq!(changes([Held].as_slice()).await, [(0, true)]);
        assert_eq!(changes([OfAnother].as_slice()).await, []);
        assert_eq!(changes([Held, Held, OfAnother].as_slice()).await, [(0, true), (4, false)]);
        assert_eq!(
            changes([Held, Held, Conflict, Conflict, Held].as_slice()).await,
            [(0, true)],
            "it is retried"
        );
        for broken in [Conflict, Hang] {
            assert_eq!(
                changes([Held, Held, broken].as_slice()).await,
                [(0, true), (12, false)],
                "renewed at 2 s"
            );
        }
        assert_eq!(changes([Held, Hang, Held].as_slice()).await, [(0, true), (10, false), (12, true)]);
        assert!(TIMERS.renew_deadline + TIMERS.grace() < TIMERS.lease_duration);
    }
}
