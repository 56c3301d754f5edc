//! The gRPC services, combined behind the chain of layers and served.

use std::sync::Arc;
use std::time::Duration;

use portico_admission::AdmissionChain;
use portico_kit::drain;
use portico_kit::listener::TlsListener;
use portico_kit::tasks::TaskSet;
use portico_proto::admin::admin_server::AdminServer;
use portico_proto::apiextensions::definitions_server::DefinitionsServer;
use portico_proto::apiregistration::api_services_server::ApiServicesServer;
use portico_proto::catalog::catalog_server::CatalogServer;
use portico_proto::config::config_server::ConfigServer;
use portico_proto::history::history_server::HistoryServer;
use portico_proto::objects::objects_server::ObjectsServer;
use portico_proto::routes::routes_server::RoutesServer;
use portico_proto::{DESCRIPTORS, MAX_MESSAGE_BYTES};
use portico_registry::Registry;
use portico_store::Store;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_reflection::server::Builder as Reflection;

use super::error::StartError;
use super::hooks::Components;
use super::identities::TrustedIdentities;
use super::process::Process;
use super::renewal::RenewedPki;
use crate::chain::ChainLayer;
use crate::grpc::WriteGate;
use crate::grpc::admin::AdminService;
use crate::grpc::admission::AdmissionExplainer;
use crate::grpc::api_services::ApiServicesService;
use crate::grpc::catalog::CatalogService;
use crate::grpc::config::{ConfigService, PingResponder};
use crate::grpc::definitions::DefinitionsService;
use crate::grpc::history::HistoryService;
use crate::grpc::objects::ObjectsService;
use crate::grpc::routes::{Explainer, RoutesService};
use crate::listen;
use crate::settings::ServerSettings;

/// Interval of HTTP/2 keepalive pings on an idle connection.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// Timeout for the response to a keepalive ping.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Dependencies of the services.
pub(super) struct ServiceInputs {
    pub(super) registry: Registry,
    pub(super) admission: Arc<AdmissionChain>,
    pub(super) store: Arc<dyn Store>,
    pub(super) pki: RenewedPki,
    pub(super) process: Process,
}

/// Wraps a service with the limit of message sizes. Responses that could be larger are limited by the services themselves: if the
/// server refused a response because of its size, the caller would get an error for a completed write.
macro_rules! limited {
    ($server:ident, $service:expr) => {
        $server::new($service).max_decoding_message_size(MAX_MESSAGE_BYTES)
    };
}

impl ServiceInputs {
    /// Builds every service of the API, health and reflection, and the chain of layers around them.
    pub(super) fn build(
        self,
        components: &Components,
        identities: &TrustedIdentities,
        tasks: &TaskSet,
    ) -> Result<(ChainLayer, Routes), StartError> {
        let admission = AdmissionExplainer { chain: self.admission, registry: self.registry.clone() };
        let explainer = Explainer::new(components.routes.clone(), components.explain_sources(&self.registry));
        let pki = self.pki.current();
        let config = ConfigService {
            sources: components.sources(&*self.store),
            facades: components.facades.clone(),
            authority: Arc::clone(&pki.authority),
            front_proxy: pki.front_proxy.as_ref().map(|identity| Arc::clone(&identity.authority)),
            tasks: tasks.clone(),
            pings: PingResponder::new(Arc::clone(&self.store), components.ready.clone(), tasks.clone()),
            own_certificates: Arc::new(move || self.pki.certificates()),
        };
        let admin = AdminService {
            metrics: self.process.metrics,
            store: self.store,
            telemetry: self.process.telemetry,
            tasks: tasks.clone(),
        };
        let write_gate = WriteGate(components.storage_versions.clone());
        let queues = components.queues.clone();
        let api_services = ApiServicesService::new(
            self.registry.clone(),
            explainer.clone(),
            write_gate.clone(),
            queues.clone(),
        );
        let definitions = DefinitionsService { registry: self.registry.clone() };
        let history = HistoryService {
            registry: self.registry.clone(),
            write_gate: write_gate.clone(),
            queues: queues.clone(),
        };
        let auditor = self.process.auditor;
        let mut builder = Routes::builder();
        builder
            .add_service(limited!(
                ObjectsServer,
                ObjectsService::new(self.registry, components.routes.clone(), write_gate, queues)
            ))
            .add_service(limited!(ApiServicesServer, api_services))
            .add_service(limited!(ConfigServer, config))
            .add_service(limited!(CatalogServer, CatalogService { documents: components.documents() }))
            .add_service(limited!(RoutesServer, RoutesService { explainer, admission }))
            .add_service(limited!(AdminServer, admin))
            .add_service(limited!(DefinitionsServer, definitions))
            .add_service(limited!(HistoryServer, history))
            .add_service(health(components, tasks))
            .add_service(reflection().build_v1()?)
            .add_service(reflection().build_v1alpha()?);
        Ok((ChainLayer::new(Arc::clone(&identities.identities), auditor), builder.routes().prepare()))
    }
}

/// `grpc.health.v1`: serving once all checks have passed, until the server stops.
fn health(components: &Components, tasks: &TaskSet) -> HealthServer<impl Health> {
    let (reporter, service) = tonic_health::server::health_reporter();
    let (ready, stop) = (components.ready.clone(), tasks.token());
    tasks.spawn("grpc-health", async move {
        reporter.set_service_status("", ServingStatus::NotServing).await;
        if stop.run_until_cancelled(ready.signaled()).await.is_some() {
            reporter.set_service_status("", ServingStatus::Serving).await;
            stop.cancelled().await;
        }
        reporter.set_service_status("", ServingStatus::NotServing).await;
    });
    service
}

fn reflection<'a>() -> Reflection<'a> {
    Reflection::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        // Types of error details, which clients decode with these descriptors.
        .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
}

/// Serves each connection on the runtime that accepted it, until the server is drained.
pub(super) fn serve(
    settings: &ServerSettings,
    listener: TlsListener,
    chain: ChainLayer,
    routes: Routes,
    tasks: &TaskSet,
    drained: drain::Watch,
) {
    let server = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .max_concurrent_streams(settings.max_streams_per_connection)
        .layer(chain)
        .add_routes(routes);
    let drained_signal = drained.clone();
    tasks.spawn(
        "grpc-listener",
        listener.serve(tasks.clone(), drained, move |accepted| {
            listen::serve(server.clone(), accepted, drained_signal.clone())
        }),
    );
}
