//! Executes decisions about slices.

use portico_kit::metrics::{self, Desc};
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::{Context, CreateOptions, DeleteOptions, ObjectPart, Registry, UpdateOptions};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::slice::Slice;
use super::trigger_times;
use crate::account::NamespacedName;
use crate::write_result::is_namespace_terminating;

/// Writes of slices, executed in this order.
#[derive(Clone, Debug, Default)]
pub struct SliceChanges {
    /// Slices to create.
    pub create: Vec<Slice>,
    /// Slices to replace.
    pub update: Vec<Slice>,
    /// Slices to delete.
    pub delete: Vec<Slice>,
}

impl SliceChanges {
    /// Returns the number of writes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.create.len() + self.update.len() + self.delete.len()
    }

    /// Returns true if there are no writes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Replaces deletions by updates with the content of created slices, for pairs that `may` allows: one write instead of two.
    pub fn recycle(&mut self, mut may: impl FnMut(&Slice, &Slice) -> bool) {
        let mut remaining = Vec::new();
        for old in std::mem::take(&mut self.delete) {
            match self.create.iter().rposition(|new| may(&old, new)) {
                Some(index) => {
                    let mut new = self.create.remove(index);
                    new.name = old.name;
                    self.update.push(new);
                }
                None => remaining.push(old),
            }
        }
        self.delete = remaining;
    }

    /// Sets the annotation with the time of the change that caused the writes.
    pub fn set_trigger_time(&mut self, time: Option<&str>) {
        const PATH: [&str; 3] = ["metadata", "annotations", trigger_times::ANNOTATION];
        for slice in self.create.iter_mut().chain(&mut self.update) {
            match time {
                Some(time) => slice.object.set(&PATH, time),
                None => {
                    slice.object.remove(&PATH);
                }
            }
        }
    }
}

/// Counter of writes, with the metric name of one controller.
#[derive(Clone)]
pub struct ChangeMetrics(Family<[(&'static str, &'static str); 1], Counter>);

impl ChangeMetrics {
    /// Registers a counter with the label `operation`.
    #[must_use]
    pub fn new(registry: &metrics::Registry, desc: Desc) -> Self {
        Self(registry.counter_vec(desc))
    }

    fn count(&self, operation: &'static str) {
        self.0.get_or_create(&[("operation", operation)]).inc();
    }
}

pub(super) fn endpoint_slices() -> GroupResource {
    GroupResource::new("discovery.k8s.io", "endpointslices")
}

/// Failed write of a slice.
#[derive(Debug, thiserror::Error)]
#[error("failed to {what} EndpointSlice for Service {of}: {status}")]
pub(super) struct SliceWriteError {
    /// Failed operation, such as `create`.
    what: String,
    of: String,
    status: Box<Status>,
}

impl From<SliceWriteError> for Box<Status> {
    fn from(error: SliceWriteError) -> Self {
        error.status
    }
}

/// Writes the slices of a Service. If creations fail because the namespace is being deleted, ends without an error.
///
/// # Errors
/// Returns the first failure.
pub(super) async fn write_changes(
    registry: &Registry,
    (context, service): (&Context, &NamespacedName),
    changes: SliceChanges,
    metrics: &ChangeMetrics,
) -> Result<(), SliceWriteError> {
    let of = format!("{}/{}", service.namespace, service.name);
    let write_error = |what: String| {
        let of = of.clone();
        move |status| SliceWriteError { what, of, status }
    };
    let resource = endpoint_slices();
    for slice in changes.create {
        let options = CreateOptions::default();
        match registry.create(context, &resource, slice.into_object(), &options).await {
            Err(status) if is_namespace_terminating(&status) => return Ok(()),
            created => created.map(|_| metrics.count("create")).map_err(write_error("create".to_owned()))?,
        }
    }
    for slice in changes.update {
        let (what, object): (_, Object) = (format!("update {}", slice.name), slice.into_object());
        let written =
            registry.update(context, &resource, ObjectPart::Main, object, &UpdateOptions::default()).await;
        written.map_err(write_error(what))?;
        metrics.count("update");
    }
    for slice in changes.delete {
        let (namespace, options) = (slice.object.namespace().to_owned(), DeleteOptions::default());
        match registry.delete(context, &resource, &namespace, &slice.name, &options).await {
            Err(status) if status.reason() == Reason::NotFound => {}
            deleted => deleted
                .map(|_| metrics.count("delete"))
                .map_err(write_error(format!("delete {}", slice.name)))?,
        }
    }
    Ok(())
}
