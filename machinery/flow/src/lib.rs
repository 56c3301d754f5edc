//! API priority and fairness: which flow a request belongs to, who is served next, who waits and who is rejected.
//!
//! Upstream's `util/flowcontrol`, pure: requests are attributes, times are passed in, nothing here waits or sleeps. Whoever
//! queues a request gives something to wake it with ([`Wake`]).

mod allocation;
mod classify;
mod controller;
mod counts;
mod dealer;
mod demand;
mod dropped;
mod dump;
mod level;
mod limits;
mod mandatory;
mod queue;
mod queue_set;
mod seat_seconds;
mod work;

pub use controller::{Controller, Matched, Rules};
pub use counts::{Counts, DURATION_BUCKETS, Histogram, LENGTH_BUCKETS, SEAT_BUCKETS, WATCH_BUCKETS};
pub use dealer::Dealer;
pub use demand::{Integrator, SeatDemand};
pub use dump::{LevelDump, QueueDump, RequestDump};
pub use level::{Admission, Level, Wake};
pub use limits::Limits;
pub use queue_set::{About, Arrival, QueueSet, Reason, Ticket};
pub use seat_seconds::SeatSeconds;
pub use work::{MAX_LIST_SEATS, MAX_WRITE_SEATS, Work, of_list, of_write};

/// How often seats are shared out anew (upstream's `borrowingAdjustmentPeriod`).
pub const BORROWING_PERIOD: std::time::Duration = std::time::Duration::from_secs(10);
