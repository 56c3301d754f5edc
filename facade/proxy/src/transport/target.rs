//! One address of a backend: its idle connections and its circuit.

use std::sync::Arc;

use http::HeaderValue;
use parking_lot::Mutex;
use portico_kit::dial;
use portico_machinery::route;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::circuit::Circuit;
use super::http1::Http1;
use super::http2::{Http2, Stream};
use crate::settings::Limits;

pub(crate) struct Target {
    pub(super) address: dial::Target,
    /// `host:port`, as `Host` and `X-Forwarded-Host` say it.
    pub(crate) authority: HeaderValue,
    pub(super) circuit: Circuit,
    /// Last in, first out: what was used last is the least likely to have been closed.
    #[expect(clippy::vec_box, reason = "a connection is moved between here and its requests as a pointer")]
    idle: Mutex<Vec<Box<Http1>>>,
    shared: Mutex<Vec<Arc<Http2>>>,
    /// One HTTP/2 dial at a time: the others wait for its streams.
    pub(super) opening: Semaphore,
}

impl Target {
    /// Nothing when the address cannot stand in a header.
    pub(super) fn new(target: &route::Target, limits: &Limits) -> Option<Self> {
        Some(Self {
            address: dial::Target::new(target.host.clone(), target.port),
            authority: HeaderValue::try_from(target.to_string()).ok()?,
            circuit: Circuit::new(limits.circuit_failures, limits.circuit_open, limits.circuit_open_max),
            idle: Mutex::new(Vec::new()),
            shared: Mutex::new(Vec::new()),
            opening: Semaphore::new(1),
        })
    }

    /// An idle connection that was opened under this generation. Whether it still lives, sending will tell.
    pub(super) fn take(&self, generation: u64) -> Option<Box<Http1>> {
        loop {
            let connection = self.idle.lock().pop()?;
            if connection.generation == generation {
                return Some(connection);
            }
        }
    }

    /// Back into the pool, or closed when there are `max` already.
    pub(super) fn put(&self, mut connection: Box<Http1>, max: usize) {
        connection.idle_since = Instant::now();
        let mut idle = self.idle.lock();
        if idle.len() < max {
            idle.push(connection);
        } else {
            drop(idle);
            drop(connection);
        }
    }

    /// A stream on a connection that has room.
    pub(super) fn join(&self, generation: u64, max_streams: usize) -> Option<Stream> {
        let mut shared = self.shared.lock();
        shared.retain(|connection| !connection.is_closed() && connection.generation == generation);
        shared.iter().find_map(|connection| connection.join(max_streams))
    }

    pub(super) fn share(&self, connection: Arc<Http2>) {
        self.shared.lock().push(connection);
    }

    /// Closes what is dead, old, or idle since before `oldest`; tells how many idle connections are left.
    pub(super) fn sweep(&self, generation: u64, oldest: Option<Instant>, rest: bool) -> usize {
        // Taken out for the check, so that no request waits for it; a connection that a request puts back
        // meanwhile stays.
        let all = std::mem::take(&mut *self.idle.lock());
        let keep: Vec<Box<Http1>> = all
            .into_iter()
            .filter_map(|mut connection| {
                let young = oldest.is_none_or(|oldest| connection.idle_since >= oldest);
                (young && connection.generation == generation && connection.is_quiet()).then_some(connection)
            })
            .collect();
        self.shared.lock().retain(|connection| {
            !connection.is_closed() && connection.generation == generation && !(rest && connection.is_idle())
        });
        let mut idle = self.idle.lock();
        let fresh = std::mem::replace(&mut *idle, keep);
        idle.extend(fresh);
        idle.len()
    }
}
