//! Objects that exist in every namespace: the service account `default` (`serviceaccount-controller`) and the ConfigMap
//! `kube-root-ca.crt` (`root-ca-certificate-publisher-controller`).

use std::sync::Arc;

use futures::future::BoxFuture;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::{GroupResource, GroupVersion, Object, Reason, Status};
use portico_registry::{Context, CreateOptions, ListOptions, LogEntry, ObjectPart, ObjectRef, Registry};

use crate::log::Listener;
use crate::namespace::{is_namespace, namespaces};
use crate::write_result::ignore_reasons;

const WORKERS: usize = 2;

/// Computes the object of a namespace from the current one; `None` if it is up to date.
type DesiredObject = Arc<dyn Fn(Option<&Object>) -> Option<Object> + Send + Sync>;

/// Controller of one object in every namespace that is not being deleted. Cheap to clone.
#[derive(Clone)]
pub struct PerNamespace {
    name: &'static str,
    user: &'static str,
    resource: GroupResource,
    object: &'static str,
    desired: DesiredObject,
    queue: WorkQueue<String>,
}

impl PerNamespace {
    /// Creates the controller of the service account `default`.
    #[must_use]
    pub fn service_account(metrics: &QueueMetrics) -> Self {
        Self {
            name: "serviceaccount-controller",
            user: "system:serviceaccount:kube-system:service-account-controller",
            resource: GroupResource::new("", "serviceaccounts"),
            object: "default",
            desired: Arc::new(service_account),
            queue: WorkQueue::with_metrics("serviceaccount", BackoffPolicy::CONTROLLER, metrics),
        }
    }

    /// Creates the controller of the ConfigMap with the CA (PEM) of the facade's certificate.
    #[must_use]
    pub fn root_ca(ca: String, metrics: &QueueMetrics) -> Self {
        Self {
            name: "root-ca-certificate-publisher-controller",
            user: "system:serviceaccount:kube-system:root-ca-cert-publisher",
            resource: GroupResource::new("", "configmaps"),
            object: ROOT_CA,
            desired: Arc::new(move |current| root_ca(current, &ca)),
            queue: WorkQueue::with_metrics("root_ca_cert_publisher", BackoffPolicy::CONTROLLER, metrics),
        }
    }

    /// Returns the name of the controller in kube-controller-manager.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, self.name, WORKERS, self.queue.clone(), move |namespace| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.reconcile(&registry, namespace).await }
        });
    }

    async fn reconcile(
        &self,
        registry: &Registry,
        namespace: String,
    ) -> Result<ReconcileOutcome, Box<Status>> {
        let object_ref =
            ObjectRef { resource: namespaces(), namespace: String::new(), name: namespace.clone() };
        if registry.get_stored(&object_ref).await?.is_none_or(|stored| stored.is_deleting()) {
            return Ok(ReconcileOutcome::Done);
        }
        let object_ref =
            ObjectRef { resource: self.resource.clone(), namespace, name: self.object.to_owned() };
        let current = registry.get_stored(&object_ref).await?;
        let Some(mut desired) = (self.desired)(current.as_ref().map(|stored| stored.object())) else {
            return Ok(ReconcileOutcome::Done);
        };
        desired.set(&["metadata", "namespace"], &object_ref.namespace);
        desired.set(&["metadata", "name"], self.object);
        let (context, options) = (Context::system(self.user), CreateOptions::default());
        let written = match current {
            Some(_) => registry.update(&context, &self.resource, ObjectPart::Main, desired, &options).await,
            None => registry.create(&context, &self.resource, desired, &options).await,
        };
        // Another client was faster, or the namespace is being deleted: an event follows in both cases.
        ignore_reasons(written, &[Reason::AlreadyExists, Reason::Forbidden])?;
        Ok(ReconcileOutcome::Done)
    }
}

impl Listener for PerNamespace {
    fn resync<'a>(&'a self, registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        Box::pin(async move {
            let all = registry.list(&namespaces(), "", &ListOptions::default()).await?;
            all.items.iter().for_each(|namespace| self.queue.add(namespace.name().to_owned()));
            Ok(())
        })
    }

    fn on_event(&self, change: &LogEntry) {
        let resource = change.resource();
        if *resource == self.resource && change.name() == self.object {
            self.queue.add(change.namespace().to_owned());
        } else if is_namespace(resource) && !change.is_deleted() {
            self.queue.add(change.name().to_owned());
        }
    }
}

const ROOT_CA: &str = "kube-root-ca.crt";
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the \
     internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes \
     clusters.",
);

fn new(kind: &str) -> Object {
    Object::new(&GroupVersion::new("", "v1").kind(kind))
}

fn service_account(current: Option<&Object>) -> Option<Object> {
    current.is_none().then(|| new("ServiceAccount"))
}

fn root_ca(current: Option<&Object>, ca: &str) -> Option<Object> {
    let right = |object: &&Object| {
        let data = object.at(&["data"]);
        data.entries().count() == 1
            && data.entry_str("ca.crt") == Some(ca)
            && object.annotation(DESCRIPTION.0).is_some()
    };
    if current.as_ref().is_some_and(right) {
        return None;
    }
    let mut desired = current.cloned().unwrap_or_else(|| new("ConfigMap"));
    desired.remove(&["data"]);
    desired.set(&["data", "ca.crt"], ca);
    desired.set(&["metadata", "annotations", DESCRIPTION.0], DESCRIPTION.1);
    Some(desired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correct_root_ca_is_not_changed_and_any_other_is_corrected() {
        let created = root_ca(None, "PEM").unwrap();
        assert_eq!(root_ca(Some(&created), "PEM"), None);
        assert!(root_ca(Some(&created), "OTHER").unwrap().at(&["data"]).entry_str("ca.crt") == Some("OTHER"));
        let mut modified = created.clone();
        modified.set(&["data", "mine"], "x");
        assert_eq!(root_ca(Some(&modified), "PEM"), Some(created));
    }
}
