//! Snapshots of levels, for upstream's debug tables and for metrics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_machinery::{RequestInfo, UserInfo};

use crate::counts::SchemaCounts;
use crate::demand::SeatDemand;
use crate::level::{Level, Wake};
use crate::limits::SeatLimits;
use crate::queue_set::{DispatchTimes, TrackedRequest};
use crate::seat_seconds::SeatSeconds;
use crate::utilization::UtilizationDump;
use crate::work::Work;

/// Snapshot of a level.
#[derive(Clone, Debug)]
pub struct LevelDump {
    /// Name of the level.
    pub name: String,
    /// True if no request waits or runs.
    pub idle: bool,
    /// True if the object of the level was removed.
    pub quiescing: bool,
    /// Number of waiting requests.
    pub waiting: u32,
    /// Number of running requests.
    pub executing: u32,
    /// Total number of requests that were served.
    pub dispatched: u64,
    /// Total number of requests that were rejected.
    pub rejected: u64,
    /// Total number of requests whose wait timed out.
    pub timed_out: u64,
    /// Total number of requests whose client disconnected.
    pub cancelled: u64,
    /// Limits of the level.
    pub limits: SeatLimits,
    /// Demand for seats in the last period.
    pub demand: SeatDemand,
    /// Target number of seats in the last assignment.
    pub target: f64,
    /// Virtual time of the queues.
    pub virtual_time: SeatSeconds,
    /// Queues of the level.
    pub queues: Vec<QueueDump>,
    /// Virtual times of the last dispatch from a queue, if any.
    pub last_dispatch: Option<DispatchTimes>,
    /// Utilization over time.
    pub utilization: UtilizationDump,
    /// Counters by schema.
    pub counts: Vec<SchemaCounts>,
}

/// Snapshot of a queue.
#[derive(Clone, Debug)]
pub struct QueueDump {
    /// Number of waiting requests.
    pub waiting: usize,
    /// Number of running requests.
    pub executing: u32,
    /// Seats in use by running requests.
    pub seats_in_use: u32,
    /// Virtual time of the next dispatch.
    pub next_dispatch: SeatSeconds,
    /// Initial seats of waiting requests.
    pub initial_seats: u32,
    /// Maximum seats of waiting requests.
    pub max_seats: u32,
    /// Work of waiting requests.
    pub work: SeatSeconds,
}

/// Snapshot of a request.
#[derive(Clone, Debug)]
pub struct RequestDump {
    /// Name of the schema.
    pub schema: String,
    /// Index of the queue, or `None` in a level without queues.
    pub queue: Option<usize>,
    /// Position in the queue, while the request waits.
    pub position: Option<usize>,
    /// Distinguisher of the flow.
    pub distinguisher: String,
    /// Time since the arrival.
    pub since_arrival: Duration,
    /// Time since the start, if the request is running.
    pub since_start: Option<Duration>,
    /// Estimated work.
    pub work: Work,
    /// User of the request.
    pub user: Arc<UserInfo>,
    /// Attributes of the request.
    pub request: Arc<RequestInfo>,
}

impl<W: Wake> Level<W> {
    /// Returns a snapshot of the level and its queues.
    #[must_use]
    pub fn dump(&self, now: Instant) -> LevelDump {
        self.with_state(|state| {
            let set = &state.set;
            let queue = |queue: &crate::queue::Queue| QueueDump {
                waiting: queue.waiting.len(),
                executing: queue.executing,
                seats_in_use: queue.seats_in_use,
                next_dispatch: queue.next_dispatch,
                initial_seats: queue.initial_seats,
                max_seats: queue.waiting_seats,
                work: queue.waiting_work,
            };
            LevelDump {
                name: self.name().to_owned(),
                idle: set.is_idle(),
                quiescing: state.quiescing,
                waiting: set.waiting,
                executing: set.executing,
                dispatched: set.dispatched,
                rejected: set.rejected,
                timed_out: set.timed_out,
                cancelled: set.cancelled,
                limits: state.limits,
                demand: state.demand,
                target: state.target,
                virtual_time: set.virtual_time(),
                queues: set.queues.iter().map(queue).collect(),
                last_dispatch: set.last_dispatch,
                utilization: set.utilization.dump(now),
                counts: set.counts().cloned().collect(),
            }
        })
    }

    /// Returns snapshots of all requests: for each queue the waiting ones in order, then the running ones.
    #[must_use]
    pub fn dump_requests(&self, now: Instant) -> Vec<RequestDump> {
        self.with_state(|state| {
            let set = &state.set;
            let dump = |tracked: &TrackedRequest<W>, position| RequestDump {
                schema: set.counts[tracked.classified.counts_index].schema.clone(),
                queue: tracked.queue,
                position,
                distinguisher: match set.queues.len() {
                    0 | 1 => String::new(),
                    _ => tracked
                        .classified
                        .distinguisher
                        .flow_name(&tracked.classified.user, &tracked.classified.request)
                        .to_owned(),
                },
                since_arrival: now.saturating_duration_since(tracked.arrived),
                since_start: tracked.started.map(|started| now.saturating_duration_since(started)),
                work: tracked.work,
                user: Arc::clone(&tracked.classified.user),
                request: Arc::clone(&tracked.classified.request),
            };
            let running = |queue: Option<usize>| {
                let runs = move |tracked: &&TrackedRequest<W>| {
                    tracked.queue == queue && tracked.started.is_some() && !tracked.finished
                };
                set.requests
                    .iter()
                    .map(|(_, tracked)| tracked)
                    .filter(runs)
                    .map(|tracked| dump(tracked, None))
            };
            let mut all = Vec::new();
            for (at, queue) in set.queues.iter().enumerate() {
                let waiting = queue.waiting.iter().enumerate();
                all.extend(waiting.map(|(place, ticket)| dump(&set.requests[*ticket], Some(place))));
                if queue.executing > 0 {
                    all.extend(running(Some(at)));
                }
            }
            all.extend(running(None));
            all
        })
    }
}
