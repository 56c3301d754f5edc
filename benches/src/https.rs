//! One HTTP/1.1 connection over TLS, as a client: consecutive requests without pooling and retries.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use portico_kit::tasks::TaskSet;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Failure;

/// Address, server name and TLS settings of a server.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// Address of the server.
    pub(crate) address: SocketAddr,
    /// Server name in the certificate and in `Host`.
    pub(crate) name: &'static str,
    /// TLS settings: trust and client certificate.
    pub(crate) tls: Arc<ClientConfig>,
}

pub(crate) type Sender = SendRequest<Full<Bytes>>;
type Io = TokioIo<TlsStream<TcpStream>>;

impl Endpoint {
    /// Connects. The returned connection must be polled for the sender to work.
    pub(crate) async fn open(&self) -> Result<(Sender, Connection<Io, Full<Bytes>>), Failure> {
        Ok(http1::handshake(self.dial(self.tls.clone()).await?).await?)
    }

    /// Connects by HTTP/2; `tasks` drives the connection.
    pub(crate) async fn http2(&self, tasks: &TaskSet) -> Result<http2::SendRequest<Full<Bytes>>, Failure> {
        let mut tls = ClientConfig::clone(&self.tls);
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let io = self.dial(Arc::new(tls)).await?;
        let (sender, connection) = http2::handshake(tasks.executor("http2-streams"), io).await?;
        tasks.spawn_until_cancelled("http2-connection", async move {
            // The sender reports the end of the connection.
            let _ = connection.await;
        });
        Ok(sender)
    }

    async fn dial(&self, tls: Arc<ClientConfig>) -> Result<Io, Failure> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(self.name)?;
        Ok(TokioIo::new(TlsConnector::from(tls).connect(name, stream).await?))
    }

    /// Connects, and drives the connection in a task.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        let (sender, connection) = self.open().await?;
        let tasks = TaskSet::new();
        tasks.spawn_until_cancelled("client-connection", async move {
            // The sender reports the end of the connection.
            let _ = connection.await;
        });
        Ok(Client { sender, name: self.name, tasks })
    }

    /// Creates a request with a JSON body.
    pub(crate) fn json(
        &self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<Request<Full<Bytes>>, Failure> {
        let request = Request::builder().method(method).uri(path).header(HOST, self.name);
        Ok(request.header(CONTENT_TYPE, "application/json").body(Full::new(body.into()))?)
    }

    /// Creates a GET request.
    pub(crate) fn get(&self, path: &str) -> Result<Request<Full<Bytes>>, Failure> {
        Ok(Request::get(path).header(HOST, self.name).body(Full::default())?)
    }
}

/// A connection that sends one request at a time.
pub(crate) struct Client {
    sender: Sender,
    name: &'static str,
    tasks: TaskSet,
}

impl Client {
    /// Sends a request, and reads the complete response.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let request = Request::builder().method(method).uri(path).header(HOST, self.name);
        let request = request.header(CONTENT_TYPE, "application/json").body(Full::new(body.into()))?;
        self.exchange(request).await
    }

    /// Sends this request, and reads the complete response.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), Failure> {
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await?;
        let status = answer.status();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }

    /// Returns true if the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends a GET; returns the status code.
    pub(crate) async fn get(&mut self, path: &str) -> Result<StatusCode, Failure> {
        Ok(self.send(Method::GET, path, Bytes::new()).await?.0)
    }

    /// Sends a request, and fails unless its response is a success.
    pub(crate) async fn send_ok(
        &mut self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<Bytes, Failure> {
        let (status, answer) = self.send(method, path, body).await?;
        if status.is_success() {
            return Ok(answer);
        }
        Err(format!("{path}: {status}: {}", String::from_utf8_lossy(&answer)).into())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

/// Reads a body to its end; returns the number of bytes.
pub(crate) async fn drain(mut body: Incoming) -> Result<usize, hyper::Error> {
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        read += frame?.data_ref().map_or(0, Bytes::len);
    }
    Ok(read)
}
