//! Identity of this server: the Lease `apiserver-...` in kube-system, renewed periodically (hook
//! `start-kube-apiserver-identity-lease-controller`).

pub mod lease_cleaner;
pub mod peers;

use std::net::SocketAddr;
use std::time::Duration;

use aws_lc_rs::digest::{self, SHA256};
use jiff::Timestamp;
use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_machinery::{GroupResource, GroupVersionKind, Object, Reason, Status, time};
use portico_registry::{Context, CreateOptions, DeleteOptions, ObjectPart, Registry};
use tokio::sync::watch;

use crate::write_result::ignore_reasons;

/// Upstream's `leaseDurationSeconds`.
pub const LEASE_SECONDS: i32 = 3600;
/// Upstream's renewal interval.
pub const RENEW_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum time that a stop waits for the renewal in flight, so that the removal ends within the grace period of a stop.
const STOP_WAIT: Duration = Duration::from_secs(2);

const NAMESPACE: &str = "kube-system";
const IDENTITY_LABEL: &str = "apiserver.kubernetes.io/identity";
const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
/// Upstream's `AnnotationPeerAdvertiseAddress`.
const ADDRESS_ANNOTATION: &str = "kubernetes.io/peer-advertise-address";
/// Annotation with the time of the last renewal by Portico; a different `renewTime` was written by a kube-apiserver.
pub const RENEWED_ANNOTATION: &str = portico_machinery::annotations::RENEW_TIME;
const COMPONENT: &str = "kube-apiserver";

fn leases() -> GroupResource {
    GroupResource::new("coordination.k8s.io", "leases")
}

/// Identity of this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `apiserver-` and a hash of host name and component: the name of the Lease, which does not change with a restart.
    pub id: String,
    pub hostname: String,
    /// The ID and a suffix that is different in each start.
    pub holder: String,
}

impl Identity {
    /// Creates the identity; `instance` is unique to this start of the process (a UUID).
    #[must_use]
    pub fn new(hostname: &str, instance: &str) -> Self {
        let id = id(hostname);
        Self { holder: format!("{id}_{instance}"), hostname: hostname.to_owned(), id }
    }
}

/// Returns upstream's ID: lower-case base32 of the first 16 bytes of SHA-256 over the length-prefixed host name and component.
fn id(hostname: &str) -> String {
    let mut hash = digest::Context::new(&SHA256);
    for part in [hostname, COMPONENT] {
        hash.update(&u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes());
        hash.update(part.as_bytes());
    }
    format!("apiserver-{}", base32(&hash.finish().as_ref()[..16]))
}

/// Encodes as base32 of RFC 4648, lower case, without padding.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let (mut text, mut bits, mut bit_count) = (String::new(), 0u32, 0u32);
    for byte in bytes {
        (bits, bit_count) = ((bits << 8) | u32::from(*byte), bit_count + 8);
        while bit_count >= 5 {
            bit_count -= 5;
            text.push(char::from(ALPHABET[(bits >> bit_count & 31) as usize]));
        }
    }
    if bit_count > 0 {
        text.push(char::from(ALPHABET[(bits << (5 - bit_count) & 31) as usize]));
    }
    text
}

/// Returns the Lease with its renewed fields, and the address at which peers reach this server. Other fields of the spec and
/// foreign labels do not change. Pure.
#[must_use]
pub fn renewed_lease(
    current: Option<Object>,
    identity: &Identity,
    address: Option<SocketAddr>,
    now: Timestamp,
) -> Object {
    let mut lease = current.unwrap_or_else(|| {
        let kind = GroupVersionKind {
            group: "coordination.k8s.io".into(),
            version: "v1".into(),
            kind: "Lease".into(),
        };
        let mut lease = Object::new(&kind);
        lease.set(&["metadata", "name"], &identity.id);
        lease.set(&["metadata", "namespace"], NAMESPACE);
        lease
    });
    lease.set(&["metadata", "labels", IDENTITY_LABEL], COMPONENT);
    lease.set(&["metadata", "labels", HOSTNAME_LABEL], &identity.hostname);
    if let Some(address) = address {
        lease.set(&["metadata", "annotations", ADDRESS_ANNOTATION], address.to_string());
    }
    lease.set(&["spec", "holderIdentity"], &identity.holder);
    lease.set(&["spec", "leaseDurationSeconds"], LEASE_SECONDS);
    lease.set(&["spec", "renewTime"], time::rfc3339_micro(now));
    lease.set(&["metadata", "annotations", RENEWED_ANNOTATION], time::rfc3339_micro(now));
    lease
}

/// Controller of the identity Lease.
#[derive(Clone)]
pub struct IdentityLease {
    identity: Identity,
    /// Address at which peers reach this server; `None` until it is known.
    address: watch::Receiver<Option<SocketAddr>>,
    acquired: Signal,
}

impl IdentityLease {
    /// Creates the controller without acquiring the Lease; the Lease will contain this address.
    #[must_use]
    pub fn new(identity: Identity, address: watch::Receiver<Option<SocketAddr>>) -> Self {
        Self { identity, address, acquired: Signal::new("IdentityLeaseHeld") }
    }

    /// Returns the name of the Lease.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.identity.id
    }

    /// Returns a signal that is set once the Lease is held.
    #[must_use]
    pub fn acquired(&self) -> Signal {
        self.acquired.clone()
    }

    /// Renews the Lease until `tasks` is cancelled. The Lease of the previous start is removed first, and this one at the end, as
    /// upstream does, so that peers do not use a server that has stopped. The namespace may not exist yet: failures are retried.
    pub async fn run(self, registry: Registry, tasks: TaskSet) {
        self.remove(&registry).await;
        renew_until_cancelled(&tasks, self.address.clone(), || self.attempt(&registry)).await;
        self.remove(&registry).await;
    }

    /// Removes the Lease. After a failure, the next start takes the Lease over, or it expires.
    async fn remove(&self, registry: &Registry) {
        let removed = registry
            .delete(
                &Context::internal("system:apiserver"),
                &leases(),
                NAMESPACE,
                &self.identity.id,
                &DeleteOptions::default(),
            )
            .await;
        if let Err(status) = ignore_reasons(removed, &[Reason::NotFound]) {
            tracing::warn!(
                lease = self.identity.id,
                error = %status,
                "cannot delete the identity lease, lease left to expire"
            );
        }
    }

    /// Renews once. Returns true if the Lease is held.
    async fn attempt(&self, registry: &Registry) -> bool {
        let lease = &self.identity.id;
        let status = match tokio::time::timeout(RENEW_INTERVAL, self.renew(registry)).await {
            Ok(Ok(())) => {
                self.acquired.signal();
                return true;
            }
            Ok(Err(status)) => status,
            Err(_) => Box::new(Status::timeout("request to the store timed out")),
        };
        if status.reason() == Reason::NotFound && !self.acquired.is_signaled() {
            tracing::debug!(
                lease,
                error = %status,
                "namespace of the identity lease does not exist yet, retrying"
            );
        } else {
            tracing::warn!(lease, error = %status, "identity lease renewal failed, retrying");
        }
        false
    }

    async fn renew(&self, registry: &Registry) -> Result<(), Box<Status>> {
        let (context, resource) = (Context::internal("system:apiserver"), leases());
        let current = match registry.get(&resource, NAMESPACE, &self.identity.id).await {
            Ok(stored) => Some(stored.object().clone()),
            Err(status) if status.reason() == Reason::NotFound => None,
            Err(status) => return Err(status),
        };
        let (exists, options) = (current.is_some(), CreateOptions::default());
        let address = *self.address.borrow();
        let lease = renewed_lease(current, &self.identity, address, Timestamp::now());
        if exists {
            registry.update(&context, &resource, ObjectPart::Main, lease, &options).await.map(drop)
        } else {
            registry.create(&context, &resource, lease, &options).await.map(drop)
        }
    }
}

/// Renews at intervals, and at once after a change of the address, until `tasks` is cancelled. Awaits a renewal in flight: its
/// write could otherwise commit after the next renewal has read that there is no Lease, or after the removal. A stop waits
/// at most [`STOP_WAIT`].
async fn renew_until_cancelled<R: Future<Output = bool>>(
    tasks: &TaskSet,
    mut address: watch::Receiver<Option<SocketAddr>>,
    mut renew: impl FnMut() -> R,
) {
    let stop = tasks.token();
    let mut backoff = Backoff::new(BackoffPolicy { max: Duration::from_secs(7), ..BackoffPolicy::RECONNECT });
    while !stop.is_cancelled() {
        address.mark_unchanged();
        let stopped = async {
            stop.cancelled().await;
            tokio::time::sleep(STOP_WAIT).await;
        };
        let renewed = tokio::select! {
            renewed = renew() => renewed,
            () = stopped => return,
        };
        let wait = backoff.wait_after(renewed, RENEW_INTERVAL);
        let next = async {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                Ok(()) = address.changed() => {}
            }
        };
        stop.run_until_cancelled(next).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_new_address_and_a_stop_wait_for_the_renewal_in_flight() {
        let (tasks, (address, addresses)) = (TaskSet::new(), watch::channel(None));
        let (test_start, renewals) = (Instant::now(), RefCell::new(Vec::new()));
        let renew = || async {
            let start = test_start.elapsed().as_secs();
            sleep(Duration::from_secs(3)).await;
            renewals.borrow_mut().push((start, test_start.elapsed().as_secs()));
            true
        };
        let changes = async {
            sleep(Duration::from_secs(1)).await;
            address.send_replace("192.0.2.1:6443".parse().ok());
            sleep(Duration::from_secs(4)).await;
            tasks.cancel();
        };
        tokio::join!(renew_until_cancelled(&tasks, addresses, renew), changes);
        assert_eq!(*renewals.borrow(), [(0, 3), (3, 6)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_does_not_wait_for_a_renewal_that_hangs() {
        let (tasks, addresses) = (TaskSet::new(), watch::channel(None).1);
        let start = Instant::now();
        let stops = async {
            sleep(Duration::from_secs(5)).await;
            tasks.cancel();
        };
        tokio::join!(renew_until_cancelled(&tasks, addresses, std::future::pending::<bool>), stops);
        assert_eq!(start.elapsed(), Duration::from_secs(5) + STOP_WAIT);
    }

    #[test]
    fn base32_matches_rfc_4648() {
        for (bytes, text) in [("", ""), ("f", "my"), ("fo", "mzxq"), ("foobar", "mzxw6ytboi")] {
            assert_eq!(base32(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn the_id_depends_on_the_host_alone() {
        let (a, b) = (Identity::new("host", "1"), Identity::new("host", "2"));
        assert_eq!(a.id, b.id);
        assert_ne!(a.holder, b.holder);
        assert!(a.id.len() == "apiserver-".len() + 26 && a.holder.starts_with(&a.id));
        assert_ne!(a.id, Identity::new("host2", "1").id);
    }

    #[test]
    fn a_renewal_keeps_fields_of_other_writers() {
        let identity = Identity::new("host", "1");
        let now = Timestamp::from_second(0).unwrap();
        let address = "192.0.2.1:6443".parse().ok();
        let mut lease = renewed_lease(None, &identity, address, now);
        let path = ["metadata", "annotations", "kubernetes.io/peer-advertise-address"];
        assert_eq!(lease.at(&path).str(), "192.0.2.1:6443");
        assert_eq!(lease.at(&["spec", "renewTime"]).str(), "1970-01-01T00:00:00.000000Z");
        assert_eq!(lease.label("apiserver.kubernetes.io/identity"), Some("kube-apiserver"));
        lease.set(&["metadata", "labels", "mine"], "x");
        lease.set(&["spec", "leaseTransitions"], 3);
        let renewed = renewed_lease(Some(lease), &identity, None, Timestamp::from_second(10).unwrap());
        assert_eq!(renewed.at(&path).str(), "192.0.2.1:6443");
        assert_eq!(
            (renewed.label("mine"), renewed.at(&["spec", "leaseTransitions"]).i64()),
            (Some("x"), Some(3))
        );
        assert_eq!(renewed.at(&["spec", "renewTime"]).str(), "1970-01-01T00:00:10.000000Z");
    }
}
