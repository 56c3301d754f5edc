//! Priority and fairness of this facade: its seats and queues, the clock they go by, and what is known of requests' work.
//!
//! The rules are `portico_flow`'s; this module waits, wakes and counts. It must not know HTTP's answers: that is the layer's.

mod metrics;
mod seat;
mod sizes;
pub mod tables;
mod watches;

pub use metrics::FlowMetrics;
pub use seat::{Seat, WaitForSeat, Waker};

use std::sync::Arc;
use std::time::{Duration, Instant};

use portico_flow::{
    About, Admission, BORROWING_PERIOD, Controller, Level, Matched, Reason, Work, of_list, of_write,
};
use portico_gostd::url::Query;
use portico_machinery::RequestInfo;
use portico_machinery::flow_control::{FlowSchema, PriorityLevel};
use tokio::sync::{Notify, oneshot};

use crate::in_flight::InFlight;
use crate::metrics::{Class, Phase, RequestMetrics};
use crate::request::{Request, RequestView};
use sizes::{ListSizes, SizeKey};
use watches::Watches;

pub use watches::WatchGuard;

/// What requests are told apart by.
pub type Rules = portico_flow::Rules<Waker>;

/// No request waits longer for a seat.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The part of a request's time that it may wait for a seat.
const WAITING_PART: u32 = 4;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Flow {
    inner: Arc<Inner>,
}

struct Inner {
    controller: Controller<Waker>,
    sizes: ListSizes,
    watches: Watches,
    executing: InFlight,
    waiting: InFlight,
    /// How long a request without a deadline may wait.
    default_wait: Duration,
    /// Somebody waits for seats that come back by themselves.
    lingering: Notify,
}

/// What becomes of a request.
pub enum Decision {
    /// It runs.
    Run(Seat),
    /// It runs once it has a seat.
    Wait(WaitForSeat),
    /// It is rejected, and should come again after so many seconds.
    Reject(u64),
}

impl Flow {
    /// For a facade of so many seats.
    #[must_use]
    pub fn new(seats: usize, request_timeout: Duration, metrics: &Arc<RequestMetrics>) -> Self {
        let count = |phase| InFlight::counting(phase, Arc::clone(metrics));
        Self {
            inner: Arc::new(Inner {
                controller: Controller::new(u32::try_from(seats).unwrap_or(u32::MAX)),
                sizes: ListSizes::default(),
                watches: Watches::default(),
                executing: count(Phase::Executing),
                waiting: count(Phase::Waiting),
                default_wait: request_timeout / WAITING_PART,
                lingering: Notify::new(),
            }),
        }
    }

    /// Goes by these objects from now on.
    #[must_use]
    pub fn digest(&self, schemas: &[Arc<FlowSchema>], levels: &[Arc<PriorityLevel>]) -> Rules {
        self.inner.controller.digest(schemas, levels, Instant::now())
    }

    /// All levels, by name.
    #[must_use]
    pub fn levels(&self) -> Vec<Arc<Level<Waker>>> {
        self.inner.controller.levels()
    }

    /// How many reads and others run, and how many wait.
    #[must_use]
    pub fn now(&self) -> [[usize; 2]; 2] {
        [self.inner.executing.now(), self.inner.waiting.now()]
    }

    /// A request comes.
    #[must_use]
    pub fn admit(&self, request: &Request, matched: &Matched<Waker>) -> Decision {
        let info = request.info();
        let (work, size) = self.estimate(request, matched);
        let about: About = matched.about(&request.user(), info);
        let (level, now) = (&matched.level, Instant::now());
        let mut woken = None;
        let waker = || {
            let (sender, receiver) = oneshot::channel();
            woken = Some(receiver);
            Waker(sender)
        };
        let admission = level.arrive(about, work, now, waker);
        let class = if info.is_read_only() { Class::ReadOnly } else { Class::Mutating };
        let seat = |ticket| Seat::new(self.clone(), Arc::clone(level), ticket, class, size);
        match (admission, woken) {
            (Admission::Executing(ticket), _) => Decision::Run(seat(ticket).taken()),
            (Admission::Waiting(ticket), Some(woken)) => {
                self.look_after(level.next_due());
                Decision::Wait(WaitForSeat::new(seat(ticket), woken, self.wait_limit(request)))
            }
            // It cannot wait without a waker.
            (Admission::Waiting(ticket), None) => {
                Decision::Reject(level.abandon(ticket, Reason::Cancelled, now))
            }
            (Admission::Rejected { retry_after, .. }, _) => Decision::Reject(retry_after),
        }
    }

    /// A watch is counted until the guard is dropped.
    #[must_use]
    pub fn register_watch(&self, request: &Request) -> WatchGuard {
        self.inner.watches.register(request.info())
    }

    /// Shares out seats anew, every period, for ever.
    pub async fn rebalance(self) {
        let mut ticks = tokio::time::interval(BORROWING_PERIOD);
        loop {
            ticks.tick().await;
            self.inner.controller.rebalance(Instant::now());
        }
    }

    /// Gives seats back when they come back by themselves and somebody waits for them, for ever.
    pub async fn give_back(self) {
        loop {
            let noticed = self.inner.lingering.notified();
            match self.inner.controller.next_due() {
                Some(due) => {
                    // Whatever is due sooner is noticed, too.
                    let _ = tokio::time::timeout_at(due.into(), noticed).await;
                }
                None => noticed.await,
            }
            self.inner.controller.advance(Instant::now());
        }
    }

    fn look_after(&self, due: Option<Instant>) {
        if due.is_some() {
            self.inner.lingering.notify_one();
        }
    }

    fn wait_limit(&self, request: &Request) -> Instant {
        let (received, deadline) = (request.received(), request.record().deadline());
        let allotted = deadline.map(|deadline| deadline.saturating_duration_since(received) / WAITING_PART);
        received + allotted.unwrap_or(self.inner.default_wait).min(LONGEST_WAIT)
    }

    /// The work of a request, and where to note its answer's size.
    fn estimate(&self, request: &Request, matched: &Matched<Waker>) -> (Work, Option<SizeKey>) {
        let info = request.info();
        if !info.is_resource_request {
            return (Work::LEAST, None);
        }
        match info.verb.as_str() {
            "list" => self.estimate_list(info, request.query(), matched.max_seats),
            "watch" if begins_with_list(request.query()) => {
                (self.estimate_list(info, request.query(), matched.max_seats).0, None)
            }
            "create" | "update" | "patch" | "delete" if !causes_no_event(info) => {
                let watches = self.inner.watches.interested(info);
                if watches > 0 {
                    matched.observe_watches(watches);
                }
                (of_write(watches, matched.max_seats), None)
            }
            _ => (Work::LEAST, None),
        }
    }

    fn estimate_list(&self, info: &RequestInfo, query: &str, max_seats: u32) -> (Work, Option<SizeKey>) {
        // One object, named by the path or by a selector.
        if !info.name.is_empty() {
            return (Work::LEAST, None);
        }
        let key = self.inner.sizes.key(info, query);
        let selects = !info.label_selector.is_empty() || !info.field_selector.is_empty();
        (of_list(self.inner.sizes.known(key), max_seats), (!selects).then_some(key))
    }
}

/// Whether a watch shows first what is there.
fn begins_with_list(query: &str) -> bool {
    let query = Query::parse(query);
    let first = |key| query.first(key).unwrap_or_default();
    matches!(first("sendInitialEvents"), "true" | "1") || matches!(first("resourceVersion"), "" | "0")
}

/// A service account's token is no object that anybody watches.
fn causes_no_event(info: &RequestInfo) -> bool {
    info.resource == "serviceaccounts" && info.subresource == "token"
}
