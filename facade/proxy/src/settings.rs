//! Configuration and limits of the proxy. Other crates parse and validate them.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use portico_kit::dial::Connector;
use portico_kit::tasks::TaskSet;
use portico_machinery::resolve::Bundle;
use tokio::sync::watch;

use crate::client_cert::ClientCert;

/// Configuration of a [`crate::Proxy`].
#[derive(Clone)]
pub struct ProxySettings {
    /// Opens connections (directly, or through an egress proxy) and restricts the addresses that may be dialed.
    pub connector: Connector,
    /// The proxy-client certificate; after a change, new connections are opened and old ones retired. `None`: backends get no
    /// client certificate.
    pub client_cert: Option<ClientCert>,
    /// Certificates for kubelets.
    pub kubelets: Kubelets,
    /// Tasks of upgraded connections, HTTP/2 connections and the sweeper.
    pub tasks: TaskSet,
    /// Limits of the proxy.
    pub limits: Limits,
}

/// Certificates that are presented to kubelets and verify kubelets. They do not leave this process.
#[derive(Clone)]
pub struct Kubelets {
    /// `--kubelet-client-certificate` and its key; after a change, new connections are opened.
    /// `None`: no certificate is presented.
    pub client_cert: Option<ClientCert>,
    /// `--kubelet-certificate-authority`. `None`: kubelets are not verified, as upstream.
    pub authority: Option<watch::Receiver<Arc<Bundle>>>,
    /// `--kubelet-timeout`: the time for resolving, connecting and the TLS handshake.
    pub dial_timeout: Duration,
}

impl Default for Kubelets {
    /// Returns upstream's timeout of 5 s, and no certificates.
    fn default() -> Self {
        Self { client_cert: None, authority: None, dial_timeout: Duration::from_secs(5) }
    }
}

/// Limits of the proxy; docs/reference/limits.md lists the defaults of those that are no flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Idle HTTP/1.1 connections to one backend.
    pub max_idle_per_target: usize,
    /// Idle time of a connection to a backend.
    ///
    /// Limit (Backends): the connection is closed.
    pub idle_timeout: Duration,
    /// Requests (watches and tunnels included) that may be under way to one backend; one more answers 503 at once.
    pub max_requests_per_backend: usize,
    /// Time for resolving, connecting and the TLS handshake, all targets together.
    pub dial_timeout: Duration,
    /// Time for a backend to answer a discovery request (`/apis/<group>/<version>`).
    ///
    /// Limit (Backends): 503.
    pub discovery_deadline: Duration,
    /// True if a redirect of a backend becomes 502 (`--aggregator-reject-forwarding-redirect`).
    pub reject_redirects: bool,
    /// True if refusals are upstream's plain text instead of a Status, for clients that compare text.
    pub plain_text_errors: bool,
    /// Consecutive dial failures that open the circuit of a backend.
    ///
    /// Limit (Backends): requests fail immediately.
    pub circuit_failures: u32,
    /// Time for which a circuit stays open initially.
    ///
    /// Limit (Backends): one request probes the backend; the time doubles with each failure.
    pub circuit_open: Duration,
    /// Time between two probes of a backend with an open circuit.
    ///
    /// Limit (Backends): one request probes the backend.
    pub circuit_open_max: Duration,
    /// Time for a backend to send the body of the error with which it rejects an upgrade.
    ///
    /// Limit (Backends): the connection is closed.
    pub refused_upgrade_deadline: Duration,
    /// Bytes of the error with which a kubelet rejects a log request that are passed on.
    ///
    /// Limit (Kubelets and remote commands, bytes): the rest is omitted.
    pub refusal_bytes: usize,
    /// Bytes a second that a connection to a node, pod or Service carries each way, once it has changed its protocol.
    pub connection_bytes_per_second: Option<NonZeroU32>,
    /// Size of a WebSocket message that is translated for a kubelet.
    pub web_socket_message_bytes: usize,
    /// Idle time of a WebSocket that is translated for a kubelet.
    pub web_socket_idle_timeout: Duration,
    /// Time for a kubelet to accept the streams of a command.
    ///
    /// Limit (Kubelets and remote commands): the command fails.
    pub stream_creation_timeout: Duration,
    /// Copies of requests in flight to one mirror.
    pub max_mirrored_requests: u32,
    /// Time for a mirror to answer a copy.
    pub mirror_timeout: Duration,
    /// Bytes of the response of a mirror that are read.
    ///
    /// Limit (Backends, bytes): its connection is closed.
    pub mirror_answer_bytes: u64,
    /// Time without frames after which an HTTP/2 connection is sent a PING.
    pub http2_ping_interval: Duration,
    /// Time to wait for the response to a PING before the connection is closed.
    pub http2_ping_timeout: Duration,
    /// Requests on one HTTP/2 connection to a backend.
    ///
    /// Limit (Backends): one more opens another connection.
    pub http2_max_streams: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_idle_per_target: 128,
            idle_timeout: Duration::from_secs(75),
            max_requests_per_backend: 4096,
            dial_timeout: Duration::from_secs(10),
            discovery_deadline: Duration::from_secs(5),
            reject_redirects: true,
            plain_text_errors: false,
            circuit_failures: 3,
            circuit_open: Duration::from_millis(250),
            circuit_open_max: Duration::from_secs(2),
            refused_upgrade_deadline: Duration::from_secs(10),
            refusal_bytes: 50_000,
            connection_bytes_per_second: None,
            web_socket_message_bytes: 32 << 20,
            web_socket_idle_timeout: Duration::from_secs(4 * 3600),
            stream_creation_timeout: Duration::from_secs(30),
            max_mirrored_requests: 64,
            mirror_timeout: Duration::from_secs(10),
            mirror_answer_bytes: 1 << 20,
            http2_ping_interval: Duration::from_secs(5),
            http2_ping_timeout: Duration::from_secs(5),
            http2_max_streams: 100,
        }
    }
}
