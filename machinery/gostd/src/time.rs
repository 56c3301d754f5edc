//! Package `time`: durations, and times in RFC 3339.
//!
//! ```
//! use portico_gostd::time::{GoDuration, Layout, Time};
//!
//! assert_eq!("-1.5h".parse::<GoDuration>().unwrap().to_string(), "-1h30m0s");
//! let time = Time::parse(Layout::Rfc3339, "2024-05-01T12:00:00+02:00").unwrap();
//! assert_eq!(time.rfc3339().unwrap(), "2024-05-01T10:00:00Z");
//! ```

mod duration;
mod rfc3339;

pub use duration::{DurationError, GoDuration, format_duration, parse_duration};
pub use rfc3339::{Layout, Time};
