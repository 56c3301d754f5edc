//! An HTTP client that sends requests unchanged, even invalid ones: HTTP/1.1 over rustls, one connection per request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use portico_kit::tasks::TaskSet;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::pki::{CertPair, certificates};
use crate::wait::WAIT_LIMIT;

/// A client of one address with the credentials of one user.
#[derive(Clone)]
pub struct Http {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
    token: Option<String>,
    tasks: TaskSet,
}

/// A complete response.
#[derive(Debug)]
pub struct FullResponse {
    /// Status code of the response.
    pub status: StatusCode,
    /// Headers of the response.
    pub headers: HeaderMap,
    /// Complete body of the response.
    pub body: Bytes,
}

impl FullResponse {
    /// Returns the body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the text of a header.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
    }

    /// Returns the body, which must be a Status of this code and reason.
    pub fn status_body(&self, code: u16, reason: &str) -> Value {
        let body = self.json();
        assert_eq!(self.status.as_u16(), code, "{}", self.text());
        assert_eq!(body["kind"], "Status", "{}", self.text());
        assert_eq!(body["code"], code, "{}", self.text());
        assert_eq!(body["reason"], reason, "{}", self.text());
        body
    }
}

/// Error of a connection that failed or broke, for tests that expect it.
pub type HttpError = Box<dyn std::error::Error + Send + Sync>;

impl Http {
    /// Creates a client that trusts this CA and presents no certificate.
    pub fn new(address: SocketAddr, ca: &[u8]) -> Self {
        Self::with_certificate(address, ca, None)
    }

    /// Creates a client that trusts this CA and presents this certificate.
    pub fn with_certificate(address: SocketAddr, ca: &[u8], pair: Option<&CertPair>) -> Self {
        crate::install_provider();
        let mut roots = RootCertStore::empty();
        certificates(ca).into_iter().for_each(|cert| roots.add(cert).unwrap());
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let mut tls = match pair.map(CertPair::der) {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).unwrap(),
            None => builder.with_no_client_auth(),
        };
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self { address, tls: Arc::new(tls), token: None, tasks: TaskSet::new() }
    }

    /// Returns a client of another user of the harness's token file.
    #[must_use]
    pub fn as_user(&self, user: &str) -> Self {
        self.with_token(&format!("{user}-token"))
    }

    /// Returns a client with this bearer token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// Returns a client that offers only this protocol by ALPN, for [`Http::dial`].
    #[must_use]
    pub fn offering(&self, protocol: &[u8]) -> Self {
        let mut tls = self.tls.as_ref().clone();
        tls.alpn_protocols = vec![protocol.to_vec()];
        Self { tls: Arc::new(tls), ..self.clone() }
    }

    /// Opens a TLS connection, for bytes that no HTTP library would send.
    pub async fn dial(&self) -> Result<TlsStream<TcpStream>, HttpError> {
        let tcp = TcpStream::connect(self.address).await?;
        tcp.set_nodelay(true)?;
        let name = ServerName::from(self.address.ip());
        Ok(TlsConnector::from(self.tls.clone()).connect(name, tcp).await?)
    }

    /// Sends these bytes and reads until the server closes or is silent for a second.
    pub async fn send_raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.dial().await.unwrap();
        // The server may refuse before it has read everything.
        let _ = stream.write_all(bytes).await;
        let _ = stream.flush().await;
        let mut read = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(Ok(n @ 1..)) =
            tokio::time::timeout(Duration::from_secs(1), stream.read(&mut piece)).await
        {
            read.extend_from_slice(&piece[..n]);
        }
        String::from_utf8_lossy(&read).into_owned()
    }

    /// Opens a persistent connection.
    pub async fn connect(&self) -> Result<Connection, HttpError> {
        let (sender, connection) = http1::handshake(TokioIo::new(self.dial().await?)).await?;
        let connection = connection.with_upgrades();
        self.tasks.spawn_until_cancelled("http-client", async move {
            // The failed request reports the reason.
            let _ = connection.await;
        });
        Ok(Connection { sender, host: self.address.to_string(), token: self.token.clone() })
    }

    /// Sends a request; the body of the response is not read.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, HttpError> {
        self.connect().await?.send(request).await
    }

    /// Sends a request and reads the complete response.
    pub async fn fetch(&self, request: Request<Full<Bytes>>) -> Result<FullResponse, HttpError> {
        let answer = tokio::time::timeout(WAIT_LIMIT, async { collect(self.send(request).await?).await });
        answer.await.map_err(|_| "no answer in time")?
    }

    /// Sends a request over HTTP/2 and reads the complete response.
    pub async fn fetch_over_http2(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<FullResponse, HttpError> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let uri = Uri::builder().scheme("https").authority(self.address.to_string()).path_and_query(path);
        *request.uri_mut() = uri.build()?;
        let io = TokioIo::new(self.offering(b"h2").dial().await?);
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
        let answer = async { collect(sender.send_request(request).await?).await };
        let mut answer = std::pin::pin!(tokio::time::timeout(WAIT_LIMIT, answer));
        let answer = tokio::select! {
            answer = &mut answer => answer,
            // The response may have arrived together with the end.
            ended = connection => {
                ended?;
                answer.await
            }
        };
        answer.map_err(|_| "no answer in time")?
    }

    /// Sends a GET; panics if there is no response.
    pub async fn get(&self, path: &str) -> FullResponse {
        self.request(Method::GET, path, "", Vec::new()).await
    }

    /// Sends a GET with an Accept header.
    pub async fn get_as(&self, path: &str, accept: &str) -> FullResponse {
        let request = Request::get(path).header("accept", accept).body(Full::default()).unwrap();
        self.fetch(request).await.unwrap_or_else(|e| panic!("GET {path}: {e}"))
    }

    /// Sends a request of any method with a body; panics if there is no response.
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        media_type: &str,
        body: impl Into<Bytes>,
    ) -> FullResponse {
        let mut request = Request::builder().method(method.clone()).uri(path);
        if !media_type.is_empty() {
            request = request.header("content-type", media_type);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        self.fetch(request).await.unwrap_or_else(|e| panic!("{method} {path}: {e}"))
    }

    /// Sends a POST of JSON.
    pub async fn post(&self, path: &str, body: &Value) -> FullResponse {
        self.request(Method::POST, path, "application/json", body.to_string()).await
    }

    /// Sends a PUT of JSON.
    pub async fn put(&self, path: &str, body: &Value) -> FullResponse {
        self.request(Method::PUT, path, "application/json", body.to_string()).await
    }

    /// Sends a JSON merge patch.
    pub async fn merge(&self, path: &str, body: &Value) -> FullResponse {
        self.request(Method::PATCH, path, "application/merge-patch+json", body.to_string()).await
    }

    /// Sends a DELETE.
    pub async fn delete(&self, path: &str) -> FullResponse {
        self.request(Method::DELETE, path, "", Vec::new()).await
    }
}

/// A connection for consecutive requests.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    token: Option<String>,
}

impl Connection {
    /// Sends a request with Host and, unless it has one, the user's token.
    pub async fn send(&mut self, mut request: Request<Full<Bytes>>) -> Result<Response<Incoming>, HttpError> {
        let headers = request.headers_mut();
        if !headers.contains_key("host") {
            headers.insert("host", self.host.parse()?);
        }
        if let Some(token) = self.token.as_ref().filter(|_| !headers.contains_key("authorization")) {
            headers.insert("authorization", format!("Bearer {token}").parse()?);
        }
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }

    /// Sends a GET; returns the complete response.
    pub async fn get(&mut self, path: &str) -> Result<FullResponse, HttpError> {
        let request = Request::get(path).body(Full::default())?;
        collect(self.send(request).await?).await
    }
}

/// Reads the complete body.
pub async fn collect(response: Response<Incoming>) -> Result<FullResponse, HttpError> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(FullResponse { status: parts.status, headers: parts.headers, body })
}

/// Reads a stream of JSON lines one by one.
pub struct JsonLines {
    body: Incoming,
    rest: Vec<u8>,
}

impl JsonLines {
    /// Creates a reader of this body.
    pub fn new(body: Incoming) -> Self {
        Self { body, rest: Vec::new() }
    }

    /// Returns the next line; `None` at the end. Panics if no line arrives in time.
    pub async fn next(&mut self) -> Option<Value> {
        tokio::time::timeout(WAIT_LIMIT, self.read()).await.expect("no line in time")
    }

    async fn read(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.ok()?;
            self.rest.extend_from_slice(&frame.into_data().unwrap_or_default());
        }
    }
}
