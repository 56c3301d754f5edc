//! API priority and fairness: classifies requests into flows, and decides which run, wait or are rejected.
//!
//! Port of upstream's `util/flowcontrol`, based on attributes. The queues are pure: callers pass the time, and a waker for each
//! queued request ([`Wake`]). Only the [`Dispatcher`] reads the clock and waits.

mod allocation;
mod classify;
mod controller;
mod counts;
mod dealer;
mod demand;
mod dispatcher;
mod dump;
mod estimator;
mod inflight;
mod level;
mod limits;
mod list_work;
mod mandatory;
mod metrics;
mod queue;
mod queue_set;
mod ratio;
mod rejections;
mod seat_seconds;
pub mod tables;
mod utilization;
mod watches;
mod work;

pub use controller::{FlowController, FlowRules, MatchedSchema};
pub use counts::{
    DURATION_BUCKETS, FlowHistogram, LENGTH_BUCKETS, SEAT_BUCKETS, SchemaCounts, WATCH_BUCKETS,
};
pub use dealer::Dealer;
pub use demand::{Integrator, SeatDemand};
pub use dispatcher::{Dispatcher, FlowRequest, Seat, SeatDecision, SeatWaker, WaitForSeat};
pub use dump::{LevelDump, QueueDump, RequestDump};
pub use inflight::{RequestKind, RequestPhase};
pub use level::{ArrivalOutcome, Level, Wake};
pub use limits::SeatLimits;
pub use list_work::MAX_LIST_SEATS;
pub use metrics::FlowMetrics;
pub use queue::Ticket;
pub use queue_set::{ArrivalResult, ClassifiedRequest, DispatchTimes, QueueSet, RejectReason};
pub use seat_seconds::SeatSeconds;
pub use utilization::UtilizationDump;
pub use watches::WatchGuard;
pub use work::{MAX_WRITE_SEATS, Work, estimate_write};

/// Interval at which seats are reassigned (upstream's `borrowingAdjustmentPeriod`).
pub const BORROWING_PERIOD: std::time::Duration = std::time::Duration::from_secs(10);
