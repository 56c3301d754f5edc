//! One address of a backend: its idle connections and its circuit.

use std::sync::Arc;

use http::HeaderValue;
use parking_lot::Mutex;
use portico_kit::circuit::{self, Circuit};
use portico_kit::dial;
use portico_machinery::route;
use tokio::runtime::{Handle, Id};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::http1::Http1;
use super::http2::{Http2, Http2Stream};
use super::open_connections::OpenConnections;
use crate::observation::EjectionState;
use crate::settings::Limits;
use crate::stage::Stage;

/// Maximum ejection time of an address that keeps failing, as a multiple of its first ejection.
const MAX_EJECTION: u32 = 10;

pub(crate) struct Target {
    pub(super) address: dial::Target,
    /// `host:port`, the value of `Host` and `X-Forwarded-Host`.
    pub(crate) authority: HeaderValue,
    /// Circuit, with the stage and message of the last failure.
    pub(super) circuit: Circuit<(Stage, String)>,
    /// Ejection after failed requests, open while the address is ejected; `None` without an ejection policy.
    pub(super) ejection: Option<Circuit<()>>,
    /// Open connections, idle or in use, except those that have changed the protocol.
    pub(super) open_connections: OpenConnections,
    idle: Mutex<Vec<IdleConnections>>,
    http2_connections: Mutex<Vec<Arc<Http2>>>,
    /// Allows one HTTP/2 dial at a time: other requests wait for its streams.
    pub(super) dial_permit: Semaphore,
}

/// The idle connections of one runtime. A connection's events arrive in the runtime that opened it: used from
/// another runtime, each event would wake a thread.
struct IdleConnections {
    runtime: Id,
    /// Last in, first out: the connection used last is the least likely to be closed.
    connections: Vec<Http1>,
}

impl IdleConnections {
    /// Returns the connections of this runtime, from a short list of runtimes.
    fn of_runtime(all: &mut Vec<Self>, runtime: Id) -> &mut Vec<Http1> {
        let found = all.iter().position(|idle| idle.runtime == runtime);
        let at = found.unwrap_or_else(|| {
            all.push(Self { runtime, connections: Vec::new() });
            all.len() - 1
        });
        &mut all[at].connections
    }

    /// Removes the oldest connection of the runtime with the most connections, preferably not of this one.
    fn take_oldest(all: &mut [Self], runtime: Id) -> Option<Http1> {
        let fullest = all.iter_mut().max_by_key(|idle| (idle.connections.len(), idle.runtime != runtime))?;
        (!fullest.connections.is_empty()).then(|| fullest.connections.remove(0))
    }
}

impl Target {
    /// Returns `None` if the address is not a valid header value.
    pub(super) fn new(
        target: &route::Target,
        limits: &Limits,
        ejection: Option<route::Ejection>,
    ) -> Option<Self> {
        Some(Self {
            address: dial::Target::new(target.host.clone(), target.port),
            authority: HeaderValue::try_from(target.to_string()).ok()?,
            circuit: Circuit::new(circuit::CircuitLimits {
                failures: limits.circuit_failures,
                open: limits.circuit_open,
                open_max: limits.circuit_open_max,
            }),
            ejection: ejection.map(|ejection| {
                let (open, failures) = (ejection.time, ejection.failures);
                Circuit::new(circuit::CircuitLimits { failures, open, open_max: open * MAX_EJECTION })
            }),
            open_connections: OpenConnections::default(),
            idle: Mutex::new(Vec::new()),
            http2_connections: Mutex::new(Vec::new()),
            dial_permit: Semaphore::new(1),
        })
    }

    /// Returns true if the address may get a request; an ejected address gets one probe from time to
    /// time, which can end the ejection.
    pub(super) fn is_available(&self) -> bool {
        self.ejection.as_ref().is_none_or(Circuit::allows)
    }

    /// Returns the ejection state; `None` without an ejection policy.
    pub(super) fn ejection_state(&self) -> Option<EjectionState> {
        let ejection = self.ejection.as_ref()?;
        Some(EjectionState {
            is_ejected: ejection.is_open(),
            failures: ejection.failures(),
            since_ms: ejection.last().map(|outcome| outcome.since_ms),
            probe_at_ms: ejection.probe_at_ms(),
        })
    }

    /// Records the outcome of a request; returns true if the address is ejected from now on.
    pub(super) fn record_outcome(&self, succeeded: bool) -> bool {
        let Some(ejection) = &self.ejection else { return false };
        if succeeded {
            if ejection.is_open() {
                tracing::info!(address = %self.address, "backend address restored after its ejection");
            }
            // Written only if it changes the state.
            if ejection.failures() > 0 {
                ejection.record_success();
            }
            return false;
        }
        let was_out = ejection.is_open();
        ejection.record_failure(());
        !was_out && ejection.is_open()
    }

    /// Returns an idle connection of this runtime and generation. Only its use shows whether it is still open.
    pub(super) fn take(&self, generation: u64) -> Option<Http1> {
        let runtime = Handle::current().id();
        loop {
            let connection = IdleConnections::of_runtime(&mut self.idle.lock(), runtime).pop()?;
            if connection.generation == generation && !connection.is_closed() {
                return Some(connection);
            }
        }
    }

    /// Puts a connection back into the pool. If more than `max` are then idle, one of them is closed.
    pub(super) fn put_back(&self, mut connection: Http1, max: usize) {
        connection.idle_since = Instant::now();
        let runtime = connection.runtime;
        let mut all = self.idle.lock();
        IdleConnections::of_runtime(&mut all, runtime).push(connection);
        let idle: usize = all.iter().map(|idle| idle.connections.len()).sum();
        let surplus = if idle > max { IdleConnections::take_oldest(&mut all, runtime) } else { None };
        // The connection is closed after the lock is released.
        drop(all);
        drop(surplus);
    }

    /// Returns a stream on a connection with fewer than `max_streams`.
    pub(super) fn join(&self, generation: u64, max_streams: usize) -> Option<Http2Stream> {
        let mut shared = self.http2_connections.lock();
        shared.retain(|connection| !connection.is_closed() && connection.generation == generation);
        shared.iter().find_map(|connection| connection.join(max_streams))
    }

    pub(super) fn add_http2(&self, connection: Arc<Http2>) {
        self.http2_connections.lock().push(connection);
    }

    /// Closes connections that are dead, of an old generation, or idle since before `oldest`; returns the number of remaining
    /// idle ones.
    pub(super) fn sweep(&self, generation: u64, oldest: Option<Instant>, rest: bool) -> usize {
        // Taken out for the check, so that no request waits for it; connections that requests put back during the check are kept.
        let all = std::mem::take(&mut *self.idle.lock());
        let keep = |connection: &Http1| {
            let young = oldest.is_none_or(|oldest| connection.idle_since >= oldest);
            young && connection.generation == generation && !connection.is_closed()
        };
        let mut remaining = 0;
        for IdleConnections { runtime, mut connections } in all {
            connections.retain(keep);
            remaining += connections.len();
            let mut all = self.idle.lock();
            let idle = IdleConnections::of_runtime(&mut all, runtime);
            // The old ones first: they are taken last.
            let fresh = std::mem::replace(idle, connections);
            idle.extend(fresh);
        }
        self.http2_connections.lock().retain(|connection| {
            !connection.is_closed() && connection.generation == generation && !(rest && connection.is_idle())
        });
        remaining
    }
}
