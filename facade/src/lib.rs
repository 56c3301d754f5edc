//! The facade: serves the Kubernetes API over HTTPS and stores no objects.
//!
//! TLS listener, handler chain, director; own discovery, health and metrics; local APIs from the control service over gRPC,
//! aggregated APIs from backends through the proxy. The routes come from the configuration stream and stay active, also on
//! disk, while the control service is unreachable. Does not depend on kinds, schemas or a store.

mod active_config;
mod app;
mod assembly;
mod body;
mod certificate;
mod configuration;
mod connection;
mod console_paths;
mod control;
mod control_services;
#[cfg(unix)]
mod debug_socket;
#[cfg(not(unix))]
#[path = "no_debug_socket.rs"]
mod debug_socket;
mod director;
mod documents;
mod endpoints;
mod fail_static;
mod freshness;
mod handler;
mod in_flight;
mod issuer;
mod last_hour;
mod layers;
mod local;
mod metrics;
mod mux;
mod peers;
mod proxied_page;
mod record;
mod render;
mod request;
mod respond;
mod response_completion;
mod route_table;
mod serve;
mod settings;
mod sharded_map;
mod status_page;
mod test_faults;
mod transport;
mod unavailable;
mod upload_pace;
mod version_info;
mod wait_group;

pub use assembly::{Facade, ProcessResources, RunningFacade, StartError};
pub use certificate::{
    CertificateError, front_proxy_certificate, maintain_client_certificate, serving_certificate,
};
pub use control_services::ControlServices;
pub use layers::cors::InvalidOrigin;
pub use layers::hsts::InvalidDirective;
pub use portico_auth::authz::AuthorizationMode;
pub use render::{pretty, yaml};
pub use settings::{
    AuthenticationSettings, FacadeSettings, FailStaticSettings, KubeletSettings, ProxyClientCertificate,
    ProxyingSettings, ServingCertificate, ZPages,
};
pub use transport::{ControlTransport, GrpcService};
pub use unavailable::CONTROL_SERVICE_UNAVAILABLE;
pub use version_info::VersionInfo;
