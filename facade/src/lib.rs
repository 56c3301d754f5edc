//! The facade: owns HTTP and holds no truth.
//!
//! TLS listener, handler chain, director; discovery, health and metrics of its own; local APIs from the control
//! service over gRPC, others from backends through the proxy. What leads where comes from the Config stream and
//! stays in force, on disk too, while the control service is away. It must not know kinds, schemas or a store.

// The chain is nested as types: each filter adds a few levels to the layout of its future.
#![recursion_limit = "256"]

mod assembly;
mod body;
mod certificate;
mod chain;
mod configuration;
mod context;
mod control;
mod director;
mod documents;
mod endpoints;
mod fail_static;
mod filters;
mod freshness;
mod issuer;
mod local;
mod metrics;
mod mux;
mod pace;
mod render;
mod respond;
mod route_table;
mod serve;
mod settings;
mod sharded;
mod tail;
mod transport;

pub use assembly::{Facade, Process, RunningFacade, StartError};
pub use certificate::{CertificateError, keep_client_certificate, signed_certificate};
pub use endpoints::VersionInfo;
pub use filters::cors::BadOrigin;
pub use filters::hsts::BadDirective;
pub use local::CONTROL_SERVICE_UNAVAILABLE;
pub use portico_auth::authz::Mode as AuthorizationMode;
pub use settings::{
    AuthenticationSettings, FacadeSettings, FailStaticSettings, KubeletSettings, ProxyingSettings,
    ServingCertificate,
};
pub use transport::{ControlTransport, GrpcService};
