//! What a level looks like now: for upstream's debug tables and for metrics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_machinery::{RequestInfo, UserInfo};

use crate::counts::Counts;
use crate::demand::SeatDemand;
use crate::level::{Level, Wake};
use crate::limits::Limits;
use crate::queue_set::{DispatchMarks, Held};
use crate::seat_seconds::SeatSeconds;
use crate::utilization::UtilizationDump;
use crate::work::Work;

/// A level.
#[derive(Clone, Debug)]
pub struct LevelDump {
    /// Its name.
    pub name: String,
    /// Whether nobody waits or runs.
    pub idle: bool,
    /// Whether its object is gone.
    pub quiescing: bool,
    /// Requests that wait.
    pub waiting: u32,
    /// Requests that run.
    pub executing: u32,
    /// Requests that were served, ever.
    pub dispatched: u64,
    /// Requests that were rejected, ever.
    pub rejected: u64,
    /// Those that waited too long.
    pub timed_out: u64,
    /// Those whose client went away.
    pub cancelled: u64,
    /// Its seats.
    pub limits: Limits,
    /// What was used of them in the last period.
    pub demand: SeatDemand,
    /// What it should have had.
    pub target: f64,
    /// Virtual time.
    pub virtual_time: SeatSeconds,
    /// Its queues.
    pub queues: Vec<QueueDump>,
    /// When a request last left a queue.
    pub last_dispatch: Option<DispatchMarks>,
    /// How it was used over time.
    pub utilization: UtilizationDump,
    /// By schema.
    pub counts: Vec<Counts>,
}

/// A queue.
#[derive(Clone, Debug)]
pub struct QueueDump {
    /// Requests that wait in it.
    pub waiting: usize,
    /// Requests that run from it.
    pub executing: u32,
    /// Seats that they take.
    pub seats_in_use: u32,
    /// When, in virtual time, the next is dispatched.
    pub next_dispatch: SeatSeconds,
    /// Initial seats of those that wait.
    pub initial_seats: u32,
    /// Seats of those that wait.
    pub max_seats: u32,
    /// Their work.
    pub work: SeatSeconds,
}

/// A request.
#[derive(Clone, Debug)]
pub struct RequestDump {
    /// Its schema.
    pub schema: String,
    /// Its queue; nothing in a level without queues.
    pub queue: Option<usize>,
    /// Its place in the queue, while it waits.
    pub place: Option<usize>,
    /// What its flow is called.
    pub distinguisher: String,
    /// How long ago it came.
    pub arrived: Duration,
    /// How long it has been running.
    pub started: Option<Duration>,
    /// How much it is.
    pub work: Work,
    /// Who.
    pub user: Arc<UserInfo>,
    /// What.
    pub request: Arc<RequestInfo>,
}

impl<W: Wake> Level<W> {
    /// The level and its queues.
    #[must_use]
    pub fn dump(&self, now: Instant) -> LevelDump {
        self.with(|state| {
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

    /// Its requests: queue by queue those that wait, in order, and those that run.
    #[must_use]
    pub fn dump_requests(&self, now: Instant) -> Vec<RequestDump> {
        self.with(|state| {
            let set = &state.set;
            let dump = |held: &Held<W>, place| RequestDump {
                schema: set.counts[held.about.schema].schema.clone(),
                queue: held.queue,
                place,
                distinguisher: match set.queues.len() {
                    0 | 1 => String::new(),
                    _ => held.about.distinguisher.of(&held.about.user, &held.about.request).to_owned(),
                },
                arrived: now.saturating_duration_since(held.arrived),
                started: held.started.map(|started| now.saturating_duration_since(started)),
                work: held.work,
                user: Arc::clone(&held.about.user),
                request: Arc::clone(&held.about.request),
            };
            let running = |queue: Option<usize>| {
                let runs =
                    move |held: &&Held<W>| held.queue == queue && held.started.is_some() && !held.finished;
                set.requests.iter().map(|(_, held)| held).filter(runs).map(|held| dump(held, None))
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
