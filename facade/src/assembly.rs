//! Joins the components: starts a facade from settings, and drains a running facade.
//!
//! The only file of this crate that depends on all others. The start order is upstream's (section 4.4).

mod authentication;
mod error;
mod proxying;
mod readiness;
mod series;
mod serving;
mod shutdown;

pub use error::StartError;
pub use shutdown::RunningFacade;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use portico_auth::authz::RemoteAuthorizer;
use portico_facade_catalog::{Catalog, Settings as CatalogSettings};
use portico_flow::{Dispatcher, FlowMetrics, RequestPhase};
use portico_kit::connection_runtimes::ConnectionRuntimes;
use portico_kit::drain;
use portico_kit::health::{Check, Health, HealthEndpoint};
use portico_kit::hooks::Hooks;
use portico_kit::lifecycle::Lifecycle;
use portico_kit::listener::{EvictionCallback, ListenerMetrics, ListenerOptions, TlsListener};
use portico_kit::metrics::{Desc, Registry, process_started};
use portico_kit::offload::Offload;
use portico_kit::spans;
use portico_kit::tasks::TaskSet;
use portico_kit::telemetry::Telemetry;
use prometheus_client::metrics::gauge::Gauge;

use crate::app::{Layers, app};
use crate::configuration::Configuration;
use crate::connection::{ConnectionLimits, OpenConnections};
use crate::control::{
    self, AccessReviewClient, ConfigStreamClient, JsonCalls, ReviewClient, TokenReviewClient,
};
use crate::control_services::ControlServices;
use crate::debug_socket;
use crate::director::{Delegates, Director};
use crate::documents::{self, Documents};
use crate::endpoints::{self, EndpointOptions, Endpoints};
use crate::fail_static::FailStatic;
use crate::freshness::Freshness;
use crate::in_flight::InFlight;
use crate::last_hour::LastHour;
use crate::layers::audit::AuditState;
use crate::layers::authentication::Authenticator;
use crate::layers::authorization::AuthorizationState;
use crate::layers::cors::AllowedOrigins;
use crate::layers::hsts;
use crate::layers::impersonation::ImpersonationState;
use crate::layers::max_in_flight::MaxInFlight;
use crate::layers::priority_and_fairness::FlowControl;
use crate::layers::request_deadline::RequestDeadlines;
use crate::layers::retry_after::RetryAfter;
use crate::layers::route_trace::RouteTraceState;
use crate::layers::wait_group::CountShortRequests;
use crate::layers::watch_termination::WatchTermination;
use crate::local::{BufferLimits, LocalHandler, LocalLimits, LocalMetrics, WatchBuffers};
use crate::metrics::RequestMetrics;
use crate::metrics::access::{AuthenticationMetrics, AuthorizationMetrics};
use crate::mux::Listing;
use crate::peers::{PeerFollower, PeerMetrics, Peers};
use crate::render::Renderer;
use crate::route_table::RouteTable;
use crate::serve::Server;
use crate::settings::FacadeSettings;
use crate::status_page::StatusPage;
use crate::test_faults::FaultStore;
use crate::wait_group::WaitGroup;
use authentication::AuthFiles;
use portico_auditor::Auditor;

/// Resources that a process shares with its facade.
#[derive(Clone, Default)]
pub struct ProcessResources {
    /// All metrics of the process, served at `/metrics`.
    pub registry: Registry,
    /// The log, if its level can be changed over `/debug/flags/v`.
    pub telemetry: Option<Telemetry>,
    /// Threads that serve connections; if `None`, connections are served on the runtime that started the facade.
    pub runtimes: Option<Arc<ConnectionRuntimes>>,
    /// Threads for CPU-bound work; if `None`, the facade starts its own.
    pub offload: Option<Arc<Offload>>,
    /// Records requests; `None` without audit.
    pub auditor: Option<Arc<Auditor>>,
}

/// The facade.
pub struct Facade;

/// Parts that live as long as the facade.
struct Parts {
    tasks: TaskSet,
    watches: TaskSet,
    lifecycle: Lifecycle,
    health: Health,
    hooks: Hooks,
    registry: Registry,
    metrics: Arc<RequestMetrics>,
    local_metrics: LocalMetrics,
    short_requests: WaitGroup,
    watch_requests: WaitGroup,
    in_flight: InFlight,
    /// Set if requests queue; it replaces `in_flight` then.
    flow: Option<Dispatcher>,
    freshness: Arc<Freshness>,
    documents: Arc<Documents>,
    catalog: Arc<Catalog>,
    renderer: Renderer,
    configuration: Arc<Configuration>,
    last_hour: Arc<LastHour>,
    /// Set with `--test-faults`.
    test_faults: Option<Arc<FaultStore>>,
}

impl Facade {
    /// Binds, serves, and connects to the control service in the background. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`StartError`]; all that was started is stopped again.
    pub fn start(
        settings: FacadeSettings,
        process: ProcessResources,
        control: impl Into<ControlServices>,
    ) -> Result<RunningFacade, StartError> {
        let control = control.into();
        let parts = Parts::new(&settings, &process)?;
        let serving = serving::ServingTls::load(&settings)?;
        let auth = AuthFiles::load(&settings, &process.registry)?;
        let proxying = proxying::ProxyAssembly::load(&settings, &process.registry, &parts.tasks)?;

        let mut options = ListenerOptions::new("https");
        options.handshake_timeout = settings.tls_handshake_timeout;
        options.max_connections = settings.max_connections;
        let open = OpenConnections::default();
        let (idle, places) = (open.clone(), settings.max_connections);
        options.eviction_callback = Some(EvictionCallback::new(move || idle.close_idle(places)));
        options.share_port = settings.permit_port_sharing;
        options.inherited_socket.clone_from(&settings.passed_socket);
        options.runtimes.clone_from(&process.runtimes);
        let metrics = ListenerMetrics::new(&process.registry, "https");
        let listener = TlsListener::bind(settings.address, serving.tls.clone(), options, metrics);
        let listener = listener.map_err(|source| StartError::Bind { address: settings.address, source })?;
        let addr =
            listener.local_addr().map_err(|source| StartError::Bind { address: settings.address, source })?;
        proxying.policy.add_own_listener(addr);
        let server_address = server_address(&settings, addr);
        parts.catalog.set_server_address(&*server_address);

        parts.load_state(&settings);
        parts.configuration.set_authenticators(auth.authenticators());
        let peers = parts.follow_peers(&proxying);
        let proxy = proxying.proxy.clone();
        let director = parts.director(&settings, &process, &control, proxy, peers, server_address);
        let handler = app(parts.layers(&settings, &control, process.auditor.as_ref())?, director);
        parts.health.install();

        let (drain, watch) = drain::channel();
        let connections = TaskSet::new();
        let stopping = parts.lifecycle.shutdown_initiated.clone();
        let server =
            Arc::new(Server::new(handler, limits(&settings), &connections, open, stopping, watch.clone()));
        let first = {
            let (synced, health) = (parts.configuration.synced.clone(), parts.health.clone());
            readiness::wait_until_servable(settings.serve_when_ready, synced, health, watch.clone())
        };
        let served = listener.serve(connections.clone(), watch, move |accepted| {
            let server = server.clone();
            async move { server.connection(accepted).await }
        });
        connections.spawn("https-listener", first.then(|()| served));
        parts.hooks.run_post_start(&parts.tasks);
        let (of_serving, of_auth, of_proxying) = (serving.clone(), auth.clone(), proxying.clone());
        let certificates = Box::new(move || {
            [of_serving.certificates(), of_auth.certificates(), of_proxying.certificates()].concat()
        });
        parts.tasks.spawn_until_cancelled("last-hour", parts.last_hour.clone().sample(certificates));
        parts.start_background_tasks(&settings, control);
        if let Some(path) = &settings.debug_socket {
            let router = endpoints::debug_router(process.telemetry.clone());
            debug_socket::serve(path, router, &parts.tasks);
        }
        serving.follow(&parts.tasks);
        auth.follow(&parts.tasks, &parts.configuration);
        proxying.follow(&parts.tasks);
        tracing::info!(address = %addr, "serving HTTPS");
        Ok(RunningFacade::new(addr, settings, parts, drain, connections, (serving, auth, proxying)))
    }
}

/// Page with the static paths of the index; the start time is that of the process's first thread.
fn status_page(settings: &FacadeSettings) -> StatusPage {
    let paths = endpoints::builtin_paths(&EndpointOptions::from_settings(settings));
    let listed_paths = paths.iter().filter(|path| path.listing == Listing::Listed);
    StatusPage::new(process_started(), listed_paths.map(|path| path.path.as_str()))
}

fn config_age(registry: &Registry) -> Gauge {
    registry.gauge(Desc::gauge(
        "portico_config_age_seconds",
        &[],
        "Seconds since the control service last confirmed the current configuration; \
         -1 if there is none",
    ))
}

fn limits(settings: &FacadeSettings) -> ConnectionLimits {
    ConnectionLimits {
        header_timeout: settings.request_header_timeout,
        idle_timeout: settings.idle_timeout,
        stalled_write: settings.stalled_write_timeout,
        max_header_bytes: settings.max_request_header_bytes,
        max_streams: settings.http2_max_streams_per_connection,
        ..ConnectionLimits::default()
    }
}

impl Parts {
    fn new(settings: &FacadeSettings, process: &ProcessResources) -> Result<Self, StartError> {
        let lifecycle = Lifecycle::new();
        let health = Health::new(settings.livez_grace_period);
        health.on_ready(lifecycle.has_been_ready.clone());
        let hooks = Hooks::new(health.clone());
        let metrics = RequestMetrics::new(&process.registry);
        settings.version.register(&process.registry);
        let (max_reads, max_mutations) =
            (settings.max_requests_inflight, settings.max_mutating_requests_inflight);
        let in_flight = InFlight::new(max_reads, max_mutations, metrics.clone());
        let flow = settings.enable_priority_and_fairness.then(|| {
            let request_metrics = metrics.clone();
            let observe = move |phase, kind, count| request_metrics.record_concurrency(phase, kind, count);
            let flow =
                Dispatcher::new(max_reads.saturating_add(max_mutations), settings.request_timeout, observe);
            let flow_metrics = FlowMetrics { dispatcher: flow.clone(), prefix: "apiserver_flowcontrol" };
            process.registry.register_collector(Box::new(flow_metrics));
            flow
        });
        let max_age = settings.fail_static.as_ref().map_or(Duration::MAX, |f| f.max_age);
        let freshness = Arc::new(Freshness::new(max_age));
        let documents = Arc::new(Documents::new(settings.fail_static.is_some()));
        let table = RouteTable::new(&endpoints::builtin_paths(&EndpointOptions::from_settings(settings)))?;
        let synced = lifecycle.register_completion("ConfigurationInForce");
        let modes = settings.authorization.clone();
        let configuration = Configuration::new(table, modes, health.clone(), synced);
        let configuration = Arc::new(match &flow {
            Some(flow) => configuration.with_flow(flow.clone()),
            None => configuration,
        });
        let tasks = TaskSet::new();
        let offload = match &process.offload {
            Some(offload) => Arc::clone(offload),
            None => Arc::new(Offload::start("long-work", &tasks).map_err(StartError::Threads)?),
        };
        let catalog = Catalog::new(catalog_settings(settings), documents.clone(), Arc::clone(&offload));
        let renderer = Renderer::new(offload);
        let last_hour = LastHour::new(metrics.clone(), in_flight.clone(), flow.clone(), health.clone());
        let parts = Self {
            last_hour: Arc::new(last_hour),
            tasks,
            watches: TaskSet::new(),
            lifecycle,
            health,
            hooks,
            registry: process.registry.clone(),
            metrics,
            local_metrics: LocalMetrics::new(&process.registry),
            short_requests: WaitGroup::default(),
            watch_requests: WaitGroup::default(),
            in_flight,
            flow,
            freshness,
            documents,
            catalog: Arc::new(catalog),
            renderer,
            configuration,
            test_faults: settings.test_faults.then(Arc::default),
        };
        parts.add_checks()?;
        Ok(parts)
    }

    /// Adds upstream's own checks; the configuration stream delivers those of the control service.
    fn add_checks(&self) -> Result<(), StartError> {
        self.health.add(&HealthEndpoint::ALL, Check::ping())?;
        self.health.add(&HealthEndpoint::ALL, Check::new("log", || Ok(())))?;
        let (synced, freshness) = (self.configuration.synced.clone(), self.freshness.clone());
        let informer_sync =
            Check::new("informer-sync", move || match (synced.is_signaled(), freshness.is_expired()) {
                (false, _) => Err("no configuration received from the control service yet".to_owned()),
                (true, true) => Err("the configuration is older than --fail-static-max-age".to_owned()),
                (true, false) => Ok(()),
            });
        self.health.add(&[HealthEndpoint::Readyz], informer_sync)?;
        self.add_limiter_hooks()?;
        let stopping = self.lifecycle.shutdown_initiated.clone();
        let shutdown = Check::new("shutdown", move || match stopping.is_signaled() {
            true => Err("process is shutting down".to_owned()),
            false => Ok(()),
        });
        Ok(self.health.add(&[HealthEndpoint::Readyz], shutdown)?)
    }

    /// Adds the start hook of the request limiter, under upstream's name.
    fn add_limiter_hooks(&self) -> Result<(), StartError> {
        let (in_flight, flow, metrics) = (self.in_flight.clone(), self.flow.clone(), self.metrics.clone());
        let (freshness, age) = (self.freshness.clone(), config_age(&self.registry));
        let limiter = if flow.is_some() { "priority-and-fairness-filter" } else { "max-in-flight-filter" };
        let dispatcher = flow.clone();
        self.hooks.add_post_start(limiter, move |context| async move {
            context.tasks.spawn_until_cancelled("in-flight-high-water", async move {
                let mut ticks = tokio::time::interval(Duration::from_secs(1));
                loop {
                    ticks.tick().await;
                    let counts = match &dispatcher {
                        Some(flow) => {
                            [RequestPhase::Executing, RequestPhase::Waiting].map(|phase| flow.inflight(phase))
                        }
                        None => [in_flight.counts(), [0, 0]],
                    };
                    metrics.take_high_water(counts);
                    age.set(
                        freshness.age().map_or(-1, |age| i64::try_from(age.as_secs()).unwrap_or(i64::MAX)),
                    );
                }
            });
            Ok(())
        })?;
        let Some(flow) = flow else { return Ok(()) };
        self.hooks.add_post_start("priority-and-fairness-config-consumer", move |context| async move {
            context.tasks.spawn_until_cancelled("flow-rebalance", flow.clone().rebalance());
            context.tasks.spawn_until_cancelled("flow-give-back", flow.release_due_seats());
            Ok(())
        })?;
        Ok(())
    }

    fn load_state(&self, settings: &FacadeSettings) {
        if let Some(f) = &settings.fail_static {
            let state = FailStatic::new(&f.data_dir, f.store_id.clone());
            state.load(&self.configuration, &self.documents, &self.freshness);
        }
    }

    /// Starts to follow other servers behind the same address; `None` if no requests are forwarded to peers.
    fn follow_peers(&self, proxying: &proxying::ProxyAssembly) -> Option<Arc<Peers>> {
        let authority = proxying.peer_authority()?;
        let peers = Arc::new(Peers::new(PeerMetrics::new(&self.registry)));
        let follow = PeerFollower {
            peers: Arc::clone(&peers),
            catalog: Arc::clone(&self.catalog),
            configuration: Arc::clone(&self.configuration),
            proxy: proxying.proxy.clone(),
            authority,
        };
        self.tasks.spawn_until_cancelled("peers", follow.run());
        Some(peers)
    }

    fn director(
        &self,
        settings: &FacadeSettings,
        process: &ProcessResources,
        control: &ControlServices,
        proxy: portico_proxy::Proxy,
        peers: Option<Arc<Peers>>,
        server_address: String,
    ) -> Director {
        let slis = self.registry.new_sibling();
        self.health.register_metrics(&slis);
        let limits = LocalLimits {
            max_body: settings.max_request_body_bytes,
            stalled_write: settings.stalled_write_timeout,
            max_silence: settings.control_request_timeout,
        };
        let configuration = &self.configuration;
        let endpoints = Endpoints {
            health: self.health.clone(),
            registry: process.registry.clone(),
            slis,
            telemetry: process.telemetry.clone(),
            version: settings.version.clone(),
            options: EndpointOptions::from_settings(settings),
            status_page: status_page(settings),
            catalog: self.catalog.clone(),
            flow: self.flow.clone(),
            renderer: self.renderer.clone(),
            console: settings.console.then(|| self.console(settings, process, control)),
            test_faults: self.test_faults.clone().map(|faults| endpoints::TestFaults {
                faults,
                control: JsonCalls::new(control.clone(), settings.max_request_body_bytes),
            }),
            server_address,
        };
        let per_watch = settings.watch_buffer_bytes;
        let total = settings.max_watch_buffer_bytes.max(per_watch);
        let local = LocalHandler {
            services: control.clone(),
            limits,
            configuration: configuration.clone(),
            proxy: proxy.clone(),
            tasks: self.watches.clone(),
            buffers: WatchBuffers::new(
                BufferLimits { per_watch, total, max_wait: settings.stalled_write_timeout },
                &process.registry,
            ),
            renderer: self.renderer.clone(),
            metrics: self.local_metrics.clone(),
        };
        Director::new(Delegates {
            freshness: self.freshness.clone(),
            endpoints: endpoints::router(endpoints),
            catalog: self.catalog.clone(),
            renderer: self.renderer.clone(),
            proxy,
            peers,
            local,
        })
    }

    /// State for the console.
    fn console(
        &self,
        settings: &FacadeSettings,
        process: &ProcessResources,
        control: &ControlServices,
    ) -> endpoints::Console {
        endpoints::Console {
            last_hour: self.last_hour.samples.clone(),
            audit_tail: process.auditor.as_ref().and_then(|auditor| auditor.tail()),
            control: JsonCalls::new(control.clone(), settings.max_request_body_bytes),
            active_config: self.configuration.active.clone(),
            stopping: self.lifecycle.shutdown_initiated.clone(),
        }
    }

    fn layers(
        &self,
        settings: &FacadeSettings,
        control: &ControlServices,
        auditor: Option<&Arc<Auditor>>,
    ) -> Result<Layers, StartError> {
        let asker = ReviewClient::new(control.clone(), settings.control_request_timeout);
        let decider: Arc<dyn RemoteAuthorizer> = Arc::new(AccessReviewClient::new(asker.clone()));
        let life = &self.lifecycle;
        let timed = |name| self.metrics.filter(name);
        let cors = AllowedOrigins::new(&settings.cors_allowed_origins)?;
        let watches = !settings.shutdown_watch_termination_grace_period.is_zero();
        Ok(Layers {
            mux_complete: life.mux_and_discovery_complete.clone(),
            active_config: self.configuration.active.clone(),
            metrics: self.metrics.clone(),
            retry_after: settings
                .shutdown_send_retry_after
                .then(|| RetryAfter { not_accepting: life.not_accepting_new_request.clone() }),
            hsts: hsts::hsts(&settings.strict_transport_security_directives)?,
            goaway_chance: (settings.goaway_chance > 0.0).then_some(settings.goaway_chance),
            watch_termination: watches.then(|| WatchTermination {
                group: self.watch_requests.clone(),
                shutdown: life.not_accepting_new_request.clone(),
            }),
            wait_group: CountShortRequests { group: self.short_requests.clone() },
            audits: auditor
                .map(|auditor| AuditState { auditor: Arc::clone(auditor), duration: timed("audit") }),
            request_deadlines: RequestDeadlines {
                auditor: auditor.cloned(),
                request_timeout: settings.request_timeout,
                stalled_read: settings.stalled_read_timeout,
            },
            cors: cors.clone(),
            authentication: Authenticator {
                cors,
                console: settings.console,
                auditor: auditor.cloned(),
                reviewer: Arc::new(TokenReviewClient(asker)),
                metrics: AuthenticationMetrics::new(&self.registry, timed("authentication")),
            },
            exports_spans: spans::are_exported(),
            route_traces: RouteTraceState {
                remote_authorizer: Arc::clone(&decider),
                facade: settings.name.clone(),
            },
            impersonation: ImpersonationState {
                decider: Arc::clone(&decider),
                duration: timed("impersonation"),
            },
            flow: self
                .flow
                .clone()
                .map(|dispatcher| FlowControl { dispatcher, duration: timed("priorityandfairness") }),
            max_in_flight: match self.flow {
                Some(_) => None,
                None => Some(MaxInFlight { in_flight: self.in_flight.clone() }),
            },
            authorization: AuthorizationState {
                decider,
                metrics: AuthorizationMetrics::new(&self.registry, timed("authorization")),
                console: settings.console,
            },
            test_faults: self.test_faults.clone(),
        })
    }

    /// Starts the configuration stream, the fetches of the documents that it names, and the saved state on disk.
    fn start_background_tasks(&self, settings: &FacadeSettings, control: ControlServices) {
        let fetch = control.clone();
        self.documents.fetch_with(Arc::new(move |hash| {
            let control = fetch.clone();
            Box::pin(async move { control::fetch_document(&control, hash).await })
        }));
        let (configuration, documents) = (self.configuration.clone(), self.documents.clone());
        self.tasks.spawn_until_cancelled("catalog-documents", documents::follow(configuration, documents));
        if let Some(f) = &settings.fail_static {
            let state = FailStatic::new(&f.data_dir, f.store_id.clone());
            let keep = state.save_until_canceled(
                self.configuration.clone(),
                self.documents.clone(),
                self.freshness.clone(),
            );
            self.tasks.spawn_until_cancelled("fail-static", keep);
        }
        let (requests, local) = (self.metrics.clone(), self.local_metrics.clone());
        let dropped = series::drop_unserved(self.configuration.active.clone(), requests, local);
        self.tasks.spawn_until_cancelled("metric-series", dropped);
        let configuration = self.configuration.clone();
        self.tasks
            .spawn_until_cancelled("control-service-in-use", report_in_use(control.clone(), configuration));
        let client = ConfigStreamClient::new(
            control,
            self.configuration.clone(),
            self.freshness.clone(),
            self.last_hour.clone(),
            settings.name.clone(),
        );
        self.tasks.spawn_until_cancelled("config-stream", client.run());
        let lifecycle = self.lifecycle.clone();
        self.tasks.spawn_until_cancelled("mux-and-discovery-complete", async move {
            lifecycle.complete_mux_and_discovery().await;
        });
    }
}

/// Shows the control service in use in `/readyz?verbose`.
async fn report_in_use(services: ControlServices, configuration: Arc<Configuration>) {
    if services.is_single() {
        return;
    }
    let mut changes = services.subscribe();
    loop {
        configuration.report_in_use(&services.describe());
        // The sender lives as long as `services`.
        let _never_gone = changes.changed().await;
    }
}

fn catalog_settings(settings: &FacadeSettings) -> CatalogSettings {
    let version = format!("{}.{}", settings.version.major, settings.version.minor);
    CatalogSettings { server_address: server_address(settings, settings.address), version }
}

/// Address that `/api` reports: the external name, the advertised address, or the bound address.
fn server_address(settings: &FacadeSettings, bound: SocketAddr) -> String {
    match settings.external_hostname.as_str() {
        "" => SocketAddr::new(settings.advertise_address.unwrap_or(bound.ip()), bound.port()).to_string(),
        host => format!("{host}:{}", bound.port()),
    }
}
