//! Settings of a facade, as plain values. The root binary parses flags, environment and files; fields are named after
//! the flags.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use portico_auth::authz::AuthorizationMode;
use portico_kit::tls::{CertPair, MinVersion};
use portico_machinery::FrontProxy;
use tokio::sync::watch;

use crate::version_info::VersionInfo;

/// Settings of a facade. [`FacadeSettings::new`] has the defaults of the flags.
#[derive(Clone, Debug)]
pub struct FacadeSettings {
    /// `--bind-address` and `--secure-port`; port 0 selects a free one.
    pub address: SocketAddr,
    /// Socket that already listens at that address, passed by the parent process.
    pub passed_socket: Option<Arc<TcpListener>>,
    /// `--tls-*`: serving certificate.
    pub serving: ServingCertificate,
    /// `--tls-sni-cert-key`: certificate and key files for the names in the certificates.
    pub sni: Vec<(PathBuf, PathBuf)>,
    /// `--tls-min-version`
    pub tls_min_version: MinVersion,
    /// `--tls-cipher-suites`; empty means all.
    pub tls_cipher_suites: Vec<String>,
    /// `--tls-curve-preferences`
    pub tls_key_exchanges: Vec<u16>,
    /// `--permit-port-sharing`
    pub permit_port_sharing: bool,
    /// `--external-hostname`: address in discovery; empty for the bound address.
    pub external_hostname: String,
    /// `--advertise-address`
    pub advertise_address: Option<IpAddr>,
    /// Settings of authentication.
    pub authentication: AuthenticationSettings,
    /// `--authorization-mode`
    pub authorization: Vec<AuthorizationMode>,
    /// Settings of the proxy to backends.
    pub proxying: ProxyingSettings,
    /// Settings of connections to kubelets.
    pub kubelets: KubeletSettings,
    /// `--peer-ca-file`: CAs that verify servers behind the same address; if `None`, no requests are forwarded to them.
    pub peer_ca_file: Option<PathBuf>,
    /// `--request-timeout`, 60 s.
    pub request_timeout: Duration,
    /// `--stalled-write-timeout`, 60 s: a response is aborted if the client has stalled for this time.
    pub stalled_write_timeout: Duration,
    /// `--stalled-read-timeout`, 10 s: a request body is refused if nothing arrives for this time.
    pub stalled_read_timeout: Duration,
    /// `--control-request-timeout`, 10 s: time for which local requests wait for a silent control service.
    pub control_request_timeout: Duration,
    /// `--enable-priority-and-fairness`, on: requests queue for seats, whose number is the sum of the next two limits.
    pub enable_priority_and_fairness: bool,
    /// `--max-requests-inflight`, 400; 0 means unlimited.
    pub max_requests_inflight: usize,
    /// `--max-mutating-requests-inflight`, 200; 0 means unlimited.
    pub max_mutating_requests_inflight: usize,
    /// `--max-request-body-bytes`, 3 MiB.
    pub max_request_body_bytes: usize,
    /// `--max-connections`, 16384.
    pub max_connections: usize,
    /// `--http2-max-streams-per-connection`, 250.
    pub http2_max_streams_per_connection: u32,
    /// `--disable-http2-serving`
    pub disable_http2_serving: bool,
    /// `--max-request-header-bytes`, 1 MiB.
    pub max_request_header_bytes: u32,
    /// `--request-header-timeout`, 32 s.
    pub request_header_timeout: Duration,
    /// Idle timeout of connections, 90 s.
    pub idle_timeout: Duration,
    /// `--tls-handshake-timeout`, 10 s.
    pub tls_handshake_timeout: Duration,
    /// Maximum bytes of events that are queued for the client of a watch, 1 MiB; further ones wait in the control service.
    pub watch_buffer_bytes: usize,
    /// `--max-watch-buffer-bytes`, 256 MiB: the maximum for all clients together.
    pub max_watch_buffer_bytes: usize,
    /// `--cors-allowed-origins`
    pub cors_allowed_origins: Vec<String>,
    /// `--strict-transport-security-directives`
    pub strict_transport_security_directives: Vec<String>,
    /// `--goaway-chance`, 0 to 0.02.
    pub goaway_chance: f64,
    /// `--livez-grace-period`
    pub livez_grace_period: Duration,
    /// `--shutdown-delay-duration`
    pub shutdown_delay_duration: Duration,
    /// True if connections wait until everything is ready, so that the first response is complete; otherwise health checks are
    /// served from the start.
    pub serve_when_ready: bool,
    /// `--shutdown-send-retry-after`
    pub shutdown_send_retry_after: bool,
    /// `--shutdown-watch-termination-grace-period`
    pub shutdown_watch_termination_grace_period: Duration,
    /// `--profiling`, on.
    pub profiling: bool,
    /// `--console`, on: `/console/` and its data about this facade.
    pub console: bool,
    /// `--test-faults`, off: tests can set faults at `/portico/test-faults`.
    pub test_faults: bool,
    /// `--debug-socket-path`
    pub debug_socket: Option<PathBuf>,
    /// `/flagz` and `/statusz`
    pub zpages: ZPages,
    /// Saved state of a facade in its own process; `None` for a facade in the process of the control service.
    pub fail_static: Option<FailStaticSettings>,
    /// `/version`
    pub version: VersionInfo,
    /// Name of this facade in reports to the control service.
    pub name: String,
}

/// Source of the serving certificate.
#[derive(Clone, Debug)]
pub enum ServingCertificate {
    /// `--tls-cert-file` and `--tls-private-key-file`, reread when they change.
    Files {
        /// Certificate, followed by intermediates.
        cert: PathBuf,
        /// Private key.
        key: PathBuf,
    },
    /// Certificate that another component creates and renews.
    Channel(watch::Receiver<CertPair>),
}

/// Client certificate that is presented to backends.
#[derive(Clone, Debug)]
pub enum ProxyClientCertificate {
    /// `--proxy-client-cert-file` and `--proxy-client-key-file`, or the files that the control service in this process maintains;
    /// reread when they change.
    Files {
        /// Certificate, followed by intermediates.
        cert: PathBuf,
        /// Private key.
        key: PathBuf,
    },
    /// Certificate that another component creates and renews; `None` until there is one.
    Channel(watch::Receiver<Option<Arc<CertPair>>>),
}

/// Settings of authentication.
#[derive(Clone, Debug, Default)]
pub struct AuthenticationSettings {
    /// Internal CA (PEM) of administrators and facades, always trusted if set.
    pub internal_ca: Option<Vec<u8>>,
    /// `--client-ca-file`
    pub client_ca_file: Option<PathBuf>,
    /// `--token-auth-file`
    pub token_auth_file: Option<PathBuf>,
    /// `--anonymous-auth`; if unset, on unless the mode is AlwaysAllow.
    pub anonymous: Option<bool>,
    /// `--requestheader-*`
    pub request_header: Option<FrontProxy>,
}

/// Settings of the proxy to backends.
#[derive(Clone, Debug)]
pub struct ProxyingSettings {
    /// Client certificate that is presented to backends, if any.
    pub client_cert: Option<ProxyClientCertificate>,
    /// `--egress-selector-config-file`
    pub egress_selector_config_file: Option<PathBuf>,
    /// `--backend-allow-cidr`; empty allows all addresses that are not always refused.
    pub backend_allow_cidr: Vec<IpNet>,
    /// `--backend-dial-timeout`, 30 s.
    pub dial_timeout: Duration,
    /// `--backend-max-requests`, 4096.
    pub max_requests_per_backend: usize,
    /// `--backend-max-idle-connections`, 64.
    pub max_idle_connections: usize,
    /// `--backend-max-mirrored-requests`
    pub max_mirrored_requests: u32,
    /// `--backend-mirror-timeout`
    pub mirror_timeout: Duration,
    /// `--aggregator-reject-forwarding-redirect`, on.
    pub reject_redirects: bool,
}

impl Default for ProxyingSettings {
    fn default() -> Self {
        Self {
            client_cert: None,
            egress_selector_config_file: None,
            backend_allow_cidr: Vec::new(),
            dial_timeout: Duration::from_secs(30),
            max_requests_per_backend: 4096,
            max_idle_connections: 64,
            max_mirrored_requests: 64,
            mirror_timeout: Duration::from_secs(10),
            reject_redirects: true,
        }
    }
}

/// Settings of connections to kubelets.
#[derive(Clone, Debug)]
pub struct KubeletSettings {
    /// `--kubelet-client-certificate` and `--kubelet-client-key`
    pub client_cert: Option<(PathBuf, PathBuf)>,
    /// `--kubelet-certificate-authority`; if `None`, certificates of kubelets are not verified.
    pub certificate_authority: Option<PathBuf>,
    /// `--kubelet-timeout`, 5 s: timeout for establishing a connection to a kubelet.
    pub timeout: Duration,
    /// `--max-connection-bytes-per-sec`, unlimited if `None`.
    pub max_connection_bytes: Option<NonZeroU32>,
    /// `--streaming-connection-idle-timeout`, 4 h: idle timeout of translated WebSockets.
    pub streaming_idle_timeout: Duration,
    /// `--streaming-max-message-bytes`, 32 MiB: maximum message size of translated WebSockets.
    pub streaming_max_message_bytes: usize,
}

impl Default for KubeletSettings {
    fn default() -> Self {
        Self {
            client_cert: None,
            certificate_authority: None,
            timeout: Duration::from_secs(5),
            max_connection_bytes: None,
            streaming_idle_timeout: Duration::from_secs(4 * 60 * 60),
            streaming_max_message_bytes: 32 << 20,
        }
    }
}

/// Settings of upstream's z-pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZPages {
    /// Flags and their values, for `/flagz`; if `None`, it is not served (gate `ComponentFlagz`).
    pub flags: Option<BTreeMap<String, String>>,
    /// True if `/statusz` is served (gate `ComponentStatusz`).
    pub status: bool,
}

/// Settings of the saved state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailStaticSettings {
    /// `--data-dir`; the state is stored in the folder `facade-state` below it.
    pub data_dir: PathBuf,
    /// `--fail-static-max-age`, 24 h.
    pub max_age: Duration,
    /// ID of the store, if the kubeconfig contains it; states of other stores are refused.
    pub store_id: Option<String>,
}

impl FacadeSettings {
    /// Returns the defaults with this certificate.
    #[must_use]
    pub fn new(serving: ServingCertificate) -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6443),
            passed_socket: None,
            serving,
            sni: Vec::new(),
            tls_min_version: MinVersion::default(),
            tls_cipher_suites: Vec::new(),
            tls_key_exchanges: Vec::new(),
            permit_port_sharing: false,
            external_hostname: String::new(),
            advertise_address: None,
            authentication: AuthenticationSettings::default(),
            authorization: vec![AuthorizationMode::Rbac],
            proxying: ProxyingSettings::default(),
            kubelets: KubeletSettings::default(),
            peer_ca_file: None,
            request_timeout: Duration::from_secs(60),
            stalled_write_timeout: Duration::from_secs(60),
            stalled_read_timeout: Duration::from_secs(10),
            control_request_timeout: Duration::from_secs(10),
            enable_priority_and_fairness: true,
            max_requests_inflight: 400,
            max_mutating_requests_inflight: 200,
            max_request_body_bytes: 3 << 20,
            max_connections: 16_384,
            http2_max_streams_per_connection: 250,
            disable_http2_serving: false,
            max_request_header_bytes: 1 << 20,
            request_header_timeout: Duration::from_secs(32),
            idle_timeout: Duration::from_secs(90),
            tls_handshake_timeout: Duration::from_secs(10),
            watch_buffer_bytes: 1 << 20,
            max_watch_buffer_bytes: 256 << 20,
            cors_allowed_origins: Vec::new(),
            strict_transport_security_directives: Vec::new(),
            goaway_chance: 0.0,
            livez_grace_period: Duration::ZERO,
            shutdown_delay_duration: Duration::ZERO,
            serve_when_ready: false,
            shutdown_send_retry_after: false,
            shutdown_watch_termination_grace_period: Duration::ZERO,
            profiling: true,
            console: true,
            test_faults: false,
            debug_socket: None,
            zpages: ZPages::default(),
            fail_static: None,
            version: VersionInfo::default(),
            name: format!("facade-{}", std::process::id()),
        }
    }
}
