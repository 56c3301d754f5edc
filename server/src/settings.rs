//! The settings of the control service: plain values, parsed and checked before anything binds.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use portico_auth::authz::Mode;
use portico_auth::authz::review::Version;
use portico_controllers::governed::ControllerSettings;
use portico_controllers::leader_lease::LeadershipTimers;
use portico_kinds::RuntimeConfig;
use portico_machinery::FrontProxy;
use portico_machinery::effective_version::EffectiveVersion;
use portico_machinery::expiration::Evaluator;
use portico_machinery::features::FeatureGates;

use crate::encryption::EncryptionSettings;

/// Settings of the control service.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The folder of database, kubeconfigs and, by default, certificates.
    pub data_dir: PathBuf,
    /// The folder of certificates.
    pub cert_dir: PathBuf,
    /// Where gRPC is served; port 0 = any free one.
    pub control_address: SocketAddr,
    /// A socket that listens at that address already: whoever started the process made it.
    pub passed_socket: Option<Arc<TcpListener>>,
    /// `HOST:PORT` under which others reach the control service.
    pub control_external_address: Option<String>,
    /// Further names of both halves, for certificates.
    pub external_hostname: Option<String>,
    /// The address of the facade of the same process, for its certificate.
    pub bind_address: IpAddr,
    /// CAs of client certificates.
    pub client_ca_file: Option<PathBuf>,
    /// Front proxies, as published to backends.
    pub request_header: Option<FrontProxy>,
    /// Bearer tokens, CSV.
    pub token_auth_file: Option<PathBuf>,
    /// Who else knows bearer tokens.
    pub token_webhook: Option<TokenWebhookSettings>,
    /// Who else issues tokens.
    pub authentication: AuthenticationSettings,
    /// Service accounts' tokens.
    pub service_accounts: ServiceAccountSettings,
    /// Who is asked what callers may do.
    pub authorization: AuthorizationSettings,
    /// The client certificate that backends see when they are probed, and its key.
    pub proxy_client: Option<(PathBuf, PathBuf)>,
    /// Whether this process makes both of them itself, and the CA of them: none is given.
    pub own_front_proxy: bool,
    /// How backends are dialed.
    pub egress_selector_config_file: Option<PathBuf>,
    /// Ranges that backends may lie in; empty = all but forbidden ones.
    pub backend_allow_cidr: Vec<IpNet>,
    /// How long a connection to a backend may take.
    pub backend_dial_timeout: Duration,
    /// Bounds of calls to webhooks.
    pub webhooks: portico_registry::WebhookLimits,
    /// Whether endpoints are dialed instead of cluster addresses.
    pub enable_aggregator_routing: bool,
    /// Which versions of built-in APIs are served.
    pub expiration: Evaluator,
    /// Where workloads reach the facade, when that is not set later; port 0 is whichever the facade gets.
    pub advertise_address: Option<SocketAddr>,
    /// Where servers behind the same address reach this one's facade, when that is another address.
    pub peer_advertise_address: Option<SocketAddr>,
    /// Which group versions and resources are served beside, or less than, the default.
    pub runtime_config: RuntimeConfig,
    /// Which release is shown, and the oldest that others may be of.
    pub version: EffectiveVersion,
    /// Feature gates.
    pub features: FeatureGates,
    /// Controllers of kube-controller-manager to run, by its names.
    pub controllers: BTreeSet<&'static str>,
    /// How they work.
    pub controller_settings: ControllerSettings,
    /// How control services of one database agree on which of them runs the controllers; none: this one does, whatever others do.
    pub leader_election: Option<LeadershipTimers>,
    /// How servers agree on which of them holds elections (gate `CoordinatedLeaderElection`).
    pub coordinated_leadership: LeadershipTimers,
    /// Signing certificate requests.
    pub signing: SigningSettings,
    /// How long objects of kinds that expire (events) are kept after their last write.
    pub event_ttl: Duration,
    /// Encryption at rest.
    pub encryption: EncryptionSettings,
    /// The store.
    pub store: portico_store::Settings,
    /// The PostgreSQL database that it is in.
    pub postgres: Option<portico_store::PostgresSettings>,
    /// The etcd that it is in; where there is neither: a SQLite file.
    pub etcd: Option<portico_store::EtcdSettings>,
    /// The registry.
    pub registry: portico_registry::Settings,
    /// Which admission plugins are on, and what they are configured with.
    pub admission: portico_admission::AdmissionSettings,
    /// Bytes that made OpenAPI documents may take together, compressed.
    pub openapi_cache_bytes: usize,
    /// Seats of priority and fairness for native gRPC callers; without any nobody waits for one.
    pub seats: Option<usize>,
    /// The time of a call that has no deadline: it waits for a seat for a quarter of it.
    pub call_time: Duration,
    /// gRPC connections at a time.
    pub max_connections: usize,
    /// gRPC calls at a time in one connection.
    pub max_streams_per_connection: u32,
    /// The folder of manifests that is applied and followed.
    pub manifests: Option<portico_manifests::Settings>,
    /// Boot checks pass on /livez for so long.
    pub livez_grace_period: Duration,
}

impl ServerSettings {
    /// Whether several control services may share the store.
    pub(crate) fn shares_store(&self) -> bool {
        self.postgres.is_some() || self.etcd.is_some()
    }
}

/// A webhook that knows bearer tokens; field names follow the flags.
#[derive(Clone, Debug)]
pub struct TokenWebhookSettings {
    /// `--authentication-token-webhook-config-file`
    pub config_file: PathBuf,
    /// `--authentication-token-webhook-version`
    pub version: Version,
    /// `--authentication-token-webhook-cache-ttl`
    pub cache_ttl: Duration,
}

/// OpenID Connect issuers, and who is let in without credentials.
#[derive(Clone, Debug)]
pub enum AuthenticationSettings {
    /// There are none.
    None,
    /// One, as flags set it.
    Flags(Box<OidcFlags>),
    /// `--authentication-config`
    File {
        /// The file.
        path: PathBuf,
        /// Whether a flag says who is let in without credentials, so that the file may not.
        anonymous_flag: bool,
    },
}

/// What flags set of an issuer; field names follow them.
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
    /// `--oidc-username-prefix`; empty = upstream's default, `-` = nothing.
    pub username_prefix: String,
    /// `--oidc-groups-claim`; empty = no groups.
    pub groups_claim: String,
    /// `--oidc-groups-prefix`
    pub groups_prefix: String,
    /// `--oidc-signing-algs`
    pub signing_algs: Vec<String>,
    /// `--oidc-required-claim`
    pub required_claims: BTreeMap<String, String>,
}

/// Who decides what callers may do.
#[derive(Clone, Debug)]
pub enum AuthorizationSettings {
    /// As flags set it.
    Flags(AuthorizationFlags),
    /// `--authorization-config`
    File {
        /// The file.
        path: PathBuf,
        /// `--authorization-policy-file`
        policy_file: Option<PathBuf>,
    },
}

/// What flags set of authorization; field names follow them.
#[derive(Clone, Debug)]
pub struct AuthorizationFlags {
    /// `--authorization-mode`
    pub modes: Vec<Mode>,
    /// `--authorization-policy-file`
    pub policy_file: Option<PathBuf>,
    /// `--authorization-webhook-config-file`
    pub webhook_config_file: Option<PathBuf>,
    /// `--authorization-webhook-version`
    pub webhook_version: Version,
    /// `--authorization-webhook-cache-authorized-ttl`
    pub authorized_ttl: Duration,
    /// `--authorization-webhook-cache-unauthorized-ttl`
    pub unauthorized_ttl: Duration,
}

/// Who issues service accounts' tokens, and how; field names follow the flags.
#[derive(Clone, Debug)]
pub struct ServiceAccountSettings {
    /// `--service-account-issuer`: the first signs, tokens of all are trusted.
    pub issuers: Vec<String>,
    /// `--service-account-key-file`: keys to check tokens with, besides the signing one.
    pub key_files: Vec<PathBuf>,
    /// `--service-account-signing-key-file`; without, one is made and kept.
    pub signing_key_file: Option<PathBuf>,
    /// `--service-account-signing-endpoint`: the socket of who signs, in the place of our key.
    pub signing_endpoint: Option<String>,
    /// `--api-audiences`; empty = the issuers.
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

/// A CA's certificate and its key, PEM files.
pub type CaFiles = (PathBuf, PathBuf);

/// With what certificate requests are signed; field names follow the flags.
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
