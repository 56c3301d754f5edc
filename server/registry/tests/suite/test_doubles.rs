//! Test doubles of admission and other interfaces of the registry.

use parking_lot::Mutex;
use portico_machinery::connect::Security;
use portico_machinery::route::Target as RouteTarget;
use portico_machinery::{Object, Status};
use portico_registry::{
    Admission, Attributes, BackendAddresses, Objects, Operation, QuotaCommit, ResultFuture, Write,
};
use portico_store::{Operation as StoreOperation, Txn};

/// Admission that records every call.
#[derive(Default)]
pub struct Recorder {
    calls: Mutex<Vec<String>>,
    /// Function applied to each object in mutating admission.
    change: Option<fn(Attributes<'_>, &mut Object)>,
    /// Name of the object whose deletion is refused.
    undeletable: Option<&'static str>,
}

impl Recorder {
    /// Admission that changes objects by this function.
    pub fn with_change(change: fn(Attributes<'_>, &mut Object)) -> Self {
        Self { change: Some(change), ..Self::default() }
    }

    /// Admission that refuses the deletion of an object.
    pub fn refusing_deletion(name: &'static str) -> Self {
        Self { undeletable: Some(name), ..Self::default() }
    }

    fn record(&self, step: &str, attributes: &Attributes<'_>, objects: [bool; 2]) {
        let Attributes { operation, served_resource, namespace, name, context, .. } = attributes;
        let resource = &served_resource.resource.resource;
        let subresource = attributes.subresource();
        let dry_run = if attributes.is_dry_run() { " dry run" } else { "" };
        let [new, old] = objects.map(u8::from);
        let user = &context.user.name;
        let line = format!(
            "{step} {operation:?} {resource}/{subresource} {namespace}/{name} new={new} old={old} by {user}{dry_run}"
        );
        self.calls.lock().push(line);
    }

    /// Returns and clears the recorded calls.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock())
    }
}

impl Admission for Recorder {
    fn mutate<'a>(
        &'a self,
        _objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a mut Object>,
        old: Option<&'a Object>,
    ) -> Option<ResultFuture<'a, Vec<String>>> {
        self.record("mutate", &attributes, [new.is_some(), old.is_some()]);
        if let (Some(change), Some(new)) = (self.change, new) {
            change(attributes, new);
        }
        None
    }

    fn validate<'a>(
        &'a self,
        _objects: &'a Objects,
        attributes: Attributes<'a>,
        new: Option<&'a Object>,
        old: Option<&'a Object>,
    ) -> Option<ResultFuture<'a, Vec<String>>> {
        self.record("validate", &attributes, [new.is_some(), old.is_some()]);
        if attributes.operation == Operation::Delete && old.map(Object::name) == self.undeletable {
            let refused =
                Status::forbidden(&attributes.served_resource.resource, attributes.name, "it stays");
            return Some(Box::pin(std::future::ready(Err(Box::new(refused)))));
        }
        None
    }

    fn check_quota<'a>(
        &'a self,
        _objects: &'a Objects,
        attributes: Attributes<'a>,
        write: Write<'a>,
    ) -> Option<ResultFuture<'a, ()>> {
        self.record("quota", &attributes, [true, write.old.is_some()]);
        None
    }

    fn commit<'a>(
        &'a self,
        _objects: &'a Objects,
        attributes: Attributes<'a>,
        write: Write<'a>,
        _txn: &'a Txn,
        _checks: &'a [StoreOperation],
    ) -> Option<ResultFuture<'a, QuotaCommit>> {
        self.record("commit", &attributes, [true, write.old.is_some()]);
        None
    }
}

/// No backends.
pub struct NoBackends;

impl BackendAddresses for NoBackends {
    fn backend_of(
        &self,
        _namespace: &str,
        _service: &str,
        _port: Option<u16>,
    ) -> Option<(Vec<RouteTarget>, Security)> {
        None
    }
}
