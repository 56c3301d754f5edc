//! Accept loop and handshake. One task per connection performs the handshake and then runs the handler.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::conn::{AcceptedConnection, ConnectionPermit, PeerInfo, TlsIo};
use super::{EvictionCallback, ListenerMetrics, ListenerOptions, TlsListener, set_keepalive};
use crate::backoff::{Backoff, BackoffPolicy};
use crate::dial::{client_handshake_reason, io_reason};
use crate::drain::Watch;
use crate::tasks::TaskSet;
use crate::tls::ServerTls;

/// Interval at which another connection is closed while a connection waits for a permit.
const EVICTION_INTERVAL: Duration = Duration::from_millis(100);

/// File descriptor reserved for the case that the process has no other: with it, a connection is accepted and closed,
/// so that its client sees an end instead of waiting in the backlog.
struct ReserveDescriptor(Option<std::fs::File>);

impl ReserveDescriptor {
    fn new() -> Self {
        Self(std::fs::File::open("/dev/null").ok())
    }

    /// Accepts and closes waiting connections, until none is left or another descriptor is available.
    async fn reject_waiting(&mut self, listener: &tokio::net::TcpListener) {
        while self.0.take().is_some() {
            // Accepts only a connection that is already waiting.
            let waiting = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
            let closed = matches!(waiting, Ok(Ok(_)));
            drop(waiting);
            *self = Self::new();
            if !closed {
                return;
            }
        }
    }
}

/// True if the process or the system has no descriptor left.
fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}

const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

/// State shared by the tasks of one listener.
struct SharedState<H> {
    tls: ServerTls,
    options: ListenerOptions,
    metrics: ListenerMetrics,
    handler: H,
}

impl TlsListener {
    /// Accepts connections until `drain` is signaled or `tasks` is cancelled, then closes the socket and returns. Open
    /// connections continue in their tasks (named as the listener). `handler` runs in the task of the connection.
    pub async fn serve<H, Fut>(self, tasks: TaskSet, mut drain: Watch, handler: H)
    where
        H: Fn(AcceptedConnection) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let permits = Arc::new(Semaphore::new(self.options.max_connections.max(1)));
        let listener = self.listener;
        let shared =
            Arc::new(SharedState { tls: self.tls, options: self.options, metrics: self.metrics, handler });
        let (mut errors, mut reserve) = (Backoff::new(BackoffPolicy::ACCEPT), ReserveDescriptor::new());
        let stop = tasks.token();
        loop {
            let next = async {
                let (stream, addr) = listener.accept().await?;
                let permit = shared.acquire_permit(&permits).await?;
                Ok::<_, io::Error>((permit, stream, addr))
            };
            let accepted = tokio::select! {
                biased;
                () = drain.signaled() => break,
                () = stop.cancelled() => break,
                accepted = next => accepted,
            };
            match accepted {
                Ok((permit, stream, addr)) => {
                    errors.reset();
                    shared.metrics.connections.inc();
                    let connection_permit =
                        ConnectionPermit { _permit: permit, connections: shared.metrics.connections.clone() };
                    shared.clone().spawn_connection(&tasks, stream, addr, connection_permit);
                }
                Err(error) => {
                    let reason = io_reason(&error);
                    tracing::warn!(
                        listener = shared.options.name,
                        error = reason,
                        "cannot accept a connection"
                    );
                    if is_exhausted(&error) {
                        reserve.reject_waiting(&listener).await;
                    }
                    tokio::time::sleep(errors.next_wait()).await;
                }
            }
        }
        tracing::debug!(listener = shared.options.name, "stopped listening");
    }
}

impl<H, Fut> SharedState<H>
where
    H: Fn(AcceptedConnection) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    /// Waits for a permit for a connection.
    async fn acquire_permit(&self, permits: &Arc<Semaphore>) -> io::Result<OwnedSemaphorePermit> {
        if let Ok(place) = permits.clone().try_acquire_owned() {
            return Ok(place);
        }
        let mut retries = tokio::time::interval(EVICTION_INTERVAL);
        let make_room = async {
            loop {
                retries.tick().await;
                if let Some(EvictionCallback(close)) = &self.options.eviction_callback {
                    close();
                }
            }
        };
        tokio::select! {
            place = permits.clone().acquire_owned() => place.map_err(io::Error::other),
            never = make_room => never,
        }
    }

    /// Spawns the task of a connection, on a serving thread if there are any.
    fn spawn_connection(
        self: Arc<Self>,
        tasks: &TaskSet,
        stream: TcpStream,
        addr: SocketAddr,
        permit: ConnectionPermit,
    ) {
        let name = self.options.name;
        let Some(runtimes) = self.options.runtimes.clone() else {
            return tasks.spawn(name, async move { self.serve_connection(stream, addr, permit).await });
        };
        match stream.into_std() {
            // The runtime of the serving thread must receive the socket's events.
            Ok(stream) => tasks.spawn_on(runtimes.next(), name, async move {
                match TcpStream::from_std(stream) {
                    Ok(stream) => self.serve_connection(stream, addr, permit).await,
                    Err(error) => self.report_handshake_error(addr, &client_handshake_reason(&error)),
                }
            }),
            Err(error) => self.report_handshake_error(addr, &client_handshake_reason(&error)),
        }
    }

    async fn serve_connection(&self, stream: TcpStream, addr: SocketAddr, permit: ConnectionPermit) {
        match tokio::time::timeout(self.options.handshake_timeout, self.handshake(stream, addr, permit)).await
        {
            Ok(Ok(accepted)) => (self.handler)(accepted).await,
            Ok(Err(error)) => self.report_handshake_error(addr, &client_handshake_reason(&error)),
            Err(_) => self.report_handshake_error(addr, "timeout"),
        }
    }

    fn report_handshake_error(&self, peer: SocketAddr, reason: &str) {
        self.metrics.handshake_errors.inc();
        tracing::debug!(listener = self.options.name, %peer, error = reason, "TLS handshake failed");
    }

    async fn handshake(
        &self,
        stream: TcpStream,
        addr: SocketAddr,
        permit: ConnectionPermit,
    ) -> io::Result<AcceptedConnection> {
        stream.set_nodelay(true)?;
        set_keepalive(&stream, self.options.keepalive)?;
        let local_addr = stream.local_addr()?;
        let stream = Box::new(self.tls.acceptor().accept(stream).await?);
        let (_, session) = stream.get_ref();
        let peer = Arc::new(PeerInfo {
            addr,
            local_addr,
            cert_chain: session.peer_certificates().map(Arc::from),
            alpn: session.alpn_protocol().map(Arc::from),
            server_name: session.server_name().map(Arc::from),
        });
        let io = TlsIo { stream, peer: peer.clone(), _permit: permit };
        Ok(AcceptedConnection { io, peer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn waiting_connections_are_closed_when_no_descriptor_is_left() {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting =
            [TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap()];
        let mut reserve = ReserveDescriptor::new();
        reserve.reject_waiting(&listener).await;
        for client in &mut waiting {
            assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
        }
        assert!(reserve.0.is_some(), "the reserve is reopened");
        assert!(is_exhausted(&io::Error::from_raw_os_error(EMFILE)));
    }
}
