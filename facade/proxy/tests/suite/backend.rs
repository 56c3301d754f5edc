//! A backend with responses that a test scripts byte by byte, over TLS on port 0.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portico_kit::pki::{Authority, CertInfo, CertProfile};
use portico_kit::tasks::TaskSet;
use portico_kit::tls::{CertPair, ServerTls, ServerTlsOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::server::TlsStream;

/// Server name that routes to backends verify.
pub const NAME: &str = "flunders.wardle.svc";
pub const HOUR: Duration = Duration::from_secs(3600);
/// Limit on waiting for an event that must happen, far above the time that a busy machine needs.
pub const EVENT_TIMEOUT: Duration = Duration::from_secs(90);

/// A request as it arrived.
#[derive(Clone, Debug, Default)]
pub struct ReceivedRequest {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub sni: Option<String>,
    /// Common name of the client certificate.
    pub client: Option<String>,
    /// Number of the connection, from 0.
    pub connection: usize,
}

impl ReceivedRequest {
    /// Returns all values of a header.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect()
    }

    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap()
    }
}

/// Behavior of the backend for a request.
pub enum Reply {
    /// Sends these bytes, then reads the next request.
    Bytes(String),
    /// Sends these bytes, then ends the connection.
    Close(String),
    /// Sends these bytes, then echoes every byte.
    Echo(String),
    /// Sends pieces as they arrive, and ends the connection when the sender is dropped.
    Pieces(mpsc::Receiver<String>),
    /// Sends these bytes, then ends the connection without a TLS alert.
    Drop(String),
    /// Sends these bytes, then stalls until the client disconnects.
    Stall(String),
    /// Stalls until the client disconnects, then drops the sender.
    Hang(mpsc::Sender<()>),
}

/// Reply with 200 and this body.
pub fn ok(body: &str) -> Reply {
    with_status("200 OK", "", body)
}

/// Reply with `Content-Length`; each of `headers` ends in CRLF.
pub fn with_status(status: &str, headers: &str, body: &str) -> Reply {
    Reply::Bytes(format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()))
}

type Script = Arc<dyn Fn(ReceivedRequest) -> Reply + Send + Sync>;

pub struct Backend {
    pub address: SocketAddr,
    pub authority: Arc<Authority>,
    seen: mpsc::UnboundedReceiver<ReceivedRequest>,
    pub connections: Arc<AtomicUsize>,
    open: watch::Receiver<usize>,
    /// Number of completed handshakes.
    handshakes: watch::Receiver<usize>,
    pub tasks: TaskSet,
}

impl Backend {
    /// Starts a backend with a certificate for [`NAME`].
    pub async fn start(script: impl Fn(ReceivedRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self::with_names(&[NAME], script).await
    }

    pub async fn with_names(
        names: &[&str],
        script: impl Fn(ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let authority = Arc::new(Authority::create("backend-ca").unwrap());
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let pair = authority.issue(&CertProfile::server("backend", &names, HOUR)).unwrap();
        Self::with_pair(authority, pair.cert_pair("backend").unwrap(), script).await
    }

    pub async fn with_pair(
        authority: Arc<Authority>,
        pair: CertPair,
        script: impl Fn(ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, tasks) = (listener.local_addr().unwrap(), TaskSet::new());
        let options = ServerTlsOptions { alpn: vec![b"http/1.1".to_vec()], ..ServerTlsOptions::default() };
        let tls = ServerTls::new(pair, &[], &options).unwrap();
        let (tx, seen) = mpsc::unbounded_channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let (opened, open) = watch::channel(0);
        let (reaching, handshakes) = watch::channel(0);
        let (opened, reaching) = (Arc::new(opened), Arc::new(reaching));
        let (script, count, set): (Script, _, _) = (Arc::new(script), connections.clone(), tasks.clone());
        tasks.spawn_until_cancelled("backend", async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                let (acceptor, script, tx) = (tls.acceptor(), script.clone(), tx.clone());
                let (opened, reaching) = (opened.clone(), reaching.clone());
                opened.send_modify(|open| *open += 1);
                set.spawn_until_cancelled("backend-connection", async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        reaching.send_modify(|reached| *reached += 1);
                        serve(stream, number, &script, &tx).await;
                    }
                    opened.send_modify(|open| *open -= 1);
                });
            }
        });
        Self { address, authority, seen, connections, open, handshakes, tasks }
    }

    /// Returns the next request that arrives.
    pub async fn next_request(&mut self) -> ReceivedRequest {
        tokio::time::timeout(EVENT_TIMEOUT, self.seen.recv()).await.expect("no request arrived").unwrap()
    }

    /// Waits for a new connection since the last call.
    pub async fn wait_connected(&mut self) {
        let waiting = tokio::time::timeout(EVENT_TIMEOUT, self.handshakes.changed());
        waiting.await.expect("no connection to the backend").unwrap();
    }

    /// Waits until no connection is open.
    pub async fn wait_disconnected(&mut self) {
        self.wait_connections(0).await;
    }

    /// Waits until this many connections are open.
    pub async fn wait_connections(&mut self, connections: usize) {
        let waiting = self.open.wait_for(|open| *open == connections);
        let left = tokio::time::timeout(EVENT_TIMEOUT, waiting).await;
        left.expect("another number of connections to the backend stays open").unwrap();
    }

    /// Returns true if a request has arrived that the test has not read.
    pub fn has_unread_request(&mut self) -> bool {
        self.seen.try_recv().is_ok()
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

async fn serve(
    mut stream: TlsStream<TcpStream>,
    number: usize,
    script: &Script,
    tx: &mpsc::UnboundedSender<ReceivedRequest>,
) {
    let session = stream.get_ref().1;
    let sni = session.server_name().map(str::to_owned);
    let client = session.peer_certificates().map(|certs| CertInfo::parse(&certs[0]).unwrap().common_name);
    let mut buffer = Vec::new();
    while let Some(mut seen) = read_request(&mut stream, &mut buffer).await {
        (seen.sni, seen.client, seen.connection) = (sni.clone(), client.clone(), number);
        let _ = tx.send(seen.clone());
        match script(seen) {
            Reply::Bytes(bytes) => {
                if stream.write_all(bytes.as_bytes()).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
            }
            Reply::Close(bytes) => {
                let _ = stream.write_all(bytes.as_bytes()).await;
                let _ = stream.shutdown().await;
                return;
            }
            Reply::Drop(bytes) => {
                let _ = stream.write_all(bytes.as_bytes()).await;
                let _ = stream.flush().await;
                return;
            }
            Reply::Stall(bytes) => {
                let _ = stream.write_all(bytes.as_bytes()).await;
                let _ = stream.flush().await;
                let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                return;
            }
            Reply::Echo(bytes) => {
                stream.write_all(bytes.as_bytes()).await.unwrap();
                let (mut read, mut write) = tokio::io::split(stream);
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
                return;
            }
            Reply::Pieces(mut pieces) => {
                while let Some(piece) = pieces.recv().await {
                    stream.write_all(piece.as_bytes()).await.unwrap();
                    stream.flush().await.unwrap();
                }
                let _ = stream.shutdown().await;
                return;
            }
            Reply::Hang(_until) => {
                let _ = stream.read(&mut [0; 64]).await;
                return;
            }
        }
    }
}

/// Reads a head, and a body by `Content-Length` or chunks (kept encoded).
async fn read_request(stream: &mut TlsStream<TcpStream>, buffer: &mut Vec<u8>) -> Option<ReceivedRequest> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        fill(stream, buffer).await?;
    };
    let head = String::from_utf8(buffer.drain(..end).collect()).unwrap();
    let mut lines = head.trim_end().split("\r\n");
    let line = lines.next().unwrap().to_owned();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let first: HashMap<&str, &str> = headers.iter().rev().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let body = if first.contains_key("expect-early") {
        Vec::new()
    } else if first.get("transfer-encoding") == Some(&"chunked") {
        while !buffer.windows(5).any(|window| window == b"0\r\n\r\n") && !ends_with_trailers(buffer) {
            fill(stream, buffer).await?;
        }
        std::mem::take(buffer)
    } else {
        let length = first.get("content-length").map_or(0, |length| length.parse().unwrap());
        while buffer.len() < length {
            fill(stream, buffer).await?;
        }
        buffer.drain(..length).collect()
    };
    Some(ReceivedRequest { line, headers, body, ..ReceivedRequest::default() })
}

fn ends_with_trailers(buffer: &[u8]) -> bool {
    buffer.windows(3).any(|window| window == b"0\r\n") && buffer.ends_with(b"\r\n\r\n")
}

async fn fill(stream: &mut TlsStream<TcpStream>, buffer: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 4096];
    let read = stream.read(&mut piece).await.ok().filter(|read| *read > 0)?;
    buffer.extend_from_slice(&piece[..read]);
    Some(())
}
