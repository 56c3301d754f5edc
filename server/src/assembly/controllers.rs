//! Controllers that get every kind: what kube-apiserver itself keeps, and those that `--controllers` governs, which are
//! kube-controller-manager's, as far as Portico has them.

mod wanted;
mod without_nodes;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use portico_controllers::bootstrap;
use portico_controllers::bootstrap::signer::BootstrapSigner;
use portico_controllers::bootstrap::token_cleaner::TokenCleaner;
use portico_controllers::certificates::trust_bundle::{self, TrustBundle};
use portico_controllers::certificates::{approving, cleaner, signing};
use portico_controllers::flow_status::FlowStatus;
use portico_controllers::garbage::GarbageCollector;
use portico_controllers::leader_election::LeaderElection;
use portico_controllers::legacy_token_cleaner;
use portico_controllers::log::{Listener, Listening};
use portico_controllers::namespace::NamespaceDeletion;
use portico_controllers::object_counts::{Counted, ObjectCounts};
use portico_controllers::per_namespace::PerNamespace;
use portico_controllers::policy_status::{self, PolicyStatus};
use portico_controllers::rbac::aggregation;
use portico_controllers::resource_quota::{self, ResourceQuotas};
use portico_controllers::service_account_tokens::{self, ServiceAccountTokens};
use portico_controllers::service_repair::ServiceRepair;
use portico_controllers::storage_migration::{self, StorageMigration};
use portico_controllers::system_objects::authentication::AuthenticationInfo;
use portico_controllers::system_objects::{SystemObjects, kubernetes_service, token_tracking};
use portico_identity::Identity;
use portico_kit::certs::FileError;
use portico_kit::hooks::{HookContext, Hooks};
use portico_kit::metrics;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::QueueMetrics;
use portico_machinery::GroupResource;
use portico_registry::Registry;
use tokio::sync::watch;

use self::wanted::is_wanted;
use super::elsewhere::Aggregated;
use super::error::StartError;
use super::hostname::hostname;
use super::reached::reached;
use super::signing::Signing;
use crate::settings::ServerSettings;

/// Upstream's hooks of what is kept here: they pass once everything is being kept.
const HOOKS: [&str; 4] = [
    "start-cluster-authentication-info-controller",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
    "start-legacy-token-tracking-controller",
];

/// Upstream's hook of what elects leaders.
const ELECTIONS_HOOK: &str = "start-kube-apiserver-coordinated-leader-election-controller";

/// Publishes where the facade is reached.
#[derive(Clone)]
pub(super) struct Advertised {
    address: Arc<watch::Sender<Option<SocketAddr>>>,
    objects: SystemObjects,
}

impl Advertised {
    pub(super) fn publish(&self, address: SocketAddr) {
        self.address.send_replace(kubernetes_service::reachable(address));
        self.objects.look_again();
    }
}

/// What the assembly passes to controllers.
pub(super) struct ControllerInputs<'a> {
    /// What clients inside check the facade's certificate with.
    pub(super) ca: &'a str,
    /// What signs service accounts' tokens.
    pub(super) identity: Arc<Identity>,
    /// The CAs that sign certificate requests.
    pub(super) signing: &'a Signing,
    /// What other API servers hold in namespaces.
    pub(super) elsewhere: Arc<Aggregated>,
    /// Where workloads reach the facade, once that is known.
    pub(super) advertised: Arc<watch::Sender<Option<SocketAddr>>>,
    /// Who gets how many objects are stored.
    pub(super) counted: Box<dyn Fn(Counted) + Send + Sync>,
    /// Who else gets every change.
    pub(super) listeners: Vec<Arc<dyn Listener>>,
}

/// Starts them; they end with `tasks`.
pub(super) fn start(
    settings: &ServerSettings,
    registry: &Registry,
    mut reported: ControllerInputs<'_>,
    metrics: &metrics::Registry,
    hooks: &Hooks,
    tasks: &TaskSet,
) -> Result<Advertised, StartError> {
    let queues = QueueMetrics::new(metrics);
    let range = &settings.registry.service_ranges;
    let ranges: Vec<String> = range.iter().map(ToString::to_string).collect();
    let today = || jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let mut kept = vec![authentication(settings, reported.signing)?.object(), token_tracking::object(today)];
    if let Some(first) = range.first().and_then(|range| range.hosts().next()) {
        kept.extend(kubernetes_service::objects(&ranges, first, reported.advertised.subscribe()));
    }
    let objects = SystemObjects::new(kept, &queues);
    objects.run_workers(registry, tasks);
    let repair = repair(settings, registry, &queues, metrics, hooks)?;
    repair.run_workers(registry, tasks);
    let flows = FlowStatus::new(&queues);
    flows.run_workers(registry, tasks);
    let mut listeners: Vec<Arc<dyn Listener>> =
        vec![Arc::new(objects.clone()), Arc::new(repair), Arc::new(flows)];
    listeners.append(&mut reported.listeners);
    listeners.extend(governed(settings, registry, &reported, &queues, tasks));
    listeners.extend(without_nodes::start(settings, registry, &queues, metrics, tasks));
    listeners.extend(elections(settings, registry, &queues, hooks)?);
    let listening = Listening::new(listeners);
    for name in HOOKS {
        let begun = listening.begun();
        hooks.add_post_start(name, move |cx: HookContext| async move { reached(&cx, &begun).await })?;
    }
    let (counts, counted) = (ObjectCounts::new(metrics, reported.counted), registry.clone());
    hooks.add_post_start("storage-object-count-tracker-hook", move |cx: HookContext| async move {
        cx.tasks.spawn("object-counts", counts.run(counted, cx.tasks.clone()));
        Ok(())
    })?;
    tasks.spawn("controllers-log", listening.run(registry.clone(), tasks.clone()));
    Ok(Advertised { address: reported.advertised, objects })
}

/// What keeps Services' addresses and ports right; its hook passes once all of them have been checked.
fn repair(
    settings: &ServerSettings,
    registry: &Registry,
    queues: &QueueMetrics,
    metrics: &metrics::Registry,
    hooks: &Hooks,
) -> Result<ServiceRepair, StartError> {
    let ports = settings.registry.node_ports.clone();
    let repair = ServiceRepair::new(registry, ports, &hostname(), queues, metrics);
    let checked = repair.checked();
    hooks.add_post_start("start-service-ip-repair-controllers", move |cx: HookContext| async move {
        reached(&cx, &checked).await
    })?;
    Ok(repair)
}

/// What elects leaders among the candidates of components, behind a gate and where candidates are served.
fn elections(
    settings: &ServerSettings,
    registry: &Registry,
    queues: &QueueMetrics,
    hooks: &Hooks,
) -> Result<Option<Arc<dyn Listener>>, StartError> {
    let candidates = GroupResource::new("coordination.k8s.io", "leasecandidates");
    if !settings.features.enabled("CoordinatedLeaderElection") {
        return Ok(None);
    }
    if registry.objects().served(&candidates).is_err() {
        tracing::warn!("no leaders are elected: LeaseCandidates are not served (--runtime-config)");
        return Ok(None);
    }
    let identity = format!("{}_{}", hostname(), uuid::Uuid::new_v4());
    let elections = LeaderElection::new(identity, settings.coordinated_leadership, queues);
    let (started, registry) = (elections.clone(), registry.clone());
    hooks.add_post_start(ELECTIONS_HOOK, move |cx: HookContext| async move {
        started.run_workers(&registry, &cx.tasks);
        Ok(())
    })?;
    Ok(Some(Arc::new(elections)))
}

/// The authorities that backends are to trust.
fn authentication(settings: &ServerSettings, signing: &Signing) -> Result<AuthenticationInfo, FileError> {
    let pem = |path: &PathBuf| {
        let read = std::fs::read_to_string(path);
        read.map_err(|error| FileError::Read {
            path: path.clone(),
            reason: portico_gostd::os::error_text(&error),
        })
    };
    let front_proxy = settings.request_header.clone();
    let front_proxy = front_proxy.map(|proxy| Ok((pem(&proxy.client_ca_file)?, proxy)));
    let client_ca = settings.client_ca_file.as_ref().map(pem).transpose()?;
    let client_cas: Vec<String> = client_ca.into_iter().chain(signing.own_ca.clone()).collect();
    Ok(AuthenticationInfo {
        client_ca: (!client_cas.is_empty()).then(|| joined(&client_cas)),
        front_proxy: front_proxy.transpose()?,
    })
}

/// PEM texts as one: files need not end with a new line.
fn joined(pems: &[String]) -> String {
    pems.iter().map(|pem| format!("{}\n", pem.trim_end())).collect()
}

fn governed(
    settings: &ServerSettings,
    registry: &Registry,
    reported: &ControllerInputs<'_>,
    queues: &QueueMetrics,
    tasks: &TaskSet,
) -> Vec<Arc<dyn Listener>> {
    let mut listeners: Vec<Arc<dyn Listener>> = Vec::new();
    let is_wanted = |name: &str| is_wanted(settings, registry, name);
    if is_wanted("garbage-collector-controller") {
        let garbage = GarbageCollector::new(Arc::clone(&reported.elsewhere) as Arc<_>, queues);
        garbage.run_workers(registry, tasks);
        listeners.push(Arc::new(garbage));
    }
    if is_wanted("namespace-controller") {
        let namespaces = NamespaceDeletion::new(Arc::clone(&reported.elsewhere) as Arc<_>, queues);
        namespaces.run_workers(registry, tasks);
        listeners.push(Arc::new(namespaces));
    }
    if is_wanted(resource_quota::NAME) {
        let settings = settings.controller_settings.quotas;
        let quotas = ResourceQuotas::new(settings, Arc::clone(&reported.elsewhere) as Arc<_>, queues);
        quotas.run_workers(registry, tasks);
        listeners.push(Arc::new(quotas));
    }
    if is_wanted(aggregation::NAME) {
        tasks.spawn(aggregation::NAME, aggregation::run(registry.clone(), tasks.clone()));
    }
    if is_wanted(service_account_tokens::NAME) {
        let tokens = ServiceAccountTokens::new(reported.ca, Arc::clone(&reported.identity), queues);
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
    let kept = [PerNamespace::service_account(queues), PerNamespace::root_ca(reported.ca.to_owned(), queues)];
    for kept in kept.into_iter().filter(|kept| is_wanted(kept.name())) {
        kept.run_workers(registry, tasks);
        listeners.push(Arc::new(kept));
    }
    listeners.extend(certificates(settings, registry, reported, queues, tasks));
    listeners
}

/// The controllers of certificates and bootstrap tokens.
fn certificates(
    settings: &ServerSettings,
    registry: &Registry,
    reported: &ControllerInputs<'_>,
    queues: &QueueMetrics,
    tasks: &TaskSet,
) -> Vec<Arc<dyn Listener>> {
    let mut listeners: Vec<Arc<dyn Listener>> = Vec::new();
    let is_wanted = |name: &str| is_wanted(settings, registry, name);
    if is_wanted(signing::NAME) {
        let signer = signing::controller(reported.signing.signers.clone(), settings.signing.duration, queues);
        signer.run_workers(registry, tasks);
        listeners.push(Arc::new(signer));
    }
    if is_wanted(approving::NAME) {
        let approver = approving::controller(queues);
        approver.run_workers(registry, tasks);
        listeners.push(Arc::new(approver));
    }
    if is_wanted(cleaner::NAME) {
        tasks.spawn(cleaner::NAME, cleaner::run(registry.clone(), tasks.clone()));
    }
    if is_wanted(trust_bundle::NAME) {
        let bundle = TrustBundle::new(reported.ca, queues);
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
