//! The control service, which owns state and serves gRPC.
//!
//! `assembly` combines the components (store, registry, routes, catalog, controllers) with the services of `grpc` and the layers
//! of `chain`. This crate does not depend on the HTTP paths of the Kubernetes API or on the facade.

mod assembly;
mod audited_requests;
mod chain;
pub mod data;
mod encryption;
mod front_proxy;
mod grpc;
mod kubeconfigs;
mod listen;
mod pki;
mod queues;
mod reload_metrics;
mod settings;
mod token_signer;
mod unix_socket;

pub use assembly::{LocalServices, Process, Server, StartError};
pub use encryption::{EncryptionError, EncryptionSettings};
pub use portico_admission::{
    AdmissionSettings, Configuration as AdmissionConfiguration, DefaultTolerations, EnabledPlugins,
    PluginNameError, plugin_reference,
};
pub use portico_auth::authz::review::ReviewVersion;
pub use portico_controllers::leader_lease::LeadershipTimers;
pub use portico_controllers::names as controllers;
pub use portico_controllers::resource_quota::QuotaSettings;
pub use portico_controllers::service_endpoints::endpoints::EndpointsSettings;
pub use portico_controllers::service_endpoints::mirroring::MirroringSettings;
pub use portico_controllers::service_endpoints::slices::SliceSettings;
pub use portico_controllers::settings::ControllerSettings;
pub use portico_kinds::{RuntimeConfig, RuntimeConfigError, StorageNameError};
pub use portico_manifests::{
    Finding as ManifestsFinding, FolderReport as ManifestsReport, Settings as ManifestsSettings,
    UnappliedFolder as UnappliedManifests, list_items,
};
pub use portico_registry::{
    ConnectionSettings, Settings as RegistrySettings, TranslationSettings, WebhookLimits,
};
pub use portico_store::{ArchiveRules, EtcdSettings, PostgresSettings, Settings as StoreSettings};
pub use settings::{
    AuthenticationSettings, AuthorizationFlags, AuthorizationSettings, OidcFlags, ServerSettings,
    ServiceAccountSettings, SigningSettings, TokenWebhookSettings,
};

/// Checks that the resources which are enabled by name exist in the emulated release.
///
/// # Errors
/// [`RuntimeConfigError`]
pub fn check_introduced(
    evaluator: &portico_machinery::expiration::ExpirationEvaluator,
    runtime_config: &RuntimeConfig,
) -> Result<(), RuntimeConfigError> {
    portico_kinds::Kinds::check_introduced(evaluator, runtime_config)
}

/// Returns the resource under which objects of a named resource are stored, for built-in and custom resources.
///
/// # Errors
/// [`StorageNameError`]
pub fn storage_of(
    resource: &portico_machinery::GroupResource,
) -> Result<portico_machinery::GroupResource, StorageNameError> {
    portico_kinds::Kinds::all()?.storage_of(resource)
}
