//! Points in time, from year 1 to year 9999, spelled as RFC 3339.

use std::cmp::Ordering;
use std::fmt;

use jiff::civil::DateTime;
use portico_gostd::time::{Layout, Time};

use super::Duration;
use crate::error::EvalError;

/// A point in time. Comparisons ignore the offset, which is used for printing.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
    /// Offset for printing, in seconds east of UTC.
    pub offset: i32,
}

/// 0001-01-01T00:00:00Z.
const MIN_SECONDS: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z.
const MAX_SECONDS: i64 = 253_402_300_799;

impl Timestamp {
    /// Returns the time at these seconds and nanoseconds since 1970, in UTC.
    ///
    /// # Errors
    /// `timestamp overflow` outside of the years 1 to 9999.
    pub fn at(seconds: i64, nanos: u32) -> Result<Self, EvalError> {
        if (MIN_SECONDS..=MAX_SECONDS).contains(&seconds) {
            Ok(Self { seconds, nanos, offset: 0 })
        } else {
            Err(EvalError::new("timestamp overflow"))
        }
    }

    /// Parses RFC 3339 like Go. The year may be outside of CEL's range.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let time = Time::parse(Layout::Rfc3339, text).ok()?;
        Some(Self { seconds: time.seconds, nanos: time.nanos, offset: time.offset })
    }

    /// Parses the schema format `date-time`: RFC 3339, or without a zone.
    ///
    /// # Errors
    /// The text has another format.
    pub fn parse_loose(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self { seconds: 0, nanos: 0, offset: 0 });
        }
        Self::parse(text)
            .or_else(|| Self::parse(&format!("{text}Z")))
            .ok_or_else(|| format!("parsing time {text:?} as \"2006-01-02T15:04:05\": cannot parse {text:?}"))
    }

    /// Parses the schema format `date`: `2006-01-02`.
    ///
    /// # Errors
    /// The text has another format.
    pub fn parse_date(text: &str) -> Result<Self, String> {
        Self::parse(&format!("{text}T00:00:00Z"))
            .ok_or_else(|| format!("parsing time {text:?} as \"2006-01-02\": cannot parse {text:?}"))
    }

    /// Adds a duration.
    ///
    /// # Errors
    /// `timestamp overflow`.
    pub fn plus(self, span: Duration) -> Result<Self, EvalError> {
        self.plus_nanos(i128::from(span.nanos))
    }

    /// Subtracts a duration.
    ///
    /// # Errors
    /// `timestamp overflow`.
    pub fn minus(self, span: Duration) -> Result<Self, EvalError> {
        self.plus_nanos(-i128::from(span.nanos))
    }

    fn plus_nanos(self, nanos: i128) -> Result<Self, EvalError> {
        let moved = self.in_nanos() + nanos;
        let overflow = || EvalError::new("timestamp overflow");
        let seconds = i64::try_from(moved.div_euclid(1_000_000_000)).map_err(|_| overflow())?;
        let nanos = u32::try_from(moved.rem_euclid(1_000_000_000)).map_err(|_| overflow())?;
        Self::at(seconds, nanos).map(|at| Self { offset: self.offset, ..at })
    }

    /// Returns the duration since another time.
    ///
    /// # Errors
    /// `integer overflow` beyond 292 years.
    pub fn since(self, other: Self) -> Result<Duration, EvalError> {
        Duration::of(self.in_nanos() - other.in_nanos())
    }

    fn in_nanos(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos)
    }

    /// Returns the year and the date and time in a zone with this offset in seconds east of UTC, like [`Time::calendar`].
    #[must_use]
    pub fn calendar(&self, offset: i32) -> (i64, DateTime) {
        Time { offset, ..self.time() }.calendar()
    }

    fn time(self) -> Time {
        Time { seconds: self.seconds, nanos: self.nanos, offset: self.offset }
    }
}

/// Prints RFC 3339 with as many fractional digits as needed.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.time().fmt(f)
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time_are_read_and_printed() {
        let cases = [
            ("2023-01-14T10:30:45.123Z", "2023-01-14T10:30:45.123Z"),
            ("2009-02-13T23:31:30+02:00", "2009-02-13T23:31:30+02:00"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"),
        ];
        for (text, printed) in cases {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), printed);
        }
        for text in [
            "2023-02-29T00:00:00Z",
            "2023-01-01t00:00:00Z",
            "2023-01-01T00:00:00",
            "x",
            "2023-13-01T00:00:00Z",
        ] {
            assert!(Timestamp::parse(text).is_none(), "{text}");
        }
        assert_eq!(Timestamp::parse("1970-01-01T00:00:00-01:00").unwrap().seconds, 3_600);
    }

    #[test]
    fn calendars_go_beyond_four_digits_of_years() {
        let last = Timestamp::parse("9999-12-31T23:59:59Z").unwrap();
        let (year, at) = last.calendar(3_600);
        assert_eq!((year, at.month(), at.day(), at.hour()), (10_000, 1, 1, 0));
        assert_eq!(Timestamp { offset: 3_600, ..last }.to_string(), "10000-01-01T00:59:59+01:00");
        let first = Timestamp::parse("0001-01-01T00:00:00Z").unwrap();
        assert_eq!(first.calendar(-1).0, 0);
        let (year, at) = Timestamp::parse("2023-07-14T10:30:45Z").unwrap().calendar(0);
        assert_eq!((year, at.day_of_year(), at.hour()), (2023, 195, 10));
    }
}
