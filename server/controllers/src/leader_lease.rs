//! Which of several servers does something: the one that holds a Lease of kube-system (upstream's `RunWithLeaderElection`, on
//! client-go's `LeaderElector`).

use std::time::Duration;

use jiff::Timestamp;
use portico_kit::tasks::TaskSet;
use portico_machinery::{GroupResource, GroupVersion, Object, Reason, Status, time};
use portico_registry::{Context, CreateOptions, ObjectRef, Part, Registry};
use tokio::sync::watch;
use tokio::time::Instant;

const NAMESPACE: &str = "kube-system";

/// How servers compete for a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeadershipTimers {
    /// How long others wait after the holder's last renewal.
    pub lease_duration: Duration,
    /// How long the holder goes on without being able to renew.
    pub renew_deadline: Duration,
    /// How long to wait between two tries.
    pub retry_period: Duration,
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
        tasks.token().run_until_cancelled(self.keep(&registry, &leads)).await;
        if leads.send_replace(false) {
            let released = self.release(&registry).await;
            let _logged =
                released.inspect_err(|status| tracing::debug!(%status, "the lease is left to expire"));
        }
    }

    async fn keep(&mut self, registry: &Registry, leads: &watch::Sender<bool>) {
        let mut renewed = Instant::now();
        loop {
            match self.attempt(registry).await {
                Ok(held) => {
                    renewed = Instant::now();
                    leads.send_if_modified(|leads| std::mem::replace(leads, held) != held);
                }
                Err(status) => {
                    tracing::debug!(lease = self.name, %status, "the lease is not renewed");
                    if renewed.elapsed() >= self.timers.renew_deadline {
                        leads.send_if_modified(std::mem::take);
                    }
                }
            }
            tokio::time::sleep(self.timers.retry_period).await;
        }
    }

    /// Whether the Lease is held now (`tryAcquireOrRenew`).
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
        match written {
            Ok(written) => {
                self.observed = Some((written.stored.object().clone(), Instant::now()));
                Ok(true)
            }
            Err(status) if matches!(status.reason(), Reason::Conflict | Reason::AlreadyExists) => Ok(false),
            Err(status) => Err(status),
        }
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
}
