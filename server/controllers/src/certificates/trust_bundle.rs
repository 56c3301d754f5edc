//! Publishes the CA of the API's own certificate as a ClusterTrustBundle
//! (`kube-apiserver-serving-clustertrustbundle-publisher-controller`).

use std::sync::Arc;

use futures::future::BoxFuture;
use portico_kit::backoff::BackoffPolicy;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::{QueueMetrics, ReconcileOutcome, WorkQueue, run_workers};
use portico_machinery::digest::sha256_hex;
use portico_machinery::{GroupResource, GroupVersion, Object, Reason, Status};
use portico_registry::{
    CreateOptions, DeleteOptions, ListOptions, LogEntry, ObjectPart, Registry, UpdateOptions,
};

use crate::account::service_account_context;
use crate::log::Listener;
use crate::write_result::ignore_reasons;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "kube-apiserver-serving-clustertrustbundle-publisher-controller";

const USER: &str = "kube-apiserver-serving-clustertrustbundle-publisher";
const SIGNER: &str = "kubernetes.io/kube-apiserver-serving";
const GROUP: &str = "certificates.k8s.io";
const WORKERS: usize = 1;
/// Number of hexadecimal digits of the bundle's digest in its name.
const DIGITS: usize = 24;

fn resource() -> GroupResource {
    GroupResource::new(GROUP, "clustertrustbundles")
}

/// Write that brings the bundles closer to the desired state.
#[derive(Clone, Debug, PartialEq)]
enum BundleStep {
    Create(Object),
    Update(Object),
    Delete(String),
}

/// Handle of the controller. Cheap to clone.
#[derive(Clone)]
pub struct TrustBundle {
    /// CA certificate in PEM.
    ca: Arc<str>,
    queue: WorkQueue<()>,
}

impl TrustBundle {
    /// Creates the controller, which publishes this CA (PEM).
    #[must_use]
    pub fn new(ca: &str, metrics: &QueueMetrics) -> Self {
        let name = "ca_cert_publisher_cluster_trust_bundles";
        Self { ca: ca.into(), queue: WorkQueue::with_metrics(name, BackoffPolicy::CONTROLLER, metrics) }
    }

    /// Starts the workers, which run until `tasks` is cancelled.
    pub fn run_workers(&self, registry: &Registry, tasks: &TaskSet) {
        let (worker, registry) = (self.clone(), registry.clone());
        run_workers(tasks, NAME, WORKERS, self.queue.clone(), move |()| {
            let (worker, registry) = (worker.clone(), registry.clone());
            async move { worker.reconcile(&registry).await.map(|()| ReconcileOutcome::Done) }
        });
    }

    async fn reconcile(&self, registry: &Registry) -> Result<(), Box<Status>> {
        let served = registry.objects().served_resource(&resource())?;
        let new =
            Object::new(&GroupVersion::new(GROUP, served.info.gvr().version).kind("ClusterTrustBundle"));
        let all = registry.list(&resource(), "", &ListOptions::default()).await?.items;
        let steps = steps(new, &self.ca, all.iter().map(|stored| stored.object()));
        let mut outcome = Ok(());
        for step in steps {
            // A failed step does not prevent the others.
            outcome = outcome.and(execute(registry, step).await);
        }
        outcome
    }
}

async fn execute(registry: &Registry, step: BundleStep) -> Result<(), Box<Status>> {
    let context = service_account_context(USER);
    match step {
        BundleStep::Create(bundle) => {
            let created = registry.create(&context, &resource(), bundle, &CreateOptions::default()).await;
            ignore_reasons(created, &[Reason::AlreadyExists])
        }
        BundleStep::Update(bundle) => {
            let options = UpdateOptions::default();
            registry.update(&context, &resource(), ObjectPart::Main, bundle, &options).await.map(drop)
        }
        BundleStep::Delete(name) => {
            let deleted = registry.delete(&context, &resource(), "", &name, &DeleteOptions::default()).await;
            ignore_reasons(deleted, &[Reason::NotFound])
        }
    }
}

/// Returns the steps that create or correct the bundle, whose name derives from its content, and delete all other bundles
/// of the signer.
fn steps<'a>(mut new: Object, ca: &str, all: impl Iterator<Item = &'a Object>) -> Vec<BundleStep> {
    let name = bundle_name(ca);
    let (mut found, mut steps) = (None, Vec::new());
    for bundle in all {
        if bundle.name() == name {
            found = Some(bundle);
        } else if bundle.str_at("spec.signerName") == SIGNER {
            steps.push(BundleStep::Delete(bundle.name().to_owned()));
        }
    }
    match found {
        Some(bundle) if bundle.str_at("spec.trustBundle") == ca => {}
        Some(bundle) => {
            let mut bundle = bundle.clone();
            bundle.set(&["spec", "trustBundle"], ca);
            steps.insert(0, BundleStep::Update(bundle));
        }
        None => {
            new.set(&["metadata", "name"], &name);
            new.set(&["spec", "signerName"], SIGNER);
            new.set(&["spec", "trustBundle"], ca);
            steps.insert(0, BundleStep::Create(new));
        }
    }
    steps
}

fn bundle_name(ca: &str) -> String {
    let digest = sha256_hex(ca.as_bytes());
    format!("{}:{}", SIGNER.replace('/', ":"), &digest[..DIGITS])
}

impl Listener for TrustBundle {
    fn resync<'a>(&'a self, _registry: &'a Registry) -> BoxFuture<'a, Result<(), Box<Status>>> {
        self.queue.add(());
        Box::pin(async { Ok(()) })
    }

    fn on_event(&self, change: &LogEntry) {
        if *change.resource() == resource() {
            self.queue.add(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_correct_bundle_of_the_signer_remains() {
        let [BundleStep::Create(created)] = &steps(Object::default(), "PEM", std::iter::empty())[..] else {
            panic!()
        };
        assert_eq!(created.name(), "kubernetes.io:kube-apiserver-serving:384fb9a44fabe158be2757b9");
        assert_eq!(steps(Object::default(), "PEM", [created].into_iter()), []);
        let mut modified = created.clone();
        modified.set(&["spec", "trustBundle"], "other");
        assert_eq!(
            steps(Object::default(), "PEM", [&modified].into_iter()),
            [BundleStep::Update(created.clone())]
        );
        let (mut old, mut foreign) = (created.clone(), Object::default());
        old.set(&["metadata", "name"], "old");
        foreign.set(&["metadata", "name"], "foreign");
        let all = [&old, &foreign, created];
        assert_eq!(steps(Object::default(), "PEM", all.into_iter()), [BundleStep::Delete("old".to_owned())]);
    }
}
