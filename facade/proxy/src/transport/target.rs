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
use super::http2::{Http2, Stream};
use super::open_connections::OpenConnections;
use crate::observation::EjectionState;
use crate::settings::Limits;
use crate::stage::Stage;

/// An address that goes on failing is left out for at most so many times the time of its first ejection.
const MAX_EJECTION: u32 = 10;

pub(crate) struct Target {
    pub(super) address: dial::Target,
    /// `host:port`, as it stands in `Host` and `X-Forwarded-Host`.
    pub(crate) authority: HeaderValue,
    /// Which stage has failed, and why.
    pub(super) circuit: Circuit<(Stage, String)>,
    /// Open while its answers are so bad that it is left out; nothing where no policy asks for that.
    pub(super) ejection: Option<Circuit<()>>,
    /// Whatever they do, but for those that have changed the protocol.
    pub(super) open: OpenConnections,
    idle: Mutex<Vec<Idle>>,
    shared: Mutex<Vec<Arc<Http2>>>,
    /// One HTTP/2 dial at a time: the others wait for its streams.
    pub(super) opening: Semaphore,
}

/// The idle connections of one runtime. A connection's events arrive in the runtime that opened it: used from
/// another one, each of them would wake a thread.
struct Idle {
    runtime: Id,
    /// Last in, first out: what was used last is the least likely to have been closed.
    connections: Vec<Http1>,
}

impl Idle {
    /// Of this runtime, in a list of few.
    fn of(all: &mut Vec<Self>, runtime: Id) -> &mut Vec<Http1> {
        let found = all.iter().position(|idle| idle.runtime == runtime);
        let at = found.unwrap_or_else(|| {
            all.push(Self { runtime, connections: Vec::new() });
            all.len() - 1
        });
        &mut all[at].connections
    }

    /// The oldest connection of the runtime that has most of them, preferably not of this one.
    fn take_oldest(all: &mut [Self], runtime: Id) -> Option<Http1> {
        let most = all.iter_mut().max_by_key(|idle| (idle.connections.len(), idle.runtime != runtime))?;
        (!most.connections.is_empty()).then(|| most.connections.remove(0))
    }
}

impl Target {
    /// Nothing when the address cannot stand in a header.
    pub(super) fn new(
        target: &route::Target,
        limits: &Limits,
        ejection: Option<route::Ejection>,
    ) -> Option<Self> {
        Some(Self {
            address: dial::Target::new(target.host.clone(), target.port),
            authority: HeaderValue::try_from(target.to_string()).ok()?,
            circuit: Circuit::new(circuit::Limits {
                failures: limits.circuit_failures,
                open: limits.circuit_open,
                open_max: limits.circuit_open_max,
            }),
            ejection: ejection.map(|ejection| {
                let (open, failures) = (ejection.time, ejection.failures);
                Circuit::new(circuit::Limits { failures, open, open_max: open * MAX_EJECTION })
            }),
            open: OpenConnections::default(),
            idle: Mutex::new(Vec::new()),
            shared: Mutex::new(Vec::new()),
            opening: Semaphore::new(1),
        })
    }

    /// Whether it may have a request; one that is left out has one now and then, by whose answer it comes back.
    pub(super) fn is_in(&self) -> bool {
        self.ejection.as_ref().is_none_or(Circuit::allows)
    }

    /// Whether it is left out, and until when; nothing where no policy asks for that.
    pub(super) fn ejection_state(&self) -> Option<EjectionState> {
        let ejection = self.ejection.as_ref()?;
        Some(EjectionState {
            is_out: ejection.is_open(),
            failures: ejection.failures(),
            since_ms: ejection.last().map(|outcome| outcome.since_ms),
            tried_at_ms: ejection.probe_at_ms(),
        })
    }

    /// Notes how a request ended; answers whether the address is left out from now on.
    pub(super) fn ended(&self, well: bool) -> bool {
        let Some(ejection) = &self.ejection else { return false };
        if well {
            if ejection.is_open() {
                tracing::info!(address = %self.address, "backend address restored after its ejection");
            }
            // What is well already is not written.
            if ejection.failures() > 0 {
                ejection.reached();
            }
            return false;
        }
        let was_out = ejection.is_open();
        ejection.failed(());
        !was_out && ejection.is_open()
    }

    /// An idle connection of this runtime, opened under this generation. Whether it is still open shows when it is used.
    pub(super) fn take(&self, generation: u64) -> Option<Http1> {
        let runtime = Handle::current().id();
        loop {
            let connection = Idle::of(&mut self.idle.lock(), runtime).pop()?;
            if connection.generation == generation && !connection.is_closed() {
                return Some(connection);
            }
        }
    }

    /// Puts a connection back into the pool. If more than `max` are idle then, one of them is closed.
    pub(super) fn put(&self, mut connection: Http1, max: usize) {
        connection.idle_since = Instant::now();
        let runtime = connection.runtime;
        let mut all = self.idle.lock();
        Idle::of(&mut all, runtime).push(connection);
        let idle: usize = all.iter().map(|idle| idle.connections.len()).sum();
        let surplus = if idle > max { Idle::take_oldest(&mut all, runtime) } else { None };
        // A connection is closed without the lock.
        drop(all);
        drop(surplus);
    }

    /// A stream on a connection with fewer than `max_streams`.
    pub(super) fn join(&self, generation: u64, max_streams: usize) -> Option<Stream> {
        let mut shared = self.shared.lock();
        shared.retain(|connection| !connection.is_closed() && connection.generation == generation);
        shared.iter().find_map(|connection| connection.join(max_streams))
    }

    pub(super) fn share(&self, connection: Arc<Http2>) {
        self.shared.lock().push(connection);
    }

    /// Closes what is dead, old, or idle since before `oldest`; returns how many idle connections are left.
    pub(super) fn sweep(&self, generation: u64, oldest: Option<Instant>, rest: bool) -> usize {
        // Taken out for the check, so that no request waits for it; a connection that a request puts back
        // meanwhile stays.
        let all = std::mem::take(&mut *self.idle.lock());
        let keep = |connection: &Http1| {
            let young = oldest.is_none_or(|oldest| connection.idle_since >= oldest);
            young && connection.generation == generation && !connection.is_closed()
        };
        let mut left = 0;
        for Idle { runtime, mut connections } in all {
            connections.retain(keep);
            left += connections.len();
            let mut all = self.idle.lock();
            let idle = Idle::of(&mut all, runtime);
            // The old ones below: they are taken last.
            let fresh = std::mem::replace(idle, connections);
            idle.extend(fresh);
        }
        self.shared.lock().retain(|connection| {
            !connection.is_closed() && connection.generation == generation && !(rest && connection.is_idle())
        });
        left
    }
}
