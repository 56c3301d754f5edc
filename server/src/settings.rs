//! Settings of the control service: plain values, parsed and checked before any socket is bound.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use portico_auth::authz::AuthorizationMode;
use portico_auth::authz::review::ReviewVersion;
use portico_controllers::leader_lease::LeadershipTimers;
use portico_controllers::settings::ControllerSettings;
use portico_kinds::RuntimeConfig;
use portico_machinery::FrontProxy;
use portico_machinery::effective_version::EffectiveVersion;
use portico_machinery::expiration::ExpirationEvaluator;
use portico_machinery::features::FeatureGates;

use crate::encryption::EncryptionSettings;

/// Settings of the control service.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Folder of the database, kubeconfigs and, by default, certificates.
    pub data_dir: PathBuf,
    /// Folder of certificates.
    pub cert_dir: PathBuf,
    /// Address at which gRPC is served; port 0 selects a free port.
    pub control_address: SocketAddr,
    /// Socket that already listens at that address, inherited from the parent process.
    pub inherited_socket: Option<Arc<TcpListener>>,
    /// `HOST:PORT` under which the control service is reachable for others.
    pub control_external_address: Option<String>,
    /// Additional host name of the control service and the facade, for certificates.
    pub external_hostname: Option<String>,
    /// Address of the facade of the same process, for its certificate.
    pub bind_address: IpAddr,
    /// File with CAs of client certificates.
    pub client_ca_file: Option<PathBuf>,
    /// Front proxies, as published to backends.
    pub request_header: Option<FrontProxy>,
    /// File with bearer tokens, CSV.
    pub token_auth_file: Option<PathBuf>,
    /// Webhook that authenticates bearer tokens.
    pub token_webhook: Option<TokenWebhookSettings>,
    /// Other issuers of tokens.
    pub authentication: AuthenticationSettings,
    /// Issuing and validation of service account tokens.
    pub service_accounts: ServiceAccountSettings,
    /// Authorizers of requests.
    pub authorization: AuthorizationSettings,
    /// Paths of the client certificate with which backends are probed, and of its key.
    pub proxy_client: Option<(PathBuf, PathBuf)>,
    /// True if this process creates the client certificate for backends and its CA, because flags name none.
    pub own_front_proxy: bool,
    /// Configuration file of the egress selector, for connections to backends.
    pub egress_selector_config_file: Option<PathBuf>,
    /// Address ranges in which backends may be; empty for all but forbidden ranges.
    pub backend_allow_cidr: Vec<IpNet>,
    /// Timeout for establishing a connection to a backend.
    pub backend_dial_timeout: Duration,
    /// Limits of webhook calls.
    pub webhooks: portico_registry::WebhookLimits,
    /// True if endpoints are dialed in place of cluster IPs.
    pub enable_aggregator_routing: bool,
    /// Emulated release, which determines the served versions of built-in APIs.
    pub expiration: ExpirationEvaluator,
    /// Address at which workloads reach the facade, unless it is set later; port 0 selects the port of the facade.
    pub advertise_address: Option<SocketAddr>,
    /// Address at which other servers behind the same address reach the facade of this one, if it differs.
    pub peer_advertise_address: Option<SocketAddr>,
    /// Group versions and resources that are served in addition to the default, or disabled.
    pub runtime_config: RuntimeConfig,
    /// Reported release, and the oldest compatible release.
    pub version: EffectiveVersion,
    /// Feature gates.
    pub features: FeatureGates,
    /// Enabled controllers of kube-controller-manager, by name.
    pub controllers: BTreeSet<&'static str>,
    /// Settings of the controllers.
    pub controller_settings: ControllerSettings,
    /// Leader election for the controllers among the control services of one database; `None` to always run them.
    pub leader_election: Option<LeadershipTimers>,
    /// Leader election for the controller of coordinated elections (gate `CoordinatedLeaderElection`).
    pub coordinated_leadership: LeadershipTimers,
    /// Signing of certificate requests.
    pub signing: SigningSettings,
    /// Lifetime of objects of kinds that expire (events) after their last write.
    pub event_ttl: Duration,
    /// Encryption at rest.
    pub encryption: EncryptionSettings,
    /// Settings of the store.
    pub store: portico_store::Settings,
    /// PostgreSQL database of the store, if it is the engine.
    pub postgres: Option<portico_store::PostgresSettings>,
    /// Address and settings of etcd, if it is the engine. Without PostgreSQL and etcd, the engine is SQLite.
    pub etcd: Option<portico_store::EtcdSettings>,
    /// Settings of the registry.
    pub registry: portico_registry::Settings,
    /// Enabled admission plugins and their configuration.
    pub admission: portico_admission::AdmissionSettings,
    /// Maximum total size of built OpenAPI documents, in compressed bytes.
    pub openapi_cache_bytes: usize,
    /// Seats of priority and fairness for native gRPC callers; `None` to disable it.
    pub seats: Option<usize>,
    /// Assumed duration of a call without a deadline, which waits for a seat for a quarter of it.
    pub default_call_timeout: Duration,
    /// Maximum number of gRPC connections.
    pub max_connections: usize,
    /// Maximum number of concurrent gRPC calls in one connection.
    pub max_streams_per_connection: u32,
    /// Folder of manifests that is applied and followed.
    pub manifests: Option<portico_manifests::Settings>,
    /// Time for which checks of post-start hooks pass on /livez regardless of their state.
    pub livez_grace_period: Duration,
}

impl ServerSettings {
    /// True if several control services can share the store.
    pub(crate) fn shares_store(&self) -> bool {
        self.postgres.is_some() || self.etcd.is_some()
    }
}

/// Settings of a webhook that authenticates bearer tokens; fields are named after the flags.
#[derive(Clone, Debug)]
pub struct TokenWebhookSettings {
    /// `--authentication-token-webhook-config-file`
    pub config_file: PathBuf,
    /// `--authentication-token-webhook-version`
    pub version: ReviewVersion,
    /// `--authentication-token-webhook-cache-ttl`
    pub cache_ttl: Duration,
}

/// OpenID Connect issuers, and anonymous access.
#[derive(Clone, Debug)]
pub enum AuthenticationSettings {
    /// No issuers.
    None,
    /// One issuer, configured by flags.
    Flags(Box<OidcFlags>),
    /// `--authentication-config`
    File {
        /// Path of the file.
        path: PathBuf,
        /// True if a flag configures anonymous access, so that the file must not.
        anonymous_flag: bool,
    },
}

/// Flags of an issuer; fields are named after the flags.
#[derive(Clone, Debug)]
pub struct OidcFlags {
    /// `--oidc-issuer-url`
    pub issuer_url: String,
    /// `--oidc-client-id`
    pub client_id: String,
    /// `--oidc-ca-file`
    pub ca_file: Option<PathBuf>,
    /// `--oidc-username-claim`
    pub username_claim: String,
    /// `--oidc-username-prefix`; empty for upstream's default, `-` for no prefix.
    pub username_prefix: String,
    /// `--oidc-groups-claim`; empty for no groups.
    pub groups_claim: String,
    /// `--oidc-groups-prefix`
    pub groups_prefix: String,
    /// `--oidc-signing-algs`
    pub signing_algs: Vec<String>,
    /// `--oidc-required-claim`
    pub required_claims: BTreeMap<String, String>,
}

/// Configuration of authorizers.
#[derive(Clone, Debug)]
pub enum AuthorizationSettings {
    /// Authorizers configured by flags.
    Flags(AuthorizationFlags),
    /// `--authorization-config`
    File {
        /// Path of the file.
        path: PathBuf,
        /// `--authorization-policy-file`
        policy_file: Option<PathBuf>,
    },
}

/// Flags of authorization; fields are named after the flags.
#[derive(Clone, Debug)]
pub struct AuthorizationFlags {
    /// `--authorization-mode`
    pub modes: Vec<AuthorizationMode>,
    /// `--authorization-policy-file`
    pub policy_file: Option<PathBuf>,
    /// `--authorization-webhook-config-file`
    pub webhook_config_file: Option<PathBuf>,
    /// `--authorization-webhook-version`
    pub webhook_version: ReviewVersion,
    /// `--authorization-webhook-cache-authorized-ttl`
    pub authorized_ttl: Duration,
    /// `--authorization-webhook-cache-unauthorized-ttl`
    pub unauthorized_ttl: Duration,
}

/// Issuing and validation of service account tokens; fields are named after the flags.
#[derive(Clone, Debug)]
pub struct ServiceAccountSettings {
    /// `--service-account-issuer`: the first one issues tokens, and tokens of all are trusted.
    pub issuers: Vec<String>,
    /// `--service-account-key-file`: keys that validate tokens, in addition to the signing key.
    pub key_files: Vec<PathBuf>,
    /// `--service-account-signing-key-file`; without it, a key is created and stored.
    pub signing_key_file: Option<PathBuf>,
    /// `--service-account-signing-endpoint`: socket of an external signer, which replaces the signing key.
    pub signing_endpoint: Option<String>,
    /// `--api-audiences`; empty for the issuers.
    pub api_audiences: Vec<String>,
    /// `--service-account-max-token-expiration`
    pub max_token_expiration: Option<Duration>,
    /// `--service-account-extend-token-expiration`
    pub extend_token_expiration: bool,
    /// `--service-account-lookup`
    pub lookup: bool,
    /// `--service-account-jwks-uri`
    pub jwks_uri: Option<String>,
    /// `--enable-bootstrap-token-auth`
    pub bootstrap_tokens: bool,
    /// `--legacy-service-account-token-clean-up-period`
    pub legacy_clean_up_period: Duration,
}

/// Paths of a CA's certificate and its key, as PEM.
pub type CaFiles = (PathBuf, PathBuf);

/// CAs that sign certificate requests; fields are named after the flags.
#[derive(Clone, Debug)]
pub struct SigningSettings {
    /// `--cluster-signing-cert-file` and `-key-file`: for all signers.
    pub all: Option<CaFiles>,
    /// `--cluster-signing-kube-apiserver-client-cert-file` and `-key-file`
    pub api_client: Option<CaFiles>,
    /// `--cluster-signing-kubelet-client-cert-file` and `-key-file`
    pub kubelet_client: Option<CaFiles>,
    /// `--cluster-signing-kubelet-serving-cert-file` and `-key-file`
    pub kubelet_serving: Option<CaFiles>,
    /// `--cluster-signing-legacy-unknown-cert-file` and `-key-file`
    pub legacy_unknown: Option<CaFiles>,
    /// `--cluster-signing-duration`
    pub duration: Duration,
}
