//! Construction of the control service from its components: certificates, store, registry, routes, controllers, catalog and gRPC
//! services. Starts and stops the components.

mod aggregated;
mod authorizers;
mod availability_reports;
mod backend_client;
mod backend_connections;
mod controllers;
mod error;
mod explain_sources;
mod health_checks;
mod hooks;
mod hostname;
mod identities;
mod image_backend;
mod manifests;
mod master_leases;
mod node_graph;
mod process;
mod renewal;
mod rpc;
mod served_catalog;
mod server_records;
mod shared_files;
mod signal_wait;
mod signing;
mod storage_versions;
mod token_issuers;
mod token_keys;
mod token_webhook;
mod tokens;
mod webhook_users;

pub use error::StartError;
pub use process::Process;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use portico_admission::AdmissionChain;
use portico_auth::forwarded::LocalTrust;
use portico_controllers::system_objects::kubernetes_service;
use portico_identity::{TokenAuthority, TokenReviewer};
use portico_kinds::Kinds;
use portico_kit::drain;
use portico_kit::health::Health;
use portico_kit::hooks::Hooks;
use portico_kit::lifecycle::Signal;
use portico_kit::listener::{ListenerMetrics, ListenerOptions, TlsListener};
use portico_kit::metrics::Desc;
use portico_kit::tasks::TaskSet;
use portico_kit::tls::{CertPair, ServerTls, ServerTlsOptions};
use portico_machinery::effective_version::{EffectiveVersion, KUBERNETES_PATCH};
use portico_manifests::{
    FolderReport as ManifestsReport, Manifests, Settings as ManifestsSettings,
    UnappliedFolder as UnappliedManifests,
};
use portico_proto::convert::{Payload, PayloadKind, setting};
use portico_registry::{EtcdLayout, KindIndexer, Registry, ResourceTable};
use portico_store::{EtcdStore, PostgresStore, SqliteStore, Store};
use tokio::sync::watch;
use tokio::time::timeout;

use tower::Layer;

use crate::chain::Chain;
use crate::encryption::Encryption;
use crate::front_proxy;
use crate::grpc::config::facades::Facades;
use crate::kubeconfigs::{self, Addresses};
use crate::pki::Pki;
use crate::settings::ServerSettings;
use crate::token_signer::TokenSigner;
use aggregated::ManifestsFolderServers;
use identities::TrustedIdentities;
use renewal::{RenewedPki, names};
use signing::RequestSigning;
use token_issuers::TokenIssuers;

/// Time for calls to end when the control service stops.
///
/// Limit (Facades and control services): they are aborted.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Time for facades to move to another control service before this one stops.
///
/// Limit (Facades and control services): the control service stops.
const MOVE_GRACE: Duration = Duration::from_secs(5);

/// The gRPC services behind their chain of layers, as a tower service.
pub type LocalServices = Chain<tonic::service::Routes>;

/// Running control service.
pub struct Server {
    settings: ServerSettings,
    address: SocketAddr,
    pki: RenewedPki,
    store: Arc<dyn Store>,
    ready: Signal,
    local_services: (LocalServices, LocalTrust),
    identities: TrustedIdentities,
    issuers: Option<TokenIssuers>,
    address_publisher: controllers::AddressPublisher,
    facades: Facades,
    registry: Registry,
    manifests: Option<Manifests>,
    tasks: TaskSet,
    /// Tasks of the store, which end after all tasks that write.
    store_tasks: TaskSet,
    drain: drain::Signal,
}

/// Inputs of the components: the open store, kinds and task sets.
struct StartContext {
    kinds: Arc<Kinds>,
    table: ResourceTable,
    store: Arc<dyn Store>,
    encryption: Encryption,
    tasks: TaskSet,
    store_tasks: TaskSet,
}

impl Server {
    /// Opens the store, starts every component, and serves gRPC. Returns once the address is bound; the health
    /// checks report readiness.
    ///
    /// # Errors
    /// [`StartError`]; no call is served in this case.
    pub async fn start(settings: ServerSettings, process: Process) -> Result<Self, StartError> {
        let settings = front_proxy::with_own_identity(settings);
        portico_kit::atomic_file::create_private_dir(&settings.data_dir)
            .map_err(|source| StartError::DataDir { path: settings.data_dir.clone(), source })?;
        let (store_tasks, tasks) = (TaskSet::new(), TaskSet::new());
        let kinds = Kinds::enabled(&settings.expiration, &settings.runtime_config)?;
        let table = portico_resources::table_with_gates(&settings.features);
        let indexer_and_layout = (table.indexer(&kinds), table.etcd_layout(settings.event_ttl)?);
        let (store, encryption) =
            open_store(&settings, indexer_and_layout, &process, &tasks, &store_tasks).await?;
        let start_context = StartContext {
            kinds,
            table,
            store: Arc::clone(&store),
            encryption,
            tasks: tasks.clone(),
            store_tasks,
        };
        let started = Self::start_components(start_context, settings, process).await;
        if started.is_err() {
            // Close the database properly for the next start.
            tasks.cancel();
            store.close().await;
        }
        started
    }

    /// Starts every component on an open store.
    async fn start_components(
        context: StartContext,
        settings: ServerSettings,
        process: Process,
    ) -> Result<Self, StartError> {
        let StartContext { kinds, mut table, store, encryption, tasks, store_tasks } = context;
        let pki = Pki::load_or_create(&settings.cert_dir, &names(&settings), settings.own_front_proxy)?;
        let pki = Arc::new(pki);
        let signing = RequestSigning::load(&settings, &pki)?;
        let (trust, verifier) = LocalTrust::issue();
        let identities = TrustedIdentities::new(
            &settings,
            pki.authority.cert_pem(),
            signing.own_ca.as_deref(),
            verifier,
            &process.metrics,
        )?;
        expose_features(&settings, &process.metrics);
        let issuers = tokens::token_issuers(&settings, &process)?;
        let (identity, signer) =
            tokens::identity(&settings, &identities, issuers.clone(), &process.metrics, &tasks).await?;
        portico_identity::add_actions(&mut table, &identity);
        let admission = Arc::new(admission_chain(&settings, &process, &tasks)?);
        let registry = Registry::new(
            Arc::clone(&store),
            &kinds,
            &table,
            admission.clone(),
            Arc::clone(&identities.authorizer),
            settings.registry.clone(),
            Arc::new(jiff::Timestamp::now),
        );
        identities
            .set_reviewer(&identity, Arc::new(TokenReviewer::new(registry.clone(), Arc::clone(&identity))));
        registry.offload_to(Arc::clone(&process.offload));
        let definitions =
            registry.serve_custom_resources().await.map_err(|e| StartError::Definitions(e.to_string()))?;
        tasks.spawn_until_cancelled("definitions", definitions);
        let health = Health::new(settings.livez_grace_period);
        let (drain, drained) = drain::channel();
        let listener = bind(&settings, &pki, &process)?;
        let bind_error = |source| StartError::Bind { address: settings.control_address, source };
        let address = listener.local_addr().map_err(bind_error)?;
        identities.watch(&tasks);
        signing.watch(&tasks);
        let renewed = RenewedPki::new(&settings, Arc::clone(&pki), listener.tls().clone())?;
        renewed.run(&tasks);
        let hooks = Hooks::new(health.clone());
        let manifests = manifests::build(&settings, &registry, &health, &process)?;
        let manifests_state = manifests.as_ref().map(Manifests::state);
        let inputs = hooks::ComponentInputs { tasks: &tasks, own_address: address, manifests_state };
        let components = hooks::Components::build(&settings, &registry, &kinds, &hooks, &process, inputs)?;
        components.add_checks(&health, &store, &registry, &admission)?;
        encryption.add_check(&health)?;
        encryption.watch(&tasks);
        let token_inputs = (&identity, issuers.as_ref(), signer.as_deref());
        publish(&settings, token_inputs, &signing, &identities, &components, &tasks);
        identities.set_webhooks(&registry);
        let (controlled_registry, queue_metrics) = (registry.clone(), process.metrics.clone());
        components.publish_entries(&registry, &identities.rbac, &tasks);
        let (rpc_store, rpc_pki) = (Arc::clone(&store), renewed.clone());
        let auditor = process.auditor.clone();
        let services = rpc::ServiceInputs { registry, admission, store: rpc_store, pki: rpc_pki, process };
        let (chain, routes) = services.build(&components, &identities, &tasks)?;
        let local_services = (chain.layer(routes.clone()), trust);
        rpc::serve(&settings, listener, chain, routes, &tasks, drained);
        let trust = pki.facade_trust(&settings.cert_dir)?;
        let inputs = controllers::ControllerInputs {
            ca: &trust,
            facade_address: Arc::clone(&components.facade_address),
            on_counts: components.stored_objects(),
            aggregated: components.aggregated(),
            listeners: identities.node_listener().into_iter().chain(components.instance_listener()).collect(),
            identity: Arc::clone(&identity),
            signing: &signing,
        };
        let address_publisher =
            controllers::start(&settings, &controlled_registry, inputs, &queue_metrics, &hooks, &tasks)?;
        hooks.run_post_start(&tasks);
        let expiry =
            portico_controllers::expiry::run(controlled_registry.clone(), settings.event_ttl, tasks.clone());
        tasks.spawn("expiry", expiry);
        let (checks_known, ready) = (components.checks_known.clone(), components.ready.clone());
        let manifests_servers = ManifestsFolderServers::new(components.aggregated(), auditor);
        manifests::start(manifests.clone(), manifests_servers, health.clone(), &tasks);
        health_checks::publish(health, components.board.clone(), checks_known, ready, &tasks);
        Ok(Self {
            settings,
            address,
            pki: renewed,
            store,
            ready: components.ready.clone(),
            local_services,
            identities,
            issuers,
            address_publisher,
            facades: components.facades.clone(),
            registry: controlled_registry,
            manifests,
            tasks,
            store_tasks,
            drain,
        })
    }

    /// Returns the address at which gRPC is served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the services for the facade of the same process (without socket and TLS, behind the same chain), and the proof of
    /// trust that its calls carry. The caller sets deadlines and limits, because no transport enforces them.
    #[must_use]
    pub fn local_services(&self) -> (LocalServices, LocalTrust) {
        self.local_services.clone()
    }

    /// Publishes the address at which the facade of the same process listens. Workloads find it as
    /// the Service `default/kubernetes`.
    pub fn advertise(&self, facade: SocketAddr) {
        match self.settings.advertise_address {
            None => self.address_publisher.publish(facade),
            Some(address) if address.port() == 0 => {
                self.address_publisher.publish(SocketAddr::new(address.ip(), facade.port()));
            }
            Some(_) => {}
        }
    }

    /// Returns the CA with which clients verify the certificate of the facade, as PEM.
    ///
    /// # Errors
    /// The certificate folder cannot be read.
    pub fn facade_trust(&self) -> Result<String, StartError> {
        Ok(self.pki.current().facade_trust(&self.settings.cert_dir)?)
    }

    /// Returns the certificate of the internal CA, as PEM.
    #[must_use]
    pub fn internal_ca(&self) -> String {
        self.pki.current().authority.cert_pem().to_owned()
    }

    /// Returns the serving certificate for the facade of the same process, with its renewals.
    #[must_use]
    pub fn facade_serving(&self) -> watch::Receiver<CertPair> {
        self.pki.facade_serving()
    }

    /// Returns the paths of the client certificate for backends and of its key: those in the settings, or this process's own.
    #[must_use]
    pub fn proxy_client(&self) -> Option<(PathBuf, PathBuf)> {
        self.settings.proxy_client.clone()
    }

    /// Checks a folder of manifests on a server that runs only for this purpose.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub async fn check_manifests(&self, settings: ManifestsSettings) -> Result<ManifestsReport, String> {
        portico_manifests::check(settings, &self.registry).await
    }

    /// Returns the reason why the folder of manifests is not applied yet, with its changes; `None` if no folder is configured.
    #[must_use]
    pub fn unapplied_manifests(&self) -> Option<watch::Receiver<Option<UnappliedManifests>>> {
        self.manifests.as_ref().map(|manifests| manifests.state().unapplied())
    }

    /// Waits until all checks have passed.
    pub async fn ready(&self) {
        self.ready.signaled().await;
    }

    /// Writes both kubeconfigs. `facade` is `https://host:port` and the CA of the facade's certificate (PEM), if known.
    ///
    /// # Errors
    /// [`StartError::DataDir`].
    pub fn write_kubeconfigs(&self, facade: Option<(String, String)>) -> Result<PathBuf, StartError> {
        let pki = self.pki.current();
        let internal_ca = pki.authority.cert_pem().to_owned();
        let (facade, facade_ca) = facade.unzip();
        let addresses = Addresses {
            facade,
            facade_ca: facade_ca.unwrap_or_default(),
            control: format!("https://{}", self.control_name()),
            internal_ca,
            store_id: self.store.identity().store_id.clone(),
        };
        let dir = &self.settings.data_dir;
        let failed = |source| StartError::DataDir { path: dir.clone(), source };
        kubeconfigs::write_facade(dir, &addresses, &pki.facade).map_err(failed)?;
        kubeconfigs::write_admin(dir, &addresses, &pki.admin).map_err(failed)
    }

    /// Returns `host:port` under which the control service is reachable.
    #[must_use]
    pub fn control_name(&self) -> String {
        self.settings
            .control_external_address
            .clone()
            .unwrap_or_else(|| dialable_address(self.address).to_string())
    }

    /// Reads token and CA files again, and reconciles the folder of manifests (SIGHUP).
    pub async fn reload(&self) {
        if let Some(manifests) = &self.manifests {
            manifests.poll_now();
        }
        self.identities.reload().await;
        if let Some(issuers) = &self.issuers
            && let Err(error) = issuers.reload().await
        {
            tracing::error!(%error, "cannot reload a file, using its previous content");
        }
    }

    /// Waits until a task fails that the service requires.
    pub async fn failed(&self) -> portico_kit::tasks::TaskFailure {
        tokio::select! {
            failure = self.tasks.failed() => failure,
            failure = self.store_tasks.failed() => failure,
        }
    }

    /// Stops without waiting for calls or facades; running calls are aborted. Acknowledged writes are stored.
    pub async fn abort(self) {
        self.drain.signal();
        // Tasks that wait for the store end first, so that they do not report the closed store as a failure.
        self.tasks.shutdown(Duration::ZERO).await;
        self.store.close().await;
        self.store_tasks.shutdown(STOP_GRACE).await;
    }

    /// Stops accepting calls, waits for running ones, and closes the store. Acknowledged writes are already on disk.
    pub async fn stop(self) {
        if timeout(MOVE_GRACE, self.facades.drain()).await.is_err() {
            tracing::warn!("facades did not move to another control service in time");
        }
        self.drain.signal();
        let unfinished = self.tasks.shutdown(STOP_GRACE).await;
        if !unfinished.is_empty() {
            tracing::warn!(tasks = unfinished.join(", "), "tasks did not end in time");
        }
        self.store.close().await;
        self.store_tasks.shutdown(STOP_GRACE).await;
    }
}

/// Returns an address that a client on this machine can dial.
fn dialable_address(address: SocketAddr) -> SocketAddr {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            std::net::Ipv4Addr::LOCALHOST.into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    address
}

/// Opens the store, encrypted as `--encryption-provider-config` requires. If the store can be shared, also synchronizes the keys
/// that control services share.
async fn open_store(
    settings: &ServerSettings,
    (indexer, layout): (KindIndexer, EtcdLayout),
    process: &Process,
    tasks: &TaskSet,
    store_tasks: &TaskSet,
) -> Result<(Arc<dyn Store>, Encryption), StartError> {
    let (server_id, metrics) = (hooks::own_identity().id, portico_store::Metrics::new(&process.metrics));
    let encryption = Encryption::start(&settings.encryption, &server_id, &process.metrics, tasks).await?;
    let (store_settings, seal, indexer) = (settings.store.clone(), encryption.seal(), Arc::new(indexer));
    let store: Arc<dyn Store> = match (settings.postgres.clone(), settings.etcd.clone()) {
        (Some(postgres), _) => Arc::new(
            PostgresStore::open(postgres, store_settings, indexer, seal, metrics, store_tasks).await?,
        ),
        (None, Some(etcd)) => {
            let codec = portico_store::ObjectCodec { indexer, layout: Arc::new(layout), seal };
            Arc::new(EtcdStore::open(etcd, store_settings, codec, metrics, store_tasks).await?)
        }
        (None, None) => {
            Arc::new(SqliteStore::open_sealed(store_settings, indexer, seal, metrics, store_tasks).await?)
        }
    };
    if settings.shares_store() {
        shared_files::synchronize(&*store, settings).await?;
    }
    Ok((store, encryption))
}

/// Sends facades their configuration and its changes.
fn publish(
    settings: &ServerSettings,
    (identity, issuers, signer): (&Arc<TokenAuthority>, Option<&TokenIssuers>, Option<&TokenSigner>),
    signing: &RequestSigning,
    identities: &TrustedIdentities,
    components: &hooks::Components,
    tasks: &TaskSet,
) {
    let board = &components.board;
    token_keys::publish(identity, settings.service_accounts.jwks_uri.as_deref(), board);
    if let Some(signer) = signer {
        token_keys::follow(signer, identity, identities, board, tasks);
    }
    signing.publish(board);
    board.post(service_address_setting(settings));
    board.post([effective_version_setting(settings)]);
    identities.authorizers.publish(board, tasks);
    if let Some(issuers) = issuers {
        issuers.publish(board, tasks);
    }
}

/// Registers the metrics `kubernetes_feature_enabled` and `version_info`.
fn expose_features(settings: &ServerSettings, metrics: &portico_kit::metrics::Registry) {
    metrics.register_constants(
        Desc::gauge(
            "kubernetes_feature_enabled",
            &["name", "stage"],
            "[BETA] This metric records the data about the stage and enablement of a k8s \
             feature.",
        ),
        settings.features.rows(),
    );
    let [binary, emulation, min_compat] = [
        KUBERNETES_PATCH.to_owned(),
        settings.version.emulation.to_string(),
        settings.version.min_compatibility.to_string(),
    ];
    let labels = [
        ("binary", binary),
        ("component", "kube".to_owned()),
        ("emulation", emulation),
        ("min_compat", min_compat),
    ];
    metrics
        .gauge_vec(Desc::gauge(
            "version_info",
            &["binary", "component", "emulation", "min_compat"],
            "[ALPHA] Provides the compatibility version info of the component. The \
             component label is the name of the component, usually kube, but is relevant \
             for aggregated-apiservers.",
        ))
        .get_or_create_owned(&labels)
        .set(1);
}

/// Returns the setting with the address of the API in the first range of Services, which facades show to clients.
fn service_address_setting(settings: &ServerSettings) -> Option<(PayloadKind, String, Option<Payload>)> {
    let range = settings.registry.service_ranges.first()?;
    let address = SocketAddr::new(range.hosts().next()?, kubernetes_service::SERVICE_PORT);
    let text = format!("{range} {address}");
    Some((PayloadKind::Setting, setting::SERVICE_ADDRESS.to_owned(), Some(Payload::Setting(text))))
}

/// Returns the setting with the release that facades report and the oldest compatible release.
fn effective_version_setting(settings: &ServerSettings) -> (PayloadKind, String, Option<Payload>) {
    let EffectiveVersion { emulation, min_compatibility } = settings.version;
    let payload = Payload::Setting(format!("{emulation}\n{min_compatibility}"));
    (PayloadKind::Setting, setting::EFFECTIVE_VERSION.to_owned(), Some(payload))
}

/// Creates the admission chain.
fn admission_chain(
    settings: &ServerSettings,
    process: &Process,
    tasks: &TaskSet,
) -> Result<AdmissionChain, StartError> {
    let mut admission = settings.admission.clone();
    if let Some(file) = settings.admission.configuration.image_policy_kubeconfig() {
        let backend = image_backend::read(file, tasks)?;
        admission.configuration = admission.configuration.with_image_backend(backend);
    }
    let chain = AdmissionChain::new(&admission, &process.metrics);
    let configuration = &settings.admission.configuration;
    let mutating = webhook_users::read(configuration.mutating_webhook_kubeconfig(), tasks)?;
    let validating = webhook_users::read(configuration.validating_webhook_kubeconfig(), tasks)?;
    Ok(chain.with_webhook_users(mutating, validating))
}

fn bind(settings: &ServerSettings, pki: &Pki, process: &Process) -> Result<TlsListener, StartError> {
    let pair = pki.control.cert_pair("control.crt")?;
    let tls = ServerTls::new(
        pair,
        &[],
        &ServerTlsOptions { alpn: vec![b"h2".to_vec()], ..ServerTlsOptions::default() },
    )?;
    let options = ListenerOptions {
        max_connections: settings.max_connections,
        runtimes: Some(Arc::clone(&process.runtimes)),
        inherited_socket: settings.inherited_socket.clone(),
        ..ListenerOptions::new("control")
    };
    let metrics = ListenerMetrics::new(&process.metrics, "control");
    TlsListener::bind(settings.control_address, tls, options, metrics)
        .map_err(|source| StartError::Bind { address: settings.control_address, source })
}
