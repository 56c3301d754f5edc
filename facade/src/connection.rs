//! A client connection as seen by its requests, and its limits.

mod activity;
mod exchange;
mod limits;
mod open_connections;

pub use activity::{ActiveRequestGuard, Activity, Verdict};
pub use exchange::{Exchange, scope};
pub use limits::ConnectionLimits;
pub use open_connections::OpenConnections;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use http::Response;
use http::header::{CONNECTION, HeaderValue};
use portico_auth::PeerChain;
use portico_kit::listener::PeerInfo;
use portico_machinery::UserInfo;
use portico_proxy::{ClientAddress, Identity};
use tokio::sync::Notify;

/// Parts of the console page that one anonymous HTTP/2 connection can load.
///
/// Limit (Console): GOAWAY, as after any other response to an anonymous caller.
const MAX_PAGE_PARTS: usize = 100;

/// Extension of a response that is not sent: the stream is reset, or the HTTP/1 connection closed, instead.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection closes without a response")]
pub struct NoResponse;

/// Connection of a request, as seen by layers and handlers.
#[derive(Debug)]
pub struct Connection {
    /// The client's address.
    pub peer: SocketAddr,
    /// Address of the client in the form that is sent to backends.
    pub client: ClientAddress,
    /// Certificates that the client presented, whose key it holds; they are not verified.
    pub peer_certificates: Option<PeerChain>,
    /// Requests in progress.
    pub activity: Arc<Activity>,
    /// The HTTP/1 response in progress; in HTTP/2 each stream has its own exchange.
    own_exchange: Arc<Exchange>,
    /// User of the first proxied request of the connection, and the user's identity headers for backends.
    identity: OnceLock<(Arc<UserInfo>, Arc<Identity>)>,
    go_away: Notify,
    /// True if a request of the connection was authenticated as a user other than anonymous.
    is_authenticated: AtomicBool,
    /// True if the connection must be closed to make room for a new one.
    is_closing: AtomicBool,
    close: Notify,
    /// Number of parts of the console page sent to anonymous callers.
    page_parts: AtomicUsize,
}

impl Connection {
    /// Creates the state of an accepted connection.
    #[must_use]
    pub fn new(peer: &PeerInfo) -> Self {
        let peer_certificates = peer.cert_chain.as_ref().and_then(|chain| PeerChain::new(chain));
        Self { peer_certificates, ..Self::plain(peer.addr) }
    }

    /// Creates the state of a connection without client certificates.
    #[must_use]
    pub fn plain(peer: SocketAddr) -> Self {
        Self {
            peer,
            client: peer.ip().into(),
            peer_certificates: None,
            activity: Arc::default(),
            own_exchange: Arc::new(Exchange::for_connection()),
            identity: OnceLock::new(),
            go_away: Notify::new(),
            is_authenticated: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            close: Notify::new(),
            page_parts: AtomicUsize::new(0),
        }
    }

    /// Returns the identity headers of a user for backends. Most connections have one user, whose headers are built once.
    #[must_use]
    pub fn identity(&self, user: &Arc<UserInfo>) -> Arc<Identity> {
        let make = || Arc::new(Identity::new(user));
        let (first, identity) = self.identity.get_or_init(|| (user.clone(), make()));
        // `Arc`s are compared as pointers first: a user authenticated by certificate is the same `Arc` for each request.
        if first == user { identity.clone() } else { make() }
    }

    /// Returns the HTTP/1 exchange.
    #[must_use]
    pub fn own_exchange(&self) -> &Arc<Exchange> {
        &self.own_exchange
    }

    /// Returns the exchange of the request in whose task this is called.
    #[must_use]
    pub fn exchange(&self) -> Arc<Exchange> {
        exchange::current().unwrap_or_else(|| self.own_exchange.clone())
    }

    /// Resolves at the next [`Connection::go_away`].
    pub async fn wait_for_go_away(&self) {
        self.go_away.notified().await;
    }

    /// Refuses further requests on this connection with GOAWAY.
    pub fn go_away(&self) {
        self.go_away.notify_one();
    }

    /// Records that a request of this connection was authenticated as a user other than anonymous.
    pub fn set_authenticated(&self) {
        self.is_authenticated.store(true, Ordering::Relaxed);
    }

    /// True if a request of this connection was authenticated as a user other than anonymous.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Relaxed)
    }

    /// True if no request is in progress and the connection is not about to be closed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.activity.is_busy() && !self.is_closing()
    }

    /// Closes the connection, unless a request starts first.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        self.close.notify_one();
    }

    /// True from [`Connection::close`] until the connection ends.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Confirms a [`Connection::close`]. Returns false and keeps the connection open if a request has started since.
    #[must_use]
    pub fn confirm_close(&self) -> bool {
        let is_idle = !self.activity.is_busy();
        self.is_closing.store(is_idle, Ordering::Relaxed);
        is_idle
    }

    /// Resolves at [`Connection::close`].
    pub async fn wait_for_close(&self) {
        self.close.notified().await;
    }

    /// Counts one more part of the console page for an anonymous caller. Returns true if the part may be sent without ending the
    /// connection: a browser must load all parts.
    #[must_use]
    pub fn allows_page_part(&self) -> bool {
        self.page_parts.fetch_add(1, Ordering::Relaxed) < MAX_PAGE_PARTS
    }

    /// Ends the connection after this response, with GOAWAY or `Connection: close`.
    pub fn close_after<B>(&self, http2: bool, response: &mut Response<B>) {
        if http2 {
            self.go_away();
        } else {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}
