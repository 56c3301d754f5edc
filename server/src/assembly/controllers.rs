//! Controllers that watch objects of all kinds: those that are part of kube-apiserver, and those of kube-controller-manager that
//! `--controllers` enables, as far as Portico implements them.

mod controller_manager;
mod selection;
mod without_nodes;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use portico_controllers::flow_status::FlowStatus;
use portico_controllers::leader_election::LeaderElection;
use portico_controllers::log::{Listener, LogReader};
use portico_controllers::object_counts::{ObjectCounts, ObjectTotals};
use portico_controllers::service_repair::ServiceRepair;
use portico_controllers::system_objects::authentication::AuthenticationInfo;
use portico_controllers::system_objects::{SystemObjects, kubernetes_service, token_tracking};
use portico_identity::TokenAuthority;
use portico_kit::certs::FileError;
use portico_kit::hooks::{HookContext, Hooks};
use portico_kit::metrics;
use portico_kit::tasks::TaskSet;
use portico_kit::workqueue::QueueMetrics;
use portico_machinery::GroupResource;
use portico_registry::Registry;
use tokio::sync::watch;

use self::controller_manager::ControllerManager;
use super::aggregated::AggregatedServers;
use super::error::StartError;
use super::hostname::hostname;
use super::master_leases::{self, MasterLeases};
use super::signal_wait::wait_for_signal;
use super::signing::RequestSigning;
use crate::front_proxy;
use crate::settings::ServerSettings;

/// Upstream's hooks of the controllers of kube-apiserver. They pass once all of these controllers run.
const HOOKS: [&str; 4] = [
    "start-cluster-authentication-info-controller",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
    "start-legacy-token-tracking-controller",
];

/// Upstream's hook of the controller for coordinated leader election.
const ELECTIONS_HOOK: &str = "start-kube-apiserver-coordinated-leader-election-controller";

/// Publisher of the address of the facade.
#[derive(Clone)]
pub(super) struct AddressPublisher {
    address: Arc<watch::Sender<Option<SocketAddr>>>,
    objects: SystemObjects,
}

impl AddressPublisher {
    pub(super) fn publish(&self, address: SocketAddr) {
        self.address.send_replace(kubernetes_service::advertised_address(address));
        self.objects.enqueue_all();
    }
}

/// Inputs of the controllers.
pub(super) struct ControllerInputs<'a> {
    /// CA with which clients in the cluster verify the certificate of the facade, as PEM.
    pub(super) ca: &'a str,
    /// Signer of service account tokens.
    pub(super) identity: Arc<TokenAuthority>,
    /// CAs that sign certificate requests.
    pub(super) signing: &'a RequestSigning,
    /// Aggregated API servers.
    pub(super) aggregated: Arc<AggregatedServers>,
    /// Address at which workloads reach the facade, once it is known.
    pub(super) facade_address: Arc<watch::Sender<Option<SocketAddr>>>,
    /// Receiver of the numbers of stored objects.
    pub(super) on_counts: Box<dyn Fn(ObjectTotals) + Send + Sync>,
    /// Other listeners for changes.
    pub(super) listeners: Vec<Arc<dyn Listener>>,
}

/// Starts the controllers, which end with `tasks`.
pub(super) fn start(
    settings: &ServerSettings,
    registry: &Registry,
    mut inputs: ControllerInputs<'_>,
    metrics: &metrics::Registry,
    hooks: &Hooks,
    tasks: &TaskSet,
) -> Result<AddressPublisher, StartError> {
    let queues = QueueMetrics::new(metrics);
    let range = &settings.registry.service_ranges;
    let ranges: Vec<String> = range.iter().map(ToString::to_string).collect();
    let today = || jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let mut system_objects =
        vec![authentication_info(settings, inputs.signing)?.object(), token_tracking::system_object(today)];
    let is_shared = settings.shares_store();
    let masters = is_shared.then(|| MasterLeases::new(registry.store(), inputs.facade_address.subscribe()));
    if let Some(first) = range.first().and_then(|range| range.hosts().next()) {
        let addresses = match &masters {
            Some(masters) => {
                let masters = masters.clone();
                Arc::new(move || masters.addresses())
            }
            None => kubernetes_service::single_facade(inputs.facade_address.subscribe()),
        };
        system_objects.extend(kubernetes_service::system_objects(&ranges, first, &addresses));
    }
    let objects = SystemObjects::new(system_objects, is_shared.then(master_leases::resource), &queues);
    if let Some(masters) = masters {
        run_master_lease(masters, &objects, tasks);
    }
    objects.run_workers(registry, tasks);
    let repair = service_repair(settings, registry, &queues, metrics, hooks)?;
    repair.run_workers(registry, tasks);
    let flows = FlowStatus::new(&queues);
    flows.run_workers(registry, tasks);
    let mut listeners: Vec<Arc<dyn Listener>> =
        vec![Arc::new(objects.clone()), Arc::new(repair), Arc::new(flows)];
    listeners.append(&mut inputs.listeners);
    let controller_manager = ControllerManager {
        settings: settings.clone(),
        registry: registry.clone(),
        ca: inputs.ca.to_owned(),
        identity: inputs.identity,
        signers: inputs.signing.signers.clone(),
        aggregated: inputs.aggregated,
        queues: queues.clone(),
        metrics: metrics.clone(),
    };
    match settings.leader_election.filter(|_| !settings.controllers.is_empty()) {
        Some(timers) => controller_manager.start_when_leading(timers, tasks),
        None => listeners.extend(controller_manager.start(tasks)),
    }
    listeners.extend(coordinated_elections(settings, registry, &queues, hooks)?);
    let log_reader = LogReader::new(listeners);
    for name in HOOKS {
        let synced = log_reader.synced();
        hooks.add_post_start(
            name,
            move |cx: HookContext| async move { wait_for_signal(&cx, &synced).await },
        )?;
    }
    let (counts, counted_registry) = (ObjectCounts::new(metrics, inputs.on_counts), registry.clone());
    hooks.add_post_start("storage-object-count-tracker-hook", move |cx: HookContext| async move {
        cx.tasks.spawn("object-counts", counts.run(counted_registry, cx.tasks.clone()));
        Ok(())
    })?;
    tasks.spawn("controllers-log", log_reader.run(registry.clone(), tasks.clone()));
    Ok(AddressPublisher { address: inputs.facade_address, objects })
}

/// Publishes the address of this control service's facade to other control services of the store, until the tasks end.
fn run_master_lease(masters: MasterLeases, objects: &SystemObjects, tasks: &TaskSet) {
    let (objects, token) = (objects.clone(), tasks.token());
    tasks.spawn("master-lease", async move {
        token.run_until_cancelled(masters.clone().run(|| objects.enqueue_all())).await;
        masters.release().await;
    });
}

/// Creates the repair of Services' addresses and ports. Its hook passes once all Services have been checked.
fn service_repair(
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
        wait_for_signal(&cx, &checked).await
    })?;
    Ok(repair)
}

/// Creates the coordinated leader election; `None` without its gate, or if lease candidates are not served.
fn coordinated_elections(
    settings: &ServerSettings,
    registry: &Registry,
    queues: &QueueMetrics,
    hooks: &Hooks,
) -> Result<Option<Arc<dyn Listener>>, StartError> {
    let candidates = GroupResource::new("coordination.k8s.io", "leasecandidates");
    if !settings.features.enabled("CoordinatedLeaderElection") {
        return Ok(None);
    }
    if registry.objects().served_resource(&candidates).is_err() {
        tracing::warn!("leader election disabled, LeaseCandidates are not served (--runtime-config)");
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

/// Returns the authorities that backends should trust.
fn authentication_info(
    settings: &ServerSettings,
    signing: &RequestSigning,
) -> Result<AuthenticationInfo, FileError> {
    let pem = |path: &PathBuf| {
        let read = portico_kit::config_file::read_text(path);
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
        client_ca: (!client_cas.is_empty()).then(|| join_pem(&client_cas)),
        front_proxy: front_proxy.transpose()?,
        withdrawn: (!settings.own_front_proxy).then(|| front_proxy::CLIENT.to_owned()),
    })
}

/// Joins PEM texts, which need not end with a line end.
fn join_pem(pems: &[String]) -> String {
    pems.iter().map(|pem| format!("{}\n", pem.trim_end())).collect()
}
