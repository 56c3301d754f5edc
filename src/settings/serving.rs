//! The facade's HTTPS: address, certificates, limits, shutdown.

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

/// Settings of HTTPS serving.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("HTTPS serving (facade)"))]
pub(crate) struct Serving {
    /// The address on which the facade serves HTTPS.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) bind_address: IpAddr,
    /// The address under which workloads reach the facade: what the Service default/kubernetes leads to. By default the
    /// address that is bound, or, when that is every address, the one that leads to the world.
    #[arg(long, value_name = "IP")]
    pub(crate) advertise_address: Option<IpAddr>,
    /// The port on which the facade serves HTTPS; 0 = any free one.
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    pub(crate) secure_port: u16,
    /// The folder of self-made certificates; default: certs in the data folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) cert_dir: Option<PathBuf>,
    /// The serving certificate, intermediates appended. Without it one is made and renewed.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// The key of --tls-cert-file.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_private_key_file: Option<PathBuf>,
    /// A further certificate for a server name: CERTFILE,KEYFILE (repeat for more); its own names choose it.
    #[arg(long, value_name = "CERT,KEY")]
    pub(crate) tls_sni_cert_key: Vec<String>,
    /// The lowest TLS version of HTTPS: VersionTLS12 or VersionTLS13.
    #[arg(long, value_name = "VERSION", value_parser = tls_min_version, default_value = "VersionTLS12")]
    pub(crate) tls_min_version: MinVersion,
    /// The TLS 1.2 cipher suites of HTTPS, comma-separated, by their IANA names; those of TLS 1.3 are always on. Without it, all
    /// that are spoken.
    #[arg(long, value_name = "SUITES", value_delimiter = ',', value_parser = tls_cipher_suite)]
    pub(crate) tls_cipher_suites: Vec<String>,
    /// The key exchanges of HTTPS, comma-separated, by their numbers (23, 24, 29, 4588); without it, all that are spoken.
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = tls_key_exchange)]
    pub(crate) tls_curve_preferences: Vec<u16>,
    /// Speak no HTTP/2 on HTTPS.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) disable_http2_serving: bool,
    /// Bind with SO_REUSEPORT, so that several processes may listen on the same address and port.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) permit_port_sharing: bool,
    /// The name under which clients reach the facade; goes into certificates and kubeconfigs.
    #[arg(long, value_name = "NAME")]
    pub(crate) external_hostname: Option<String>,
    /// How long a request may take, unless it is long-running.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) request_timeout: Duration,
    /// A response of which the client takes nothing for so long is aborted: a stream is reset, a connection closed. Tunnels
    /// (exec, attach, port-forward) may be paused for longer.
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "60s")]
    pub(crate) stalled_write_timeout: Duration,
    /// A request's body of which nothing comes for so long, or then less than 500 bytes a second, is refused with 408.
    /// Long-running requests may pause for longer.
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "10s")]
    pub(crate) stalled_read_timeout: Duration,
    /// The shortest time, in seconds, that a watch lasts; each lasts up to twice as long.
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    pub(crate) min_request_timeout: u64,
    /// Let requests queue for seats, by priority levels and fairly among flows; without it two limits count them.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true)]
    pub(crate) enable_priority_and_fairness: bool,
    /// With --max-mutating-requests-inflight the sum of seats of this facade (which must be positive); without
    /// --enable-priority-and-fairness the reading requests that run at a time, 0 = no limit.
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub(crate) max_requests_inflight: usize,
    /// With --max-requests-inflight the sum of seats of this facade (which must be positive); without
    /// --enable-priority-and-fairness the changing requests that run at a time, 0 = no limit.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) max_mutating_requests_inflight: usize,
    /// The largest body of a write to a local object, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 3 * 1024 * 1024)]
    pub(crate) max_request_body_bytes: usize,
    /// Bytes of events that wait for clients that watch, of all watches together. Beyond that the watches end whose clients have
    /// taken no event for longest; 4 MiB may wait for one watch.
    #[arg(long, value_name = "BYTES", default_value_t = 256 * 1024 * 1024)]
    pub(crate) max_watch_buffer_bytes: usize,
    /// Connections at a time; a further one takes the place of the one that has been idle for longest, first of clients that were
    /// never authenticated, or waits.
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    pub(crate) max_connections: usize,
    /// Streams at a time in one HTTP/2 connection.
    #[arg(long, value_name = "N", default_value_t = 250)]
    pub(crate) http2_max_streams_per_connection: u32,
    /// The largest request head, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub(crate) max_request_header_bytes: u32,
    /// The time within which a request's head must have arrived.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    pub(crate) request_header_timeout: Duration,
    /// The time within which a TLS handshake must be done.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) tls_handshake_timeout: Duration,
    /// Origins that CORS allows, as anchored regular expressions (repeat for more).
    #[arg(long, value_name = "REGEX", value_parser = cors_origin)]
    pub(crate) cors_allowed_origins: Vec<String>,
    /// Directives of the Strict-Transport-Security header (repeat for more).
    #[arg(long, value_name = "DIRECTIVE", value_parser = hsts_directive)]
    pub(crate) strict_transport_security_directives: Vec<String>,
    /// The chance that an HTTP/2 client is asked to connect anew, to spread load (0 to 0.02).
    #[arg(long, value_name = "CHANCE", value_parser = goaway_chance, default_value = "0")]
    pub(crate) goaway_chance: f64,
    /// How long /livez takes checks that have not passed yet for passed.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    pub(crate) livez_grace_period: Duration,
    /// How long everything is still served after a stop was asked for, while /readyz already fails.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    pub(crate) shutdown_delay_duration: Duration,
    /// Keep listening while requests drain and answer new ones with 429 and Retry-After.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) shutdown_send_retry_after: bool,
    /// Let connections wait until the process is ready, so that the first answer is a full one: for those who take it for that.
    /// Otherwise health checks are answered from the start, and say what is missing.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    pub(crate) serve_when_ready: bool,
    /// Wait, when the process is asked to stop, for requests and calls that are under way; without it they are cut off.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true)]
    pub(crate) shutdown_drain: bool,
    /// How long watches may take to end when the facade stops.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    pub(crate) shutdown_watch_termination_grace_period: Duration,
}

impl Serving {
    /// How many seats a server has, where requests queue for them.
    pub(crate) fn seats(&self) -> Option<usize> {
        let seats = self.max_requests_inflight.saturating_add(self.max_mutating_requests_inflight);
        self.enable_priority_and_fairness.then_some(seats)
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        if self.tls_cert_file.is_some() != self.tls_private_key_file.is_some() {
            let setting =
                if self.tls_cert_file.is_some() { "--tls-private-key-file" } else { "--tls-cert-file" };
            return Err(SettingError::new(setting, "--tls-cert-file and --tls-private-key-file go together"));
        }
        let (reads, others) = (self.max_requests_inflight, self.max_mutating_requests_inflight);
        if self.seats() == Some(0) {
            let message = format!(
                "invalid configuration: MaxRequestsInFlight={reads} and MaxMutatingRequestsInFlight={others}; \
                they must add up to something positive"
            );
            return Err(SettingError::new("--enable-priority-and-fairness", message));
        }
        self.sni_pairs().map(drop)
    }

    /// Certificate and key files of `--tls-sni-cert-key`.
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
