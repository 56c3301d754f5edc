//! Flags of the facade's HTTPS server: address, certificates, limits, shutdown.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use portico_kit::tls::MinVersion;

use super::SettingError;
use super::values::{
    cors_origin, duration, goaway_chance, hsts_directive, positive_duration, tls_cipher_suite,
    tls_key_exchange, tls_min_version,
};

const TLS: &str = "TLS";
const LIMITS: &str = "Request limits";
const SHUTDOWN: &str = "Health and shutdown";

/// Flags of the HTTPS server.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Serving"))]
pub(crate) struct Serving {
    /// IP address on which the facade serves HTTPS.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) bind_address: IpAddr,
    /// IP address at which workloads reach the facade, published by the Service default/kubernetes.
    ///
    /// Defaults to the bind address. If the bind address is unspecified or loopback, the default is the address of the
    /// interface with the default route.
    #[arg(long, value_name = "IP")]
    pub(crate) advertise_address: Option<IpAddr>,
    /// Port on which the facade serves HTTPS; 0 = any free port.
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    pub(crate) secure_port: u16,
    /// Directory of generated certificates [default: DATA_DIR/certs].
    #[arg(long, help_heading = TLS, value_name = "DIR")]
    pub(crate) cert_dir: Option<PathBuf>,
    /// PEM file with the serving certificate, followed by intermediate certificates.
    ///
    /// Without this flag a certificate is generated and renewed automatically. Requires --tls-private-key-file.
    #[arg(long, help_heading = TLS, value_name = "FILE")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// PEM file with the private key of --tls-cert-file.
    #[arg(long, help_heading = TLS, value_name = "FILE")]
    pub(crate) tls_private_key_file: Option<PathBuf>,
    /// Additional certificate and key, selected by server name (repeatable).
    ///
    /// The certificate applies to the names that it contains.
    #[arg(long, help_heading = TLS, value_name = "CERT,KEY")]
    pub(crate) tls_sni_cert_key: Vec<String>,
    /// Minimum TLS version: VersionTLS12 or VersionTLS13.
    #[arg(long, help_heading = TLS, value_name = "VERSION", value_parser = tls_min_version, default_value = "VersionTLS12")]
    pub(crate) tls_min_version: MinVersion,
    /// TLS 1.2 cipher suites by IANA name, separated by commas.
    ///
    /// Defaults to all supported suites, which are ECDHE with AES-GCM or ChaCha20-Poly1305. TLS 1.3 suites cannot be
    /// disabled.
    #[arg(long, help_heading = TLS, value_name = "SUITES", value_delimiter = ',', value_parser = tls_cipher_suite)]
    pub(crate) tls_cipher_suites: Vec<String>,
    /// Key exchange groups by IANA number, separated by commas.
    ///
    /// Supported groups are 23 (P-256), 24 (P-384), 29 (X25519) and 4588 (X25519MLKEM768). All are enabled by default.
    #[arg(long, help_heading = TLS, value_name = "IDS", value_delimiter = ',', value_parser = tls_key_exchange)]
    pub(crate) tls_curve_preferences: Vec<u16>,
    /// Disable HTTP/2 on the HTTPS port.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) disable_http2_serving: bool,
    /// Bind with SO_REUSEPORT, so that several processes can listen on the same address and port.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) permit_port_sharing: bool,
    /// Host name at which clients reach the facade; included in generated certificates and kubeconfig files.
    #[arg(long, value_name = "NAME")]
    pub(crate) external_hostname: Option<String>,
    /// Timeout of requests that are not long-running.
    #[arg(long, help_heading = LIMITS, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) request_timeout: Duration,
    /// Maximum time a response may wait for a client that does not read.
    ///
    /// The response is then aborted: an HTTP/2 stream is reset, an HTTP/1.1 connection is closed. Reading less than 64
    /// KiB from a full socket does not count. Tunnels (exec, attach, port-forward) may pause longer.
    #[arg(long, help_heading = LIMITS, value_name = "DURATION", value_parser = positive_duration, default_value = "60s")]
    pub(crate) stalled_write_timeout: Duration,
    /// Maximum time a request body may stall before the request is rejected with 408.
    ///
    /// After this time a body must also arrive at 500 bytes per second or more. Long-running requests may pause longer.
    #[arg(long, help_heading = LIMITS, value_name = "DURATION", value_parser = positive_duration, default_value = "10s")]
    pub(crate) stalled_read_timeout: Duration,
    /// Minimum duration of a watch in seconds; the actual duration is random, and up to twice as long.
    #[arg(long, help_heading = LIMITS, value_name = "SECONDS", default_value_t = 1800)]
    pub(crate) min_request_timeout: u64,
    /// Queue requests by priority level and share seats fairly among flows.
    ///
    /// With `false`, --max-requests-inflight and --max-mutating-requests-inflight are separate limits.
    #[arg(long, help_heading = LIMITS, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true)]
    pub(crate) enable_priority_and_fairness: bool,
    /// Maximum number of concurrent read requests; with priority and fairness, part of the number of seats.
    ///
    /// With --enable-priority-and-fairness, the number of seats of the facade is the sum of this flag and
    /// --max-mutating-requests-inflight, which must be positive. Without priority and fairness, 0 = no limit.
    #[arg(long, help_heading = LIMITS, value_name = "N", default_value_t = 400)]
    pub(crate) max_requests_inflight: usize,
    /// Maximum number of concurrent mutating requests; with priority and fairness, part of the number of seats.
    ///
    /// With --enable-priority-and-fairness, the number of seats of the facade is the sum of this flag and
    /// --max-requests-inflight, which must be positive. Without priority and fairness, 0 = no limit.
    #[arg(long, help_heading = LIMITS, value_name = "N", default_value_t = 200)]
    pub(crate) max_mutating_requests_inflight: usize,
    /// Maximum size of the body of a write to a local object, in bytes.
    #[arg(long, help_heading = LIMITS, value_name = "BYTES", default_value_t = 3 * 1024 * 1024)]
    pub(crate) max_request_body_bytes: usize,
    /// Maximum bytes of events buffered for all watches of this facade together.
    ///
    /// Above the limit the watches whose clients have not read for the longest time are closed. If a client has read an
    /// event within the last second, its watch is closed only above twice the limit. At most 1 MiB is buffered per watch,
    /// which is also the minimum of this flag; further events wait in the control service for at most
    /// --stalled-write-timeout.
    #[arg(long, help_heading = LIMITS, value_name = "BYTES", default_value_t = 256 * 1024 * 1024)]
    pub(crate) max_watch_buffer_bytes: usize,
    /// Maximum number of open connections.
    ///
    /// A new connection replaces the connection that has been idle for longest, connections of unauthenticated clients
    /// first. If no connection is idle, the new connection waits.
    #[arg(long, help_heading = LIMITS, value_name = "N", default_value_t = 16_384)]
    pub(crate) max_connections: usize,
    /// Maximum number of concurrent streams per HTTP/2 connection.
    #[arg(long, help_heading = LIMITS, value_name = "N", default_value_t = 250)]
    pub(crate) http2_max_streams_per_connection: u32,
    /// Maximum size of a request's header, in bytes.
    ///
    /// While a header arrives, an unauthenticated client can hold this much memory per HTTP/1.1 connection, and up to
    /// three times as much per HTTP/2 stream. If the port is reachable by untrusted clients, lower this flag or
    /// --max-connections.
    #[arg(long, help_heading = LIMITS, value_name = "BYTES", default_value_t = 1 << 20)]
    pub(crate) max_request_header_bytes: u32,
    /// Timeout for receiving a request's header.
    #[arg(long, help_heading = LIMITS, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    pub(crate) request_header_timeout: Duration,
    /// Timeout of the TLS handshake.
    #[arg(long, help_heading = LIMITS, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) tls_handshake_timeout: Duration,
    /// Allowed CORS origins, as anchored regular expressions (repeatable).
    #[arg(long, value_name = "REGEX", value_parser = cors_origin)]
    pub(crate) cors_allowed_origins: Vec<String>,
    /// Directives of the Strict-Transport-Security header (repeatable).
    #[arg(long, value_name = "DIRECTIVE", value_parser = hsts_directive)]
    pub(crate) strict_transport_security_directives: Vec<String>,
    /// Probability (0 to 0.02) that an HTTP/2 client receives GOAWAY and reconnects, to spread load.
    #[arg(long, value_name = "CHANCE", value_parser = goaway_chance, default_value = "0")]
    pub(crate) goaway_chance: f64,
    /// Time after start during which /livez treats pending checks as passed.
    #[arg(long, help_heading = SHUTDOWN, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    pub(crate) livez_grace_period: Duration,
    /// Time a facade keeps serving after a stop signal while /readyz already fails.
    #[arg(long, help_heading = SHUTDOWN, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    pub(crate) shutdown_delay_duration: Duration,
    /// Keep listening while requests drain, and respond to new requests with status 429 and Retry-After.
    #[arg(long, help_heading = SHUTDOWN, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) shutdown_send_retry_after: bool,
    /// Hold connections until the server is ready instead of responding with the state of start-up.
    ///
    /// Use this for clients that take any response as a sign of readiness. Without this flag, health checks are served from
    /// the start and list the components that are not ready.
    #[arg(long, help_heading = SHUTDOWN, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) serve_when_ready: bool,
    /// Wait for requests in flight on shutdown; with `false` they are aborted.
    ///
    /// The default is `false` with --ephemeral.
    #[arg(long, help_heading = SHUTDOWN, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true)]
    pub(crate) shutdown_drain: bool,
    /// Time to wait for watches to end when the facade stops.
    #[arg(long, help_heading = SHUTDOWN, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    pub(crate) shutdown_watch_termination_grace_period: Duration,
}

impl Serving {
    /// Returns the total number of seats, or `None` if priority and fairness is disabled.
    pub(crate) fn seats(&self) -> Option<usize> {
        let seats = self.max_requests_inflight.saturating_add(self.max_mutating_requests_inflight);
        self.enable_priority_and_fairness.then_some(seats)
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        if self.tls_cert_file.is_some() != self.tls_private_key_file.is_some() {
            let setting =
                if self.tls_cert_file.is_some() { "--tls-private-key-file" } else { "--tls-cert-file" };
            return Err(SettingError::new(
                setting,
                "--tls-cert-file and --tls-private-key-file must be set together",
            ));
        }
        let (max_reads, max_mutations) = (self.max_requests_inflight, self.max_mutating_requests_inflight);
        if self.seats() == Some(0) {
            let message = format!(
                "invalid configuration: MaxRequestsInFlight={max_reads} and MaxMutatingRequestsInFlight={max_mutations}; \
                they must add up to something positive"
            );
            return Err(SettingError::new("--enable-priority-and-fairness", message));
        }
        self.sni_pairs().map(drop)
    }

    /// Returns the certificate and key files of `--tls-sni-cert-key`.
    pub(crate) fn sni_pairs(&self) -> Result<Vec<(PathBuf, PathBuf)>, SettingError> {
        let pair = |text: &String| {
            let (cert, key) = text.split_once(',').ok_or_else(|| {
                SettingError::new("--tls-sni-cert-key", format!("{text:?} is not CERTFILE,KEYFILE"))
            })?;
            Ok((PathBuf::from(cert), PathBuf::from(key)))
        };
        self.tls_sni_cert_key.iter().map(pair).collect()
    }
}
