//! A server that breaks each exchange in one way, with real sockets and real TLS: faults of webhooks and backends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portico_kit::tasks::TaskSet;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::pki::{Authority, CertPair, Clients};

/// Fault of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Accepts the connection, and sends nothing.
    HangBeforeTls,
    /// Resets the connection at once.
    Reset,
    /// Closes the connection at once.
    Close,
    /// Does not use TLS.
    Plain,
    /// Presents a certificate of another authority.
    AnotherAuthority,
    /// Presents a certificate for other names.
    OtherNames,
    /// Presents an expired certificate.
    Expired,
    /// Reads the request, and sends nothing.
    HangAfterRequest,
    /// Closes the connection when the request has arrived.
    CloseAfterRequest,
    /// Resets the connection when the request has arrived.
    ResetAfterRequest,
    /// Sends the head of a response, and nothing more.
    HangAfterHead,
    /// Sends the head and a part of the body, and nothing more.
    HangInBody,
    /// Closes the connection in the middle of the body.
    CloseInBody,
    /// Closes the connection in the middle of a chunked body.
    CloseInChunks,
    /// Sends an endless body.
    Endless,
    /// Sends a body of a gibibyte.
    Huge,
    /// Sends a response that is not HTTP.
    NotHttp,
    /// Sends a response whose code allows no body: 304.
    NotModified,
}

/// A server with a fault. Dropping it stops it.
pub struct FaultyServer {
    /// Address on which it listens.
    pub address: SocketAddr,
    /// Authority of the valid certificates (PEM).
    pub ca: String,
    connections: Arc<AtomicUsize>,
    tasks: TaskSet,
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const BLOCK: usize = 64 << 10;
const HUGE: usize = 1 << 30;

impl FaultyServer {
    /// Starts a server on loopback.
    pub async fn start(fault: Fault) -> Self {
        let (authority, other_authority) = (Authority::new("faulty-ca"), Authority::new("stranger-ca"));
        let pair = match fault {
            Fault::AnotherAuthority => other_authority.server(&["127.0.0.1"]),
            Fault::OtherNames => authority.server(&["other.example.com", "10.1.2.3"]),
            Fault::Expired => authority.expired_server(&["127.0.0.1"]),
            _ => authority.server(&["127.0.0.1"]),
        };
        Self::serve(fault, &pair, authority.pem).await
    }

    async fn serve(fault: Fault, pair: &CertPair, ca: String) -> Self {
        let acceptor = pair.acceptor(Clients::Any);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (address, tasks) = (listener.local_addr().unwrap(), TaskSet::new());
        let connections = Arc::new(AtomicUsize::new(0));
        let (set, count) = (tasks.clone(), Arc::clone(&connections));
        tasks.spawn_until_cancelled("faulty", async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let acceptor = acceptor.clone();
                set.spawn_until_cancelled("faulty-connection", async move {
                    // Errors are expected: some faults make the client end the connection.
                    let _ = connection(stream, fault, acceptor).await;
                });
            }
        });
        Self { address, ca, connections, tasks }
    }

    /// Returns the number of accepted connections.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for FaultyServer {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

fn reset(stream: &TcpStream) {
    // A linger of zero makes the close a reset.
    let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

async fn connection(mut stream: TcpStream, fault: Fault, acceptor: TlsAcceptor) -> std::io::Result<()> {
    match fault {
        Fault::HangBeforeTls => return std::future::pending().await,
        Fault::Reset => {
            reset(&stream);
            return Ok(());
        }
        Fault::Close => return Ok(()),
        Fault::Plain => {
            stream.read_u8().await?;
            return stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
        _ => {}
    }
    let mut stream = acceptor.accept(stream).await?;
    read_request(&mut stream).await?;
    respond(stream, fault).await
}

async fn respond(mut stream: TlsStream<TcpStream>, fault: Fault) -> std::io::Result<()> {
    let (rest, hangs) = match fault {
        Fault::HangAfterRequest => ("", true),
        Fault::ResetAfterRequest => {
            reset(stream.get_ref().0);
            return Ok(());
        }
        Fault::HangAfterHead => ("Content-Length: 100\r\n\r\n", true),
        Fault::HangInBody => ("Content-Length: 100\r\n\r\n{\"a\":", true),
        Fault::CloseInBody => ("Content-Length: 100\r\n\r\n{\"a\":", false),
        Fault::CloseInChunks => ("Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n", false),
        Fault::Endless => return blocks(stream, "Transfer-Encoding: chunked\r\n\r\n", None).await,
        Fault::Huge => return blocks(stream, &format!("Content-Length: {HUGE}\r\n\r\n"), Some(HUGE)).await,
        Fault::NotHttp => return stream.write_all(b"hello there\r\n\r\n").await,
        Fault::NotModified => return stream.write_all(b"HTTP/1.1 304 Not Modified\r\n\r\n").await,
        _ => return Ok(()),
    };
    if !rest.is_empty() {
        stream.write_all(format!("{HEAD}{rest}").as_bytes()).await?;
        stream.flush().await?;
    }
    if hangs { std::future::pending().await } else { Ok(()) }
}

/// Sends spaces in blocks: endless chunks, or a body of this length.
async fn blocks(mut stream: TlsStream<TcpStream>, rest: &str, length: Option<usize>) -> std::io::Result<()> {
    stream.write_all(format!("{HEAD}{rest}").as_bytes()).await?;
    let block = vec![b' '; BLOCK];
    let mut remaining = length;
    while remaining != Some(0) {
        if remaining.is_none() {
            stream.write_all(format!("{BLOCK:x}\r\n").as_bytes()).await?;
        }
        stream.write_all(&block).await?;
        match &mut remaining {
            Some(remaining) => *remaining -= BLOCK,
            None => stream.write_all(b"\r\n").await?,
        }
    }
    Ok(())
}

async fn read_request(stream: &mut TlsStream<TcpStream>) -> std::io::Result<()> {
    let mut request = Vec::new();
    let (mut end, mut length) = (usize::MAX, 0);
    while request.len() < end.saturating_add(length) {
        if stream.read_buf(&mut request).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(at) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&request[..at]).to_ascii_lowercase();
            let field = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            (end, length) = (at + 4, field.and_then(|value| value.trim().parse().ok()).unwrap_or(0));
        }
    }
    Ok(())
}
