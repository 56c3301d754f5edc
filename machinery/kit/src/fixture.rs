//! Fixtures shared by the tests of this crate: an authority, TLS backends on port 0, and clients for them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::dial::{AddressPolicy, Connector, ConnectorOptions, Target};
use crate::drain;
use crate::listener::{AcceptedConnection, ListenerMetrics, ListenerOptions, PeerInfo, TlsListener};
use crate::pki::{Authority, CertProfile};
use crate::tasks::TaskSet;
use crate::tls::{Alpn, CertPair, ClientTls, Roots, ServerTls, ServerTlsOptions};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn server_pair(authority: &Authority, names: &[&str]) -> CertPair {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    authority.issue(&CertProfile::server("backend", &names, HOUR)).unwrap().cert_pair("backend").unwrap()
}

pub(crate) fn client_pair(authority: &Authority, name: &str, groups: &[&str]) -> CertPair {
    authority.issue(&CertProfile::client(name, groups, HOUR)).unwrap().cert_pair("client").unwrap()
}

/// Returns a pair that expired an hour ago.
pub(crate) fn expired_pair(authority: &Authority, profile: &CertProfile) -> CertPair {
    authority.issue_at(profile, SystemTime::now() - 2 * HOUR).unwrap().cert_pair("expired").unwrap()
}

pub(crate) fn server_tls(pair: CertPair) -> ServerTls {
    ServerTls::new(pair, &[], &ServerTlsOptions::default()).unwrap()
}

pub(crate) fn listener(tls: ServerTls, options: ListenerOptions) -> TlsListener {
    TlsListener::bind("127.0.0.1:0".parse().unwrap(), tls, options, ListenerMetrics::default()).unwrap()
}

/// Returns TLS settings of a client that trusts the authority and verifies `name`.
pub(crate) fn client_tls(authority: &Authority, name: &str, alpn: Alpn) -> ClientTls {
    let roots = Roots::bundle("caBundle", authority.cert_pem().as_bytes());
    ClientTls::builder().roots(roots).server_name(name).alpn(alpn).build().unwrap()
}

pub(crate) fn connector(dial: Duration, tls: Duration) -> Connector {
    let policy = AddressPolicy::default();
    Connector::new(ConnectorOptions {
        dial_timeout: dial,
        tls_timeout: tls,
        policy,
        ..ConnectorOptions::default()
    })
}

pub(crate) fn target(addr: SocketAddr) -> Target {
    Target::new(addr.ip().to_string(), addr.port())
}

/// HTTP backend on a real socket. Dropping it stops its tasks.
pub(crate) struct Backend {
    pub(crate) addr: SocketAddr,
    pub(crate) tasks: TaskSet,
    pub(crate) drain: drain::Signal,
}

impl Backend {
    pub(crate) fn start<F>(tls: ServerTls, respond: F) -> Self
    where
        F: Fn(Request<Incoming>, Arc<PeerInfo>) -> Response<Full<Bytes>> + Clone + Send + Sync + 'static,
    {
        let (tasks, (signal, watch)) = (TaskSet::new(), drain::channel());
        let listener = listener(tls, ListenerOptions::new("test-backend"));
        let addr = listener.local_addr().unwrap();
        let serve = listener.serve(tasks.clone(), watch, move |accepted: AcceptedConnection| {
            let respond = respond.clone();
            async move {
                let peer = accepted.peer.clone();
                let service = service_fn(move |request| {
                    let response = respond(request, peer.clone());
                    async move { Ok::<_, std::convert::Infallible>(response) }
                });
                let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(accepted.io), service).await;
            }
        });
        tasks.spawn("test-backend-loop", serve);
        Self { addr, tasks, drain: signal }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}
