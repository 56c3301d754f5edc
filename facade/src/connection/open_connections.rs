//! The open connections. An idle connection is closed to make room for a new one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::Connection;

/// The open connections of a listener. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct OpenConnections {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next: AtomicU64,
    open: Mutex<HashMap<u64, Arc<Connection>>>,
}

/// Registration of an open connection; dropping it removes the connection.
pub struct OpenConnection {
    connections: OpenConnections,
    id: u64,
}

impl OpenConnections {
    /// Adds a connection.
    #[must_use]
    pub fn add(&self, connection: &Arc<Connection>) -> OpenConnection {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        self.inner.open.lock().insert(id, Arc::clone(connection));
        OpenConnection { connections: self.clone(), id }
    }

    /// Closes the connection that has been idle for longest, preferably one of an unauthenticated client. A connection of an
    /// authenticated client is not closed while connections in their handshake or about to be closed take some of the `capacity`.
    pub fn close_idle(&self, capacity: usize) {
        let open = self.inner.open.lock();
        let includes_authenticated =
            open.len() >= capacity && !open.values().any(|connection| connection.is_closing());
        let idle = open.values().filter(|connection| {
            connection.is_idle() && (includes_authenticated || !connection.is_authenticated())
        });
        if let Some(longest) =
            idle.min_by_key(|connection| (connection.is_authenticated(), connection.activity.idle_since()))
        {
            longest.close();
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.inner.open.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_on_which_a_request_begins_is_not_closed() {
        let connection = Arc::new(Connection::plain(([127, 0, 0, 1], 1).into()));
        let connections = OpenConnections::default();
        let _open = connections.add(&connection);
        connections.close_idle(1);
        let request = connection.activity.start_request();
        assert!(!connection.confirm_close() && !connection.is_closing());
        drop(request);
        connections.close_idle(1);
        assert!(connection.confirm_close() && connection.is_closing());
    }

    #[test]
    fn the_longest_idle_connection_of_an_unknown_client_is_closing_first() {
        let connections = OpenConnections::default();
        let opened = ["known", "busy", "old", "new"].map(|name| {
            let connection = Arc::new(Connection::plain(([127, 0, 0, 1], 1).into()));
            (name, connections.add(&connection), connection)
        });
        let closed = || {
            let closed = opened.iter().filter(|(.., connection)| connection.is_closing());
            closed.map(|(name, ..)| *name).collect::<Vec<_>>()
        };
        let [known, busy, ..] = &opened;
        known.2.set_authenticated();
        let under_way = busy.2.activity.start_request();
        for expected in [&["old"][..], &["old", "new"], &["old", "new"]] {
            connections.close_idle(4);
            assert_eq!(closed(), expected, "a known one stays while others are being closed");
        }
        let [known, busy, old, new] = opened;
        drop((old, new));
        connections.close_idle(3);
        assert!(!known.2.is_closing(), "a known one stays while another is in its handshake");
        connections.close_idle(2);
        assert!(known.2.is_closing() && !busy.2.is_closing(), "a busy one stays");
        drop((known.1, under_way));
        connections.close_idle(1);
        assert!(busy.2.is_closing());
        drop(busy);
        assert!(connections.inner.open.lock().is_empty());
    }
}
