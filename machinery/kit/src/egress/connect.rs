//! Tunnels opened with HTTP CONNECT.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{EgressError, Protocol, ProxyTls, Selection, Transport};
use crate::dial::{DialError, HandshakeFailure, RawStream, Target, handshake_failure, io_reason};
use crate::metrics::{Desc, HistogramVec, Registry};
use crate::platform;
use crate::tls::{CertPair, ClientTls, Roots};

/// Size of the response head of an egress proxy.
///
/// Limit (Backends, bytes): the dial fails.
const REPLY_LIMIT: usize = 1 << 20;
/// Maximum number of headers parsed in a reply.
const REPLY_HEADERS: usize = 128;

type DialLabels = [(&'static str, String); 2];
type FailureLabels = [(&'static str, String); 3];

/// Upstream's metrics of egress connections.
#[derive(Clone)]
pub struct EgressMetrics {
    starts: Family<DialLabels, Counter>,
    durations: HistogramVec<DialLabels>,
    failures: Family<FailureLabels, Counter>,
}

impl EgressMetrics {
    /// Registers `apiserver_egress_dialer_dial_{start_total,duration_seconds,failure_count}`.
    pub fn new(registry: &Registry) -> Self {
        Self {
            starts: registry.counter_vec(Desc::counter(
                "apiserver_egress_dialer_dial_start_total",
                &["protocol", "transport"],
                "[ALPHA] Dial starts, labeled by the protocol (http-connect or grpc) and \
                 transport (tcp or uds).",
            )),
            durations: registry.histogram_vec(
                Desc::histogram(
                    "apiserver_egress_dialer_dial_duration_seconds",
                    &["protocol", "transport"],
                    "[ALPHA] Dial latency histogram in seconds, labeled by the protocol \
                     (http-connect or grpc), transport (tcp or uds)",
                ),
                &[0.005, 0.025, 0.1, 0.5, 2.5, 12.5],
            ),
            failures: registry.counter_vec(Desc::counter(
                "apiserver_egress_dialer_dial_failure_count",
                &["protocol", "stage", "transport"],
                "[ALPHA] Dial failure count, labeled by the protocol (http-connect or grpc), \
                 transport (tcp or uds), and stage (connect or proxy). The stage indicates at \
                 which stage the dial failed",
            )),
        }
    }
}

/// Dialer through one proxy. Cheap to clone.
#[derive(Clone)]
pub struct EgressDialer {
    inner: Arc<Inner>,
}

struct Inner {
    transport: Transport,
    tls: Option<ClientTls>,
    metrics: Option<EgressMetrics>,
}

/// Reason of a failure and its stage (`connect` or `proxy`).
type TunnelError = (&'static str, String);

impl EgressDialer {
    /// Returns a dialer, or `None` for a direct selection. Reads the TLS files of the proxy.
    pub fn new(selection: &Selection, metrics: Option<EgressMetrics>) -> Result<Option<Self>, EgressError> {
        let Protocol::HttpConnect(transport) = &selection.protocol else { return Ok(None) };
        let tls = match transport {
            Transport::Tcp { host, tls: Some(files), .. } => Some(proxy_tls(host, files)?),
            _ => None,
        };
        let inner = Inner { transport: transport.clone(), tls, metrics };
        Ok(Some(Self { inner: Arc::new(inner) }))
    }

    /// Opens a tunnel to `target`, which the proxy resolves.
    pub(crate) async fn dial(&self, target: &Target, limit: Duration) -> Result<RawStream, DialError> {
        let transport = match self.inner.transport {
            Transport::Tcp { .. } => "tcp",
            Transport::Uds(_) => "uds",
        };
        let labels = [("protocol", "http_connect".to_owned()), ("transport", transport.to_owned())];
        let metrics = self.inner.metrics.as_ref();
        if let Some(metrics) = metrics {
            metrics.starts.get_or_create(&labels).inc();
        }
        let start = Instant::now();
        let outcome = tokio::time::timeout(limit, self.tunnel(target)).await;
        let outcome = outcome.unwrap_or_else(|_| Err(("connect", "timed out".to_owned())));
        match outcome {
            Ok(raw) => {
                if let Some(metrics) = metrics {
                    metrics.durations.get_or_create(&labels).observe(start.elapsed().as_secs_f64());
                }
                Ok(raw)
            }
            Err((stage, reason)) => {
                if let Some(metrics) = metrics {
                    let [protocol, transport] = labels;
                    metrics.failures.get_or_create(&[protocol, transport, ("stage", stage.to_owned())]).inc();
                }
                Err(DialError::Egress { stage, reason })
            }
        }
    }

    async fn tunnel(&self, target: &Target) -> Result<RawStream, TunnelError> {
        let mut raw = self.connect_proxy().await?;
        connect(&mut raw, target).await.map_err(|reason| ("proxy", reason))?;
        Ok(raw)
    }

    async fn connect_proxy(&self) -> Result<RawStream, TunnelError> {
        let failed = |error: io::Error| ("connect", connect_reason(&error));
        match &self.inner.transport {
            Transport::Uds(path) => platform::connect(path).await.map(RawStream::Uds).map_err(failed),
            Transport::Tcp { host, port, .. } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                let Some(tls) = &self.inner.tls else { return Ok(RawStream::Tcp(stream)) };
                let Some(name) = tls.server_name() else { return Ok(RawStream::Tcp(stream)) };
                let stream = TlsConnector::from(tls.config()).connect(name.clone(), stream).await;
                stream.map(|stream| RawStream::Tls(Box::new(stream))).map_err(failed)
            }
        }
    }
}

/// Returns the reason of a failed connection to the proxy; names the certificate if it was rejected.
fn connect_reason(error: &io::Error) -> String {
    match handshake_failure(error) {
        HandshakeFailure::Certificate(fault) => fault.to_string(),
        HandshakeFailure::Other(reason) => reason.to_owned(),
    }
}

/// Sends CONNECT and reads exactly the head of the reply.
async fn connect<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, target: &Target) -> Result<(), String> {
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|error| io_reason(&error).to_owned())?;
    stream.flush().await.map_err(|error| io_reason(&error).to_owned())?;
    let mut reply = Vec::with_capacity(1024);
    loop {
        if reply.len() >= REPLY_LIMIT {
            return Err(format!("the reply's header is longer than {REPLY_LIMIT} bytes"));
        }
        let read = stream.read_buf(&mut reply).await.map_err(|error| io_reason(&error).to_owned())?;
        if read == 0 {
            return Err("the proxy closed the connection".to_owned());
        }
        if let Some(length) = parse_head(&reply)? {
            return match reply.len() - length {
                0 => Ok(()),
                more => Err(format!("the proxy sent {more} bytes after its reply")),
            };
        }
    }
}

/// Returns the length of a complete head with status 200, or `None` if it is incomplete.
fn parse_head(reply: &[u8]) -> Result<Option<usize>, String> {
    let mut headers = [httparse::EMPTY_HEADER; REPLY_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(reply) {
        Ok(httparse::Status::Partial) => Ok(None),
        Ok(httparse::Status::Complete(length)) => match response.code {
            Some(200) => Ok(Some(length)),
            code => Err(format!("the proxy responded with status {}", code.unwrap_or_default())),
        },
        Err(_) => Err("the reply is not HTTP".to_owned()),
    }
}

fn proxy_tls(host: &str, files: &ProxyTls) -> Result<ClientTls, EgressError> {
    let read = |path: &std::path::PathBuf| {
        crate::config_file::read(path).map_err(|source| EgressError::File { path: path.clone(), source })
    };
    let invalid = |error: crate::tls::TlsError| EgressError::Invalid {
        field: "tlsConfig".to_owned(),
        reason: error.to_string(),
    };
    let roots = match &files.ca_bundle {
        Some(path) => Roots::bundle(&path.display().to_string(), &read(path)?),
        None => Roots::System,
    };
    let label = files.client_cert.display().to_string();
    let pair =
        CertPair::from_pem(&label, &read(&files.client_cert)?, &read(&files.client_key)?).map_err(invalid)?;
    ClientTls::builder().roots(roots).server_name(host).client_cert(Some(pair)).build().map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn reply(bytes: &'static [u8]) -> Result<(), String> {
        let (mut ours, mut proxy) = tokio::io::duplex(2 << 20);
        proxy.write_all(bytes).await.unwrap();
        proxy.shutdown().await.unwrap();
        let outcome = connect(&mut ours, &Target::new("backend.ns.svc", 443)).await;
        drop(ours);
        let mut request = String::new();
        proxy.read_to_string(&mut request).await.unwrap();
        assert_eq!(request, "CONNECT backend.ns.svc:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        outcome
    }

    #[tokio::test]
    async fn only_a_200_and_nothing_after_it_opens_the_tunnel() {
        assert_eq!(reply(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n").await, Ok(()));
        let table: [(&'static [u8], &str); 5] = [
            (b"HTTP/1.1 403 Forbidden\r\n\r\n", "the proxy responded with status 403"),
            (b"HTTP/1.1 200 OK\r\n\r\nEARLY", "the proxy sent 5 bytes after its reply"),
            (b"HTTP/1.1 200 OK\r\n", "the proxy closed the connection"),
            (b"", "the proxy closed the connection"),
            (b"SSH-2.0-OpenSSH\r\n", "the reply is not HTTP"),
        ];
        for (bytes, words) in table {
            assert_eq!(reply(bytes).await, Err(words.to_owned()));
        }
    }

    #[tokio::test]
    async fn an_endless_reply_is_cut_at_its_limit() {
        let long: &'static [u8] = Box::leak(
            [b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'a'; REPLY_LIMIT]].concat().into_boxed_slice(),
        );
        assert!(reply(long).await.unwrap_err().contains("longer than 1048576 bytes"));
    }
}
