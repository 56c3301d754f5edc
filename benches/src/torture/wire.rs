//! A connection between two processes, over TCP or a Unix socket, that can be cut, delayed, and stalled.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portico_kit::tasks::TaskSet;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;

use crate::Failure;

/// Behavior of a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mode {
    /// Delay of each chunk.
    pub(crate) delay: Duration,
    /// True if no byte is forwarded, and no connection is closed.
    pub(crate) is_stalled: bool,
    /// Generation of connections; those of earlier generations are cut.
    pub(crate) generation: u64,
}

/// Targets of a wire; each connection uses the next one.
#[derive(Clone)]
enum Target {
    Tcp(Vec<SocketAddr>),
    Unix(PathBuf),
}

/// A wire; it is cut when this is dropped.
pub(crate) struct Wire {
    mode: watch::Sender<Mode>,
    tasks: TaskSet,
}

/// Stream of either kind.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Wire {
    /// Listens on loopback, and forwards to these targets in turn.
    pub(crate) async fn tcp(targets: Vec<SocketAddr>) -> Result<(Self, SocketAddr), Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let wire = Self::new();
        let carrier = wire.carrier(Target::Tcp(targets));
        wire.tasks.spawn_until_cancelled("wire", async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Nagle's algorithm would add a delay that is not injected.
                let _ = stream.set_nodelay(true);
                carrier.on_accept(stream);
            }
        });
        Ok((wire, address))
    }

    /// Listens on a Unix socket, and forwards to another one.
    pub(crate) fn unix(socket: &Path, target: PathBuf) -> Result<Self, Failure> {
        let listener = UnixListener::bind(socket)?;
        let wire = Self::new();
        let carrier = wire.carrier(Target::Unix(target));
        wire.tasks.spawn_until_cancelled("wire", async move {
            while let Ok((stream, _)) = listener.accept().await {
                carrier.on_accept(stream);
            }
        });
        Ok(wire)
    }

    fn new() -> Self {
        Self { mode: watch::Sender::default(), tasks: TaskSet::new() }
    }

    fn carrier(&self, target: Target) -> Forwarder {
        Forwarder { target, next: Arc::default(), mode: self.mode.subscribe(), tasks: self.tasks.clone() }
    }

    /// Cuts every connection; new ones are accepted.
    pub(crate) fn cut(&self) {
        self.mode.send_modify(|mode| mode.generation += 1);
    }

    /// Sets delay and stalling from now on.
    pub(crate) fn set_mode(&self, delay: Duration, swallows: bool) {
        self.mode.send_modify(|mode| (mode.delay, mode.is_stalled) = (delay, swallows));
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

/// State shared by the connections of a wire.
#[derive(Clone)]
struct Forwarder {
    target: Target,
    next: Arc<AtomicUsize>,
    mode: watch::Receiver<Mode>,
    tasks: TaskSet,
}

impl Forwarder {
    fn on_accept(&self, stream: impl Stream + 'static) {
        let carrier = self.clone();
        self.tasks.spawn_until_cancelled("wire-connection", async move {
            let generation = carrier.mode.borrow().generation;
            // An unreachable target is visible as a connection that ends.
            let Ok(target) = carrier.dial().await else { return };
            let (from, to) = (tokio::io::split(stream), tokio::io::split(target));
            let mut mode = carrier.mode.clone();
            tokio::select! {
                _ = mode.wait_for(|mode| mode.generation != generation) => {}
                () = forward(from.0, to.1, carrier.mode.clone()) => {}
                () = forward(to.0, from.1, carrier.mode.clone()) => {}
            }
        });
    }

    async fn dial(&self) -> std::io::Result<Box<dyn Stream>> {
        match &self.target {
            Target::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
            Target::Tcp(targets) => {
                let first = self.next.fetch_add(1, Ordering::Relaxed);
                let mut outcome = Err(std::io::ErrorKind::AddrNotAvailable.into());
                for at in 0..targets.len() {
                    match TcpStream::connect(targets[(first + at) % targets.len()]).await {
                        Ok(stream) => {
                            let _ = stream.set_nodelay(true);
                            return Ok(Box::new(stream));
                        }
                        Err(error) => outcome = Err(error),
                    }
                }
                outcome
            }
        }
    }
}

/// Forwards one direction until its end.
async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut mode: watch::Receiver<Mode>,
) {
    let mut piece = vec![0; 16 << 10];
    loop {
        // An error is handled as the end: the other side gets a closed connection.
        let Ok(read @ 1..) = from.read(&mut piece).await else { return };
        let Ok(delay) = mode.wait_for(|mode| !mode.is_stalled).await.map(|mode| mode.delay) else { return };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if to.write_all(&piece[..read]).await.is_err() {
            return;
        }
    }
}
