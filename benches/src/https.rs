//! One HTTP/1.1 connection over TLS, as a client: request after request, nothing pooled, nothing hidden.

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

/// Where to connect, under which name, as whom.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// The address.
    pub(crate) address: SocketAddr,
    /// The name in the certificate, and the Host.
    pub(crate) name: &'static str,
    /// Trust, and who we are.
    pub(crate) tls: Arc<ClientConfig>,
}

pub(crate) type Sender = SendRequest<Full<Bytes>>;
type Io = TokioIo<TlsStream<TcpStream>>;

impl Endpoint {
    /// Connects. The second half must be polled for the first to work.
    pub(crate) async fn open(&self) -> Result<(Sender, Connection<Io, Full<Bytes>>), Failure> {
        Ok(http1::handshake(self.dial(self.tls.clone()).await?).await?)
    }

    /// Connects by HTTP/2; the connection goes on in `tasks`.
    pub(crate) async fn http2(&self, tasks: &TaskSet) -> Result<http2::SendRequest<Full<Bytes>>, Failure> {
        let mut tls = ClientConfig::clone(&self.tls);
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let io = self.dial(Arc::new(tls)).await?;
        let (sender, connection) = http2::handshake(tasks.executor("http2-streams"), io).await?;
        tasks.spawn_until_cancelled("http2-connection", async move {
            // Its end is seen by the sender.
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

    /// Connects, and keeps the connection going.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        let (sender, connection) = self.open().await?;
        let tasks = TaskSet::new();
        tasks.spawn_until_cancelled("client-connection", async move {
            // Its end is seen by the sender.
            let _ = connection.await;
        });
        Ok(Client { sender, name: self.name, tasks })
    }

    /// A request with a JSON body.
    pub(crate) fn json(
        &self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<Request<Full<Bytes>>, Failure> {
        let request = Request::builder().method(method).uri(path).header(HOST, self.name);
        Ok(request.header(CONTENT_TYPE, "application/json").body(Full::new(body.into()))?)
    }

    /// A GET.
    pub(crate) fn get(&self, path: &str) -> Result<Request<Full<Bytes>>, Failure> {
        Ok(Request::get(path).header(HOST, self.name).body(Full::default())?)
    }
}

/// A connection, one request at a time.
pub(crate) struct Client {
    sender: Sender,
    name: &'static str,
    tasks: TaskSet,
}

impl Client {
    /// Sends, and reads the whole answer.
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

    /// Sends a request as it is, and reads the whole answer.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), Failure> {
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await?;
        let status = answer.status();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }

    /// Whether the connection has ended: nothing can be sent any more.
    pub(crate) fn closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// GET: the code alone.
    pub(crate) async fn get(&mut self, path: &str) -> Result<StatusCode, Failure> {
        Ok(self.send(Method::GET, path, Bytes::new()).await?.0)
    }

    /// Sends what must succeed.
    pub(crate) async fn must(&mut self, method: Method, path: &str, body: String) -> Result<Bytes, Failure> {
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

/// Reads a body to its end and forgets it.
pub(crate) async fn drain(mut body: Incoming) -> Result<usize, hyper::Error> {
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        read += frame?.data_ref().map_or(0, Bytes::len);
    }
    Ok(read)
}
