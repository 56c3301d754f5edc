//! Controllers of kube-controller-manager that `--controllers` enables. If there are several control services, the one that holds
//! the Lease runs them.

use std::sync::Arc;
use std::time::Duration;

use portico_controllers::bootstrap;
use portico_controllers::bootstrap::signer::BootstrapSigner;
use portico_controllers::bootstrap::token_cleaner::TokenCleaner;
use portico_controllers::certificates::trust_bundle::{self, TrustBundle};
use portico_controllers::certificates::{approver, cleaner, signing};
use portico_controllers::garbage::GarbageCollector;
use portico_controllers::leader_lease::{LeaderLease, LeadershipTimers};
use portico_controllers::legacy_token_cleaner;
use portico_controllers::log::{Listener, LogReader};
use portico_controllers::namespace::NamespaceDeletion;
use portico_controllers::per_namespace::PerNamespace;
use portico_controllers::policy_status::{self, PolicyStatus};
use portico_controllers::rbac::aggregation;
use portico_controllers::resource_quota::{self, ResourceQuotas};
use portico_controllers::service_account_tokens::{self, ServiceAccountTokens};
use portico_controllers::storage_migration::{self, StorageMigration};
use portico_identity::TokenAuthority;
use portico_kit::metrics::{self, Desc};
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::QueueMetrics;
use portico_registry::Registry;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::watch;

use super::selection::is_enabled;
use super::without_nodes;
use crate::assembly::aggregated::AggregatedServers;
use crate::assembly::hostname::hostname;
use crate::settings::ServerSettings;

/// Upstream's name of the Lease, and the user that writes it.
const LEASE: &str = "kube-controller-manager";
const USER: &str = "system:kube-controller-manager";

/// Inputs of the controllers.
#[derive(Clone)]
pub(super) struct ControllerManager {
    pub(super) settings: ServerSettings,
    pub(super) registry: Registry,
    /// CA with which clients in the cluster verify the certificate of the facade, as PEM.
    pub(super) ca: String,
    pub(super) identity: Arc<TokenAuthority>,
    pub(super) signers: signing::Signers,
    pub(super) aggregated: Arc<AggregatedServers>,
    pub(super) queues: QueueMetrics,
    pub(super) metrics: metrics::Registry,
}

impl ControllerManager {
    /// Starts the controllers, which end with `tasks`. Returns listeners that must receive every change.
    pub(super) fn start(&self, tasks: &TaskSet) -> Vec<Arc<dyn Listener>> {
        let mut listeners = start_controllers(self, tasks);
        let inputs = (&self.settings, &self.registry, &self.queues, &self.metrics);
        listeners.extend(without_nodes::start(inputs.0, inputs.1, inputs.2, inputs.3, tasks));
        listeners
    }

    /// Starts the controllers whenever this control service becomes the leader, and stops them when it no longer is.
    pub(super) fn start_when_leading(self, timers: LeadershipTimers, tasks: &TaskSet) {
        let identity = format!("{}_{}", hostname(), uuid::Uuid::new_v4());
        let (leader_sender, leader_receiver) = watch::channel(false);
        let lease = LeaderLease::new(LEASE, USER, identity.clone(), timers);
        tasks.spawn("controllers-lease", lease.run(self.registry.clone(), leader_sender, tasks.clone()));
        let token = tasks.token();
        tasks.spawn("controllers-leader", async move {
            self.lead(leader_receiver, &identity, timers.grace(), &token).await;
        });
    }

    /// Runs the controllers while this control service leads, until `token` is canceled. `grace` limits the time to stop them.
    async fn lead(
        &self,
        mut leader_receiver: watch::Receiver<bool>,
        identity: &str,
        grace: Duration,
        token: &tokio_util::sync::CancellationToken,
    ) {
        let status = leader_status(&self.metrics);
        status.set(0);
        while token
            .run_until_cancelled(leader_receiver.wait_for(|is_leader| *is_leader))
            .await
            .is_some_and(|changed| changed.is_ok())
        {
            tracing::info!(identity, "controllers lease acquired, starting controllers");
            status.set(1);
            let tasks = TaskSet::with_token(token.child_token());
            let log_reader = LogReader::new(self.start(&tasks));
            tasks.spawn("controllers-log", log_reader.run(self.registry.clone(), tasks.clone()));
            let _ = token.run_until_cancelled(leader_receiver.wait_for(|is_leader| !*is_leader)).await;
            tracing::info!(identity, "stopping controllers");
            status.set(0);
            tasks.shutdown(grace).await;
        }
    }
}

/// Returns the gauge that is 1 while this control service leads, and 0 otherwise.
fn leader_status(metrics: &metrics::Registry) -> Gauge {
    let statuses: Family<[(&'static str, &'static str); 1], Gauge> = metrics.gauge_vec(Desc::gauge(
        "leader_election_master_status",
        &["name"],
        "[ALPHA] Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates \
         master. 'name' is the string used to identify the lease. Please make sure to group by name.",
    ));
    statuses.get_or_create_owned(&[("name", LEASE)])
}

/// Starts all controllers except those in the module `without_nodes`.
fn start_controllers(manager: &ControllerManager, tasks: &TaskSet) -> Vec<Arc<dyn Listener>> {
    let ControllerManager { settings, registry, queues, .. } = manager;
    let mut listeners: Vec<Arc<dyn Listener>> = Vec::new();
    let is_wanted = |name: &str| is_enabled(settings, registry, name);
    if is_wanted("garbage-collector-controller") {
        let garbage = GarbageCollector::new(Arc::clone(&manager.aggregated) as Arc<_>, queues);
        garbage.run_workers(registry, tasks);
        listeners.push(Arc::new(garbage));
    }
    if is_wanted("namespace-controller") {
        let namespaces = NamespaceDeletion::new(Arc::clone(&manager.aggregated) as Arc<_>, queues);
        namespaces.run_workers(registry, tasks);
        listeners.push(Arc::new(namespaces));
    }
    if is_wanted(resource_quota::NAME) {
        let settings = settings.controller_settings.quotas;
        let quotas = ResourceQuotas::new(settings, Arc::clone(&manager.aggregated) as Arc<_>, queues);
        quotas.run_workers(registry, tasks);
        listeners.push(Arc::new(quotas));
    }
    if is_wanted(aggregation::NAME) {
        tasks.spawn(aggregation::NAME, aggregation::run(registry.clone(), tasks.clone()));
    }
    if is_wanted(service_account_tokens::NAME) {
        let tokens = ServiceAccountTokens::new(&manager.ca, Arc::clone(&manager.identity), queues);
        tokens.run_workers(registry, tasks);
        listeners.push(Arc::new(tokens));
    }
    if is_wanted(legacy_token_cleaner::NAME) {
        let unused = settings.service_accounts.legacy_clean_up_period;
        let clean = legacy_token_cleaner::run(registry.clone(), unused, tasks.clone());
        tasks.spawn(legacy_token_cleaner::NAME, clean);
    }
    if is_wanted(storage_migration::NAME) {
        let migration = StorageMigration::new(queues);
        migration.run_workers(registry, tasks);
        listeners.push(Arc::new(migration));
    }
    if is_wanted(policy_status::NAME) {
        let statuses = PolicyStatus::new(queues);
        statuses.run_workers(registry, tasks);
        listeners.push(Arc::new(statuses));
    }
    let per_namespace =
        [PerNamespace::service_account(queues), PerNamespace::root_ca(manager.ca.clone(), queues)];
    for controller in per_namespace.into_iter().filter(|controller| is_wanted(controller.name())) {
        controller.run_workers(registry, tasks);
        listeners.push(Arc::new(controller));
    }
    listeners.extend(start_certificate_controllers(manager, tasks));
    listeners
}

/// Starts the controllers of certificates and bootstrap tokens.
fn start_certificate_controllers(manager: &ControllerManager, tasks: &TaskSet) -> Vec<Arc<dyn Listener>> {
    let ControllerManager { settings, registry, queues, .. } = manager;
    let mut listeners: Vec<Arc<dyn Listener>> = Vec::new();
    let is_wanted = |name: &str| is_enabled(settings, registry, name);
    if is_wanted(signing::NAME) {
        let signer = signing::controller(manager.signers.clone(), settings.signing.duration, queues);
        signer.run_workers(registry, tasks);
        listeners.push(Arc::new(signer));
    }
    if is_wanted(approver::NAME) {
        let approver = approver::controller(queues);
        approver.run_workers(registry, tasks);
        listeners.push(Arc::new(approver));
    }
    if is_wanted(cleaner::NAME) {
        tasks.spawn(cleaner::NAME, cleaner::run(registry.clone(), tasks.clone()));
    }
    if is_wanted(trust_bundle::NAME) {
        let bundle = TrustBundle::new(&manager.ca, queues);
        bundle.run_workers(registry, tasks);
        listeners.push(Arc::new(bundle));
    }
    if is_wanted(bootstrap::signer::NAME) {
        let signer = BootstrapSigner::new(queues);
        signer.run_workers(registry, tasks);
        listeners.push(Arc::new(signer));
    }
    if is_wanted(bootstrap::token_cleaner::NAME) {
        let cleaner = TokenCleaner::new(queues);
        cleaner.run_workers(registry, tasks);
        listeners.push(Arc::new(cleaner));
    }
    listeners
}
