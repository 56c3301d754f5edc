//! An OpenID Connect issuer over TLS: metadata, a key set that rotates, and tokens with any claims.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use portico_kit::tasks::TaskSet;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::pki::{Authority, Clients};

/// Path of the issuer's metadata.
const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// Function that signs claims.
pub type SignFn = Box<dyn Fn(&Value) -> String + Send + Sync>;

/// A signing key, and its published form.
pub struct IssuerKey {
    /// Signs claims with the key.
    pub sign: SignFn,
    /// JWK set with the public key.
    pub set: Vec<u8>,
}

struct Shared {
    url: String,
    key: Mutex<IssuerKey>,
    /// Number of key fetches.
    fetches: AtomicUsize,
    /// Response of `/claims`.
    claims: Mutex<String>,
}

/// A running OpenID Connect issuer.
pub struct TokenIssuer {
    /// CA of its certificate, PEM.
    pub ca: String,
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: TlsAcceptor,
    tasks: TaskSet,
}

impl TokenIssuer {
    /// Starts an issuer with this key.
    pub async fn start(key: IssuerKey) -> Self {
        let authority = Authority::new("issuer-ca");
        let acceptor = authority.server(&["127.0.0.1"]).acceptor(Clients::Any);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            url: format!("https://{address}"),
            key: Mutex::new(key),
            fetches: AtomicUsize::new(0),
            claims: Mutex::default(),
        });
        let mut issuer = Self { ca: authority.pem, address, shared, acceptor, tasks: TaskSet::new() };
        issuer.serve(listener);
        issuer
    }

    fn serve(&mut self, listener: TcpListener) {
        self.tasks = TaskSet::new();
        let (set, shared, acceptor) = (self.tasks.clone(), self.shared.clone(), self.acceptor.clone());
        self.tasks.spawn_until_cancelled("issuer", async move {
            while let Ok((stream, _)) = listener.accept().await {
                set.spawn_until_cancelled(
                    "issuer-connection",
                    connection(stream, shared.clone(), acceptor.clone()),
                );
            }
        });
    }

    /// Returns the issuer URL.
    pub fn url(&self) -> &str {
        &self.shared.url
    }

    /// Returns a token with these claims and `iss`.
    pub fn token(&self, claims: &Value) -> String {
        let mut claims = claims.clone();
        if claims.get("iss").is_none() {
            claims["iss"] = json!(self.url());
        }
        (self.shared.key.lock().unwrap().sign)(&claims)
    }

    /// Replaces the key, also in the published set.
    pub fn rotate(&self, key: IssuerKey) {
        *self.shared.key.lock().unwrap() = key;
    }

    /// Returns the number of key fetches.
    pub fn fetches(&self) -> usize {
        self.shared.fetches.load(Ordering::Relaxed)
    }

    /// Sets the token that `/claims` returns.
    pub fn set_claims(&self, token: &str) {
        token.clone_into(&mut self.shared.claims.lock().unwrap());
    }

    /// Stops listening and closes every connection.
    pub async fn stop(&mut self) {
        self.tasks.cancel();
        let tasks = self.tasks.clone();
        crate::wait_until("the issuer has stopped", || std::future::ready(tasks.running().is_empty())).await;
    }

    /// Listens again at the same address.
    pub async fn resume(&mut self) {
        let address = self.address;
        let bind = || async move { TcpListener::bind(address).await };
        let listener = crate::eventually("the issuer's address is free", bind).await;
        self.serve(listener);
    }
}

impl Drop for TokenIssuer {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, acceptor: TlsAcceptor) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(respond(&request, &shared)) }
    });
    // Errors of disconnected clients do not matter.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

fn respond(request: &Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    // Any path in front of these is a separate issuer with the same keys.
    let (below, last) = match request.uri().path() {
        path if path.ends_with(WELL_KNOWN) => (path.trim_end_matches(WELL_KNOWN), WELL_KNOWN),
        path => path.rsplit_once('/').unwrap_or((path, "")),
    };
    let body: Bytes = match last {
        WELL_KNOWN => {
            let issuer = format!("{}{below}", shared.url);
            json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")}).to_string().into()
        }
        "keys" => {
            shared.fetches.fetch_add(1, Ordering::Relaxed);
            shared.key.lock().unwrap().set.clone().into()
        }
        "claims" => shared.claims.lock().unwrap().clone().into(),
        _ => {
            let mut missing = Response::new(Full::default());
            *missing.status_mut() = StatusCode::NOT_FOUND;
            return missing;
        }
    };
    Response::new(Full::new(body))
}
