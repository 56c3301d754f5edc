//! Reports the storage version of each built-in resource (hook `built-in-resources-storage-version-updater`).
//!
//! There is one StorageVersion object per resource, with an entry per server: a migrator waits until all servers agree. Until the
//! first report is complete, [`StorageVersions::refusal`] refuses writes, so that no object is stored in an unreported version.

mod storage_version;
mod write_gate;

pub use storage_version::Registration;
pub use storage_version::updated;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use parking_lot::RwLock;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_machinery::{GroupResource, GroupVersion, GroupVersionKind, Object, Reason, Status};
use portico_registry::{Context, CreateOptions, ObjectPart, Registry, UpdateOptions};

use crate::periodic::at_intervals;

pub const GROUP: &str = "internal.apiserver.k8s.io";
pub const RESOURCE: &str = "storageversions";
/// Upstream's interval, at which changed or deleted objects are restored.
const PERIOD: Duration = Duration::from_secs(600);
/// Maximum attempts per object in one pass, after conflicts with other writers.
const MAX_ATTEMPTS: u32 = 3;

/// Reporter of storage versions.
#[derive(Clone)]
pub struct StorageVersions {
    shared: Arc<Shared>,
}

struct Shared {
    server: String,
    registrations: Vec<Registration>,
    /// Resources whose StorageVersion is not written yet, with the last error, if any.
    pending: RwLock<HashMap<GroupResource, Option<String>>>,
    /// Set after the first pass without errors.
    reported: Signal,
}

impl StorageVersions {
    /// Creates the reporter; writes of these resources are refused until they are reported. `server` is this server's identity.
    #[must_use]
    pub fn new(server: impl Into<String>, registrations: Vec<Registration>) -> Self {
        let pending =
            registrations.iter().flat_map(|r| r.covers.iter().cloned().map(|covered| (covered, None)));
        Self {
            shared: Arc::new(Shared {
                server: server.into(),
                pending: RwLock::new(pending.collect()),
                registrations,
                reported: Signal::new("StorageVersionsReported"),
            }),
        }
    }

    /// Returns a signal that is set once all resources are reported and no writes are refused.
    #[must_use]
    pub fn reported(&self) -> Signal {
        self.shared.reported.clone()
    }

    /// Reports every ten minutes until `tasks` is cancelled. Starts once `lease_held` is set: entries of servers without an
    /// identity lease are garbage collected.
    pub async fn run(self, registry: Registry, lease_held: Signal, tasks: TaskSet) {
        let report_loop = async {
            lease_held.signaled().await;
            at_intervals(PERIOD, BackoffPolicy::RECONNECT, || async {
                let is_complete = self.report_all(&registry).await;
                if is_complete {
                    self.shared.reported.signal();
                }
                is_complete
            })
            .await;
        };
        tasks.token().run_until_cancelled(report_loop).await;
    }

    /// Reports all resources. Returns true if all objects are up to date.
    async fn report_all(&self, registry: &Registry) -> bool {
        // Concurrent writes share commits.
        let reports =
            self.shared.registrations.iter().map(|registration| self.report_one(registry, registration));
        join_all(reports).await.into_iter().all(|done| done)
    }

    async fn report_one(&self, registry: &Registry, registration: &Registration) -> bool {
        let mut result = Ok(());
        for _ in 0..MAX_ATTEMPTS {
            result = self.write(registry, registration).await;
            let retry = |s: &Status| matches!(s.reason(), Reason::AlreadyExists | Reason::Conflict);
            if !result.as_ref().is_err_and(|status| retry(status)) {
                break;
            }
        }
        let mut pending = self.shared.pending.write();
        for covered in &registration.covers {
            match &result {
                Ok(()) => drop(pending.remove(covered)),
                Err(status) => {
                    // A resource that was reported once is not refused again.
                    if let Some(error) = pending.get_mut(covered) {
                        *error = Some(status.to_string());
                    }
                }
            }
        }
        if let Err(status) = &result {
            tracing::warn!(
                resource = %registration.resource,
                error = %status,
                "cannot report the storage version, retrying"
            );
        }
        result.is_ok()
    }

    async fn write(&self, registry: &Registry, registration: &Registration) -> Result<(), Box<Status>> {
        let (context, resource) = (Context::system("system:apiserver"), GroupResource::new(GROUP, RESOURCE));
        let current = match registry.get(&resource, "", &registration.name()).await {
            Ok(stored) => stored.object().clone(),
            Err(status) if status.reason() == Reason::NotFound => {
                let options = CreateOptions::default();
                let object = new_storage_version(registration);
                registry.create(&context, &resource, object, &options).await?.stored.object().clone()
            }
            Err(status) => return Err(status),
        };
        let desired = updated(&current, &self.shared.server, registration, Timestamp::now());
        if desired == current {
            return Ok(());
        }
        let part = ObjectPart::Subresource("status");
        registry.update(&context, &resource, part, desired, &UpdateOptions::default()).await.map(drop)
    }
}

fn new_storage_version(registration: &Registration) -> Object {
    let kind = GroupVersion::new(GROUP, "v1alpha1");
    let kind =
        GroupVersionKind { group: kind.group, version: kind.version, kind: "StorageVersion".to_owned() };
    let mut object = Object::new(&kind);
    object.set(&["metadata", "name"], registration.name());
    object
}
