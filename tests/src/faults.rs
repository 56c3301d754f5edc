//! A server that breaks each exchange in one way, with real sockets and real TLS: what webhooks and backends do wrong.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portico_kit::tasks::TaskSet;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::pki::{Authority, Clients, Pair};

/// What is done to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is accepted, and nothing more.
    HangBeforeTls,
    /// It is reset at once.
    Reset,
    /// It is closed at once.
    Close,
    /// It speaks no TLS.
    Plain,
    /// Its certificate is of another authority.
    AnotherAuthority,
    /// Its certificate is for other names.
    OtherNames,
    /// Its certificate has expired.
    Expired,
    /// The request is read, and nothing more.
    HangAfterRequest,
    /// It is closed when the request has arrived.
    CloseAfterRequest,
    /// It is reset when the request has arrived.
    ResetAfterRequest,
    /// The head of an answer is sent, and nothing more.
    HangAfterHead,
    /// The head and some of the body are sent, and nothing more.
    HangInBody,
    /// It is closed in the middle of the body.
    CloseInBody,
    /// It is closed in the middle of a body of chunks.
    CloseInChunks,
    /// The body never ends.
    Endless,
    /// The body has a gibibyte.
    Huge,
    /// The answer is not HTTP.
    NotHttp,
    /// The answer has no body that its code allows: 304.
    NotModified,
}

/// A server with a fault. Dropping it stops it.
pub struct Faulty {
    /// Where it listens.
    pub address: SocketAddr,
    /// The authority of the certificates that are right (PEM).
    pub ca: String,
    connections: Arc<AtomicUsize>,
    tasks: TaskSet,
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const BLOCK: usize = 64 << 10;
const HUGE: usize = 1 << 30;

impl Faulty {
    /// Serves at loopback.
    pub async fn start(fault: Fault) -> Self {
        let (authority, stranger) = (Authority::new("faulty-ca"), Authority::new("stranger-ca"));
        let pair = match fault {
            Fault::AnotherAuthority => stranger.server(&["127.0.0.1"]),
            Fault::OtherNames => authority.server(&["other.example.com", "10.1.2.3"]),
            Fault::Expired => authority.expired_server(&["127.0.0.1"]),
            _ => authority.server(&["127.0.0.1"]),
        };
        Self::serve(fault, &pair, authority.pem).await
    }

    async fn serve(fault: Fault, pair: &Pair, ca: String) -> Self {
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
                    // That the other side ends it is a part of some faults.
                    let _ = connection(stream, fault, acceptor).await;
                });
            }
        });
        Self { address, ca, connections, tasks }
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

fn reset(stream: &TcpStream) {
    // A linger of nothing makes the close a reset.
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
    answer(stream, fault).await
}

async fn answer(mut stream: TlsStream<TcpStream>, fault: Fault) -> std::io::Result<()> {
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

/// Spaces in blocks: chunks without an end, or so many of them.
async fn blocks(mut stream: TlsStream<TcpStream>, rest: &str, length: Option<usize>) -> std::io::Result<()> {
    stream.write_all(format!("{HEAD}{rest}").as_bytes()).await?;
    let block = vec![b' '; BLOCK];
    let mut left = length;
    while left != Some(0) {
        if left.is_none() {
            stream.write_all(format!("{BLOCK:x}\r\n").as_bytes()).await?;
        }
        stream.write_all(&block).await?;
        match &mut left {
            Some(left) => *left -= BLOCK,
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
