//! Package `time`: durations, and times as RFC 3339 writes them.

mod duration;
mod rfc3339;

pub use duration::{DurationError, GoDuration, format_duration, parse_duration};
pub use rfc3339::{Layout, Time};
