//! Components of the control service, and the post-start hooks that start them, under upstream's names.

mod admission;
mod definitions;
mod storage;

use std::net::SocketAddr;
use std::sync::Arc;

use portico_admission::AdmissionChain;
use portico_auth::authz::RbacAuthorizer;
use portico_controllers::auto_register::{AutoRegister, DesiredApiService, ManagedMode as Managed};
use portico_controllers::availability::{Availability, ProbeSettings, RegistrySink};
use portico_controllers::identity::{self, Identity, IdentityLease};
use portico_controllers::log::Listener;
use portico_controllers::object_counts::ObjectTotals;
use portico_controllers::priority_classes;
use portico_controllers::rbac;
use portico_controllers::rbac::policy::{PolicyChanges, PolicyFeed};
use portico_controllers::storage_versions::StorageVersions;
use portico_controllers::system_namespaces::SystemNamespaces;
use portico_controllers::{flow_config, flow_feed};
use portico_kinds::Kinds;
use portico_kit::health::{Check, Health, HealthEndpoint};
use portico_kit::hooks::{HookContext, Hooks};
use portico_kit::lifecycle::Signal;
use portico_kit::tasks::TaskSet;
use portico_machinery::peer_addresses::{self, PeerAddresses};
use portico_machinery::resolve::ResolveMode;
use portico_proto::convert::{Payload, PayloadKind, setting};
use portico_registry::Registry;
use portico_routes::informers::Informers;
use portico_routes::{ExplainSource, LocalGroupVersion, Routes};
use portico_server_catalog::Documents;
use portico_store::Store;
use tokio::sync::watch;

use super::aggregated::AggregatedServers;
use super::availability_reports::AvailabilityReports;
use super::backend_connections::BackendConnections;
use super::error::StartError;
use super::explain_sources::{AvailabilityController, ExplainSources, ObservationsToAvailability};
use super::hostname::hostname;
use super::process::Process;
use super::served_catalog::ServedCatalog;
use super::signal_wait::wait_for_signal;
use super::storage_versions;
use crate::grpc::config::StreamSources;
use crate::grpc::config::board::Board;
use crate::grpc::config::facades::Facades;
use crate::queues::Queues;
use crate::settings::ServerSettings;
use definitions::Definitions;

/// Components on which the services depend, in addition to registry and store.
pub(super) struct Components {
    pub(super) routes: Routes,
    pub(super) board: Board,
    /// Queues for native gRPC callers.
    pub(super) queues: Queues,
    pub(super) facades: Facades,
    availability: AvailabilityController,
    /// Reports to other control services, if they can share the store.
    reports: Option<AvailabilityReports>,
    auto_register: AutoRegister,
    definitions: Definitions,
    informers: Informers,
    policy: PolicyFeed,
    catalog: ServedCatalog,
    /// Lease of this server.
    lease: IdentityLease,
    /// Address at which workloads reach the facade, once it is known.
    pub(super) facade_address: Arc<watch::Sender<Option<SocketAddr>>>,
    /// True if facades may forward requests to other servers behind the same address.
    has_peers: bool,
    /// State of the folder of manifests, for explanations of APIServices.
    manifests_state: Option<portico_manifests::FolderState>,
    /// Publisher of storage versions, which blocks writes until it is done; `None` without its gates.
    pub(super) storage_versions: Option<StorageVersions>,
    /// Signaled once all checks have passed for the first time.
    pub(super) ready: Signal,
    /// Signaled once the results of all checks have been posted to facades.
    pub(super) checks_known: Signal,
}

/// Further inputs of the components.
pub(super) struct ComponentInputs<'a> {
    pub(super) tasks: &'a TaskSet,
    /// Address at which gRPC is served.
    pub(super) own_address: SocketAddr,
    pub(super) manifests_state: Option<portico_manifests::FolderState>,
}

impl Components {
    /// Creates the components and registers the hooks that start them.
    pub(super) fn build(
        settings: &ServerSettings,
        registry: &Registry,
        kinds: &Arc<Kinds>,
        hooks: &Hooks,
        process: &Process,
        ComponentInputs { tasks, own_address, manifests_state }: ComponentInputs<'_>,
    ) -> Result<Self, StartError> {
        let backends = BackendConnections::new(settings, process, tasks, own_address)?;
        let informers = Informers::default();
        let routes = Routes::new(
            portico_routes::Settings { mode: resolver_mode(settings), ..portico_routes::Settings::default() },
            &informers,
            installed_apis(kinds),
        );
        let webhooks = backends.webhooks(settings, process, tasks, Arc::new(routes.clone()))?;
        registry.set_webhooks(webhooks, &process.metrics);
        let prober = backends.prober(ProbeSettings::default());
        let availability =
            Availability::new(&informers, prober.clone(), resolver_mode(settings), &process.metrics);
        let auto_register = AutoRegister::new(&informers, desired_api_services(kinds), &process.metrics);
        let definitions = Definitions::new(kinds, &auto_register, &process.metrics);
        let board = Board::default();
        let facades = Facades::new(Arc::new(ObservationsToAvailability(availability.clone())));
        let catalog = ServedCatalog::new(kinds, &backends, settings.openapi_cache_bytes);
        let identity = own_identity();
        let reports = settings
            .shares_store()
            .then(|| AvailabilityReports::new(registry.store(), &identity.holder, availability.clone()));
        let storage_versions = storage_versions::publisher(settings, kinds, &identity.id)?;
        let (address_sender, address_receiver) =
            watch::channel(settings.advertise_address.filter(|address| address.port() != 0));
        let has_peers = settings.features.enabled(peer_addresses::GATE);
        let address = match settings.peer_advertise_address {
            _ if !has_peers => watch::channel(None).1,
            Some(fixed) => watch::channel(Some(fixed)).1,
            None => address_receiver,
        };
        let components = Self {
            routes,
            board,
            queues: Queues::new(settings.seats, settings.default_call_timeout, &process.metrics),
            facades,
            availability,
            reports,
            auto_register,
            definitions,
            informers,
            policy: PolicyFeed::new(),
            catalog,
            lease: IdentityLease::new(identity, address),
            facade_address: Arc::new(address_sender),
            has_peers,
            manifests_state,
            storage_versions,
            ready: Signal::new("ServerReady"),
            checks_known: Signal::new("ChecksKnown"),
        };
        components.add_hooks(registry, hooks)?;
        components.definitions.add_hooks(registry, hooks)?;
        components.catalog.add_hooks(registry, &components.routes, &components.board, hooks)?;
        backends.report_lost_connections(&components.availability);
        backends.add_hook(prober, &components.availability, hooks)?;
        Ok(components)
    }

    fn add_hooks(&self, registry: &Registry, hooks: &Hooks) -> Result<(), StartError> {
        let (r, informers) = (registry.clone(), self.informers.clone());
        hooks.add_post_start("start-kube-aggregator-informers", move |cx: HookContext| async move {
            cx.tasks.spawn_critical("aggregator-informers", informers.run(r, cx.tasks.clone()));
            Ok(())
        })?;
        let routes = self.routes.clone();
        hooks.add_post_start("apiservice-registration-controller", move |cx: HookContext| async move {
            let initiated = routes.initiated();
            cx.tasks.spawn_until_cancelled("apiservice-registration", routes.run());
            wait_for_signal(&cx, &initiated).await
        })?;
        let availability = self.availability.clone();
        hooks.add_post_start(
            "apiservice-status-local-available-controller",
            move |cx: HookContext| async move {
                availability.run_local(&cx.tasks);
                Ok(())
            },
        )?;
        let (availability, sink) = (self.availability.clone(), RegistrySink::new(registry.clone()));
        let reports = self.reports.clone();
        hooks.add_post_start(
            "apiservice-status-remote-available-controller",
            move |cx: HookContext| async move {
                reports.iter().for_each(AvailabilityReports::announce);
                availability.run_remote(&cx.tasks);
                availability.run_writer(sink, &cx.tasks);
                if let Some(reports) = reports {
                    let token = cx.tasks.token();
                    cx.tasks.spawn("availability-reports", async move {
                        token.run_until_cancelled(reports.run()).await;
                        reports.release().await;
                    });
                }
                Ok(())
            },
        )?;
        let (r, auto_register) = (registry.clone(), self.auto_register.clone());
        let api_services_known = self.definitions.api_services_known();
        hooks.add_post_start("kube-apiserver-autoregistration", move |cx: HookContext| async move {
            auto_register.run(r, api_services_known, cx.tasks.clone()).await;
            Ok(())
        })?;
        let synced = self.informers.synced();
        hooks.add_post_start("generic-apiserver-start-informers", move |cx: HookContext| async move {
            wait_for_signal(&cx, &synced).await
        })?;
        let (r, namespaces) = (registry.clone(), SystemNamespaces::new());
        hooks.add_post_start("start-system-namespaces-controller", move |cx: HookContext| async move {
            cx.tasks.spawn("system-namespaces", namespaces.run(r, cx.tasks.clone()));
            Ok(())
        })?;
        let (r, policy) = (registry.clone(), self.policy.clone());
        hooks.add_post_start("rbac/bootstrap-roles", move |cx: HookContext| async move {
            // The hook is done when the authorizers have the roles, because the first request after "ready" is
            // authorized by them.
            let wait_applied = async {
                policy.wait_delivered(rbac::bootstrap::reconcile(&r).await?).await;
                Ok(())
            };
            cx.stop.run_until_cancelled(wait_applied).await.unwrap_or(Ok(()))
        })?;
        let r = registry.clone();
        hooks.add_post_start(
            "scheduling/bootstrap-system-priority-classes",
            move |cx: HookContext| async move {
                cx.stop.run_until_cancelled(priority_classes::ensure(&r)).await.unwrap_or(Ok(()))
            },
        )?;
        let r = registry.clone();
        hooks.add_post_start("priority-and-fairness-config-producer", move |cx: HookContext| async move {
            cx.tasks.spawn("flow-config", flow_config::run(r, cx.tasks.clone()));
            Ok(())
        })?;
        let (r, lease) = (registry.clone(), self.lease.clone());
        hooks.add_post_start(
            "start-kube-apiserver-identity-lease-controller",
            move |cx: HookContext| async move {
                cx.tasks.spawn("identity-lease", lease.run(r, cx.tasks.clone()));
                Ok(())
            },
        )?;
        let r = registry.clone();
        hooks.add_post_start(
            "start-kube-apiserver-identity-lease-garbage-collector",
            move |cx: HookContext| async move {
                cx.tasks.spawn("identity-lease-gc", identity::lease_cleaner::run(r, cx.tasks.clone()));
                Ok(())
            },
        )?;
        if let Some(versions) = self.storage_versions.clone() {
            let (r, lease_held) = (registry.clone(), self.lease.acquired());
            hooks.add_post_start(
                "built-in-resources-storage-version-updater",
                move |cx: HookContext| async move {
                    let reported = versions.reported();
                    cx.tasks.spawn("storage-versions", versions.run(r, lease_held, cx.tasks.clone()));
                    wait_for_signal(&cx, &reported).await
                },
            )?;
        }
        Ok(())
    }

    /// Publishes changes of policy, flow control and peers to facades.
    pub(super) fn publish_entries(&self, registry: &Registry, rbac: &Arc<RbacAuthorizer>, tasks: &TaskSet) {
        self.publish_policy(registry, rbac, tasks);
        self.publish_flow_control(registry, tasks);
        if self.has_peers {
            self.publish_peers(registry, tasks);
        }
    }

    /// Publishes the addresses of other servers behind the same address to facades.
    fn publish_peers(&self, registry: &Registry, tasks: &TaskSet) {
        let board = self.board.clone();
        let sink = move |peers: &PeerAddresses| {
            let payload = Payload::Setting(peers.to_string());
            board.post([(PayloadKind::Setting, setting::PEERS.to_owned(), Some(payload))]);
        };
        let own_name = self.lease.name().to_owned();
        let follower = identity::peers::run(registry.clone(), own_name, tasks.clone(), sink);
        tasks.spawn_critical("peers", follower);
    }

    /// Publishes roles and bindings: to the local authorizer directly, to facades by the board.
    fn publish_policy(&self, registry: &Registry, rbac: &Arc<RbacAuthorizer>, tasks: &TaskSet) {
        let (board, rbac) = (self.board.clone(), Arc::clone(rbac));
        let sink = move |revision, changes: PolicyChanges| {
            let entries = changes.iter().map(|(key, fact)| {
                let payload = fact.clone().map(|fact| Payload::Rbac(Arc::new(fact)));
                (PayloadKind::Rbac, key.to_string(), payload)
            });
            let entries: Vec<_> = entries.collect();
            rbac.update(changes);
            board.post_at(revision, entries);
        };
        let feed = self.policy.clone().run(registry.clone(), tasks.clone(), sink);
        tasks.spawn_critical("rbac-policy", feed);
    }

    /// Publishes flow schemas and priority levels to facades and to the local queues.
    fn publish_flow_control(&self, registry: &Registry, tasks: &TaskSet) {
        let (board, queues) = (self.board.clone(), self.queues.clone());
        queues.run(tasks);
        let sink = move |changes: flow_feed::FlowChanges| {
            queues.apply_changes(&changes);
            let entries = changes.into_iter().map(|(key, fact)| {
                (PayloadKind::FlowControl, key.to_string(), fact.map(Payload::FlowControl))
            });
            board.post(entries);
        };
        tasks.spawn_critical("flow-control", flow_feed::run(registry.clone(), tasks.clone(), sink));
    }

    /// Returns a function that sends facades the numbers of stored objects, from which they estimate the cost of lists.
    pub(super) fn stored_objects(&self) -> Box<dyn Fn(ObjectTotals) + Send + Sync> {
        let (board, queues) = (self.board.clone(), self.queues.clone());
        Box::new(move |totals| {
            queues.set_stored(
                totals.iter().map(|(resource, stored)| (resource.to_string(), *stored)).collect(),
            );
            board.post(totals.into_iter().map(|(resource, stored)| {
                (PayloadKind::StoredObjects, resource.to_string(), Some(Payload::StoredObjects(stored)))
            }));
        })
    }

    /// Adds the checks that are not hooks: store, informers, auto-registration.
    pub(super) fn add_checks(
        &self,
        health: &Health,
        store: &Arc<dyn Store>,
        registry: &Registry,
        chain: &Arc<AdmissionChain>,
    ) -> Result<(), StartError> {
        use HealthEndpoint::{Healthz, Livez, Readyz};
        for (endpoints, name) in [(&[Healthz, Livez, Readyz][..], "etcd"), (&[Readyz], "etcd-readiness")] {
            let store = Arc::clone(store);
            let reachable = move || {
                let store = Arc::clone(&store);
                async move { store.latest_revision().await.map(drop).map_err(|e| e.to_string()) }
            };
            health.add(endpoints, Check::new_async(name, reachable))?;
        }
        storage::add_checks(health, store)?;
        admission::add_check(health, registry, chain)?;
        let synced = self.informers.synced();
        let informers = move || if synced.is_signaled() { Ok(()) } else { Err("not synced".to_owned()) };
        health.add(&[Readyz], Check::new("informer-sync", informers))?;
        let completion = self.auto_register.completion();
        health.add_boot(Check::new("autoregister-completion", move || completion.check()))?;
        Ok(())
    }

    /// Returns the sources of configuration streams.
    pub(super) fn sources(&self, store: &dyn Store) -> Arc<StreamSources> {
        let identity = store.identity();
        Arc::new(StreamSources {
            routes: self.routes.clone(),
            board: self.board.clone(),
            store_id: identity.store_id.clone(),
            epoch: identity.epoch.to_string(),
            revisions: store.revisions(),
            policy_known: self.policy.synced(),
            checks_known: self.checks_known.clone(),
        })
    }

    /// Returns the sources of the facts that Explain reports.
    pub(super) fn explain_sources(&self, registry: &Registry) -> Arc<dyn ExplainSource + Send + Sync> {
        Arc::new(ExplainSources {
            availability: self.availability.clone(),
            facades: self.facades.clone(),
            registry: registry.clone(),
            manifests_state: self.manifests_state.clone(),
        })
    }

    /// Returns the aggregated API servers.
    pub(super) fn aggregated(&self) -> Arc<AggregatedServers> {
        Arc::new(AggregatedServers { routes: self.routes.clone(), backends: self.catalog.backends() })
    }

    /// Returns the listener for instances of definitions; `None` if definitions are not served.
    pub(super) fn instance_listener(&self) -> Option<Arc<dyn Listener>> {
        self.definitions.listener()
    }

    /// Returns the OpenAPI and discovery documents by hash.
    pub(super) fn documents(&self) -> Documents {
        self.catalog.documents()
    }
}

/// Returns the group versions that this build serves, with their priorities.
fn installed_apis(kinds: &Kinds) -> impl Iterator<Item = LocalGroupVersion> {
    kinds.served_group_versions().map(|served| LocalGroupVersion {
        group_version: served.group_version.clone(),
        group_priority_minimum: served.group_priority,
        version_priority: served.version_priority,
    })
}

/// Returns the APIServices to create for the installed group versions.
fn desired_api_services(kinds: &Kinds) -> impl Iterator<Item = DesiredApiService> {
    installed_apis(kinds).map(|i| DesiredApiService {
        group_version: i.group_version,
        group_priority_minimum: i.group_priority_minimum,
        version_priority: i.version_priority,
        mode: Managed::OnStart,
    })
}

/// Creates the identity of this server, which is different in each run of the process.
pub(super) fn own_identity() -> Identity {
    Identity::new(&hostname(), &uuid::Uuid::new_v4().to_string())
}

/// Returns the mode of the resolver.
fn resolver_mode(settings: &ServerSettings) -> ResolveMode {
    if settings.enable_aggregator_routing { ResolveMode::Endpoints } else { ResolveMode::ClusterIp }
}
