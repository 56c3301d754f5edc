//! A client's connection, as requests that come over it know it, and its limits.

mod activity;
mod exchange;
mod limits;
mod open_connections;

pub use activity::{ActiveRequestGuard, Activity, Verdict};
pub use exchange::{Exchange, in_task};
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

/// Of a response: its client does not see it. The stream is reset, or the HTTP/1 connection closed, in its place.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection closes without a response")]
pub struct Unanswered;

/// What layers and handlers may know about the connection of a request.
#[derive(Debug)]
pub struct Connection {
    /// The client's address.
    pub peer: SocketAddr,
    /// The same, as backends read it.
    pub client: ClientAddress,
    /// The certificates that the client presented and holds the key of; nothing is known about their worth.
    pub chain: Option<PeerChain>,
    /// What is going on.
    pub activity: Arc<Activity>,
    /// The response under way in HTTP/1; in HTTP/2 each stream has its own.
    own_exchange: Arc<Exchange>,
    /// The user of the connection's first proxied request, and as whom backends know them.
    identity: OnceLock<(Arc<UserInfo>, Arc<Identity>)>,
    go_away: Notify,
    /// A request over it was authenticated.
    is_known: AtomicBool,
    /// True if the connection must be closed to make room for a new one.
    is_closing: AtomicBool,
    close: Notify,
    /// How much of the console's page was sent to somebody unknown.
    page_parts: AtomicUsize,
}

impl Connection {
    /// Of an accepted connection.
    #[must_use]
    pub fn new(peer: &PeerInfo) -> Self {
        let chain = peer.chain.as_ref().and_then(|chain| PeerChain::new(chain));
        Self { chain, ..Self::plain(peer.addr) }
    }

    /// A connection without certificates.
    #[must_use]
    pub fn plain(peer: SocketAddr) -> Self {
        Self {
            peer,
            client: peer.ip().into(),
            chain: None,
            activity: Arc::default(),
            own_exchange: Arc::new(Exchange::of_connection()),
            identity: OnceLock::new(),
            go_away: Notify::new(),
            is_known: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            close: Notify::new(),
            page_parts: AtomicUsize::new(0),
        }
    }

    /// A user as backends know them. Of most connections all requests are one user's: theirs are made once.
    #[must_use]
    pub fn identity(&self, user: &Arc<UserInfo>) -> Arc<Identity> {
        let make = || Arc::new(Identity::new(user));
        let (first, identity) = self.identity.get_or_init(|| (user.clone(), make()));
        // Compared as pointers first: a user known by a certificate is the same one each time.
        if first == user { identity.clone() } else { make() }
    }

    /// The response under way in HTTP/1.
    #[must_use]
    pub fn own_exchange(&self) -> &Arc<Exchange> {
        &self.own_exchange
    }

    /// The response under way of the request in whose task this is called.
    #[must_use]
    pub fn exchange(&self) -> Arc<Exchange> {
        exchange::of_task().unwrap_or_else(|| self.own_exchange.clone())
    }

    /// Resolves at the next [`Connection::go_away`].
    pub async fn asked_to_go_away(&self) {
        self.go_away.notified().await;
    }

    /// No further requests on this connection: GOAWAY.
    pub fn go_away(&self) {
        self.go_away.notify_one();
    }

    /// A request over this connection was authenticated as other than anonymous.
    pub fn set_known(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    /// True if a request over this connection was authenticated.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// True if no request is under way and the connection is not about to be closed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.activity.is_busy() && !self.is_closing()
    }

    /// Closes the connection, unless a request begins first.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        self.close.notify_one();
    }

    /// True after [`Connection::close`] until the connection has ended.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Confirms a [`Connection::close`]. Returns false and keeps the connection open if a request has begun since.
    #[must_use]
    pub fn confirm_close(&self) -> bool {
        let is_idle = !self.activity.is_busy();
        self.is_closing.store(is_idle, Ordering::Relaxed);
        is_idle
    }

    /// Resolves at [`Connection::close`].
    pub async fn closed(&self) {
        self.close.notified().await;
    }

    /// Counts one more part of the console's page for somebody unknown. Whether it may be sent without ending the connection, as a browser
    /// must have them all.
    #[must_use]
    pub fn takes_page_part(&self) -> bool {
        self.page_parts.fetch_add(1, Ordering::Relaxed) < MAX_PAGE_PARTS
    }

    /// The connection ends after this response: by GOAWAY, or by `Connection: close`.
    pub fn close_after<B>(&self, http2: bool, response: &mut Response<B>) {
        if http2 {
            self.go_away();
        } else {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}
