//! Points in time, from year 1 to year 9999, spelled as RFC 3339.

use std::cmp::Ordering;
use std::fmt;

use portico_gostd::time::{Layout, Time};

use super::Duration;
use crate::error::EvalError;

/// A point in time. The offset is how it was written and is spelled; it does not count when compared.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
    /// Seconds east of UTC in which it is spelled.
    pub offset: i32,
}

/// A point in time on somebody's calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Year.
    pub year: i64,
    /// Month, 1 to 12.
    pub month: i64,
    /// Day of the month, 1 to 31.
    pub day: i64,
    /// Day of the year, 1 to 366.
    pub day_of_year: i64,
    /// Day of the week, Sunday is 0.
    pub weekday: i64,
    /// Hour.
    pub hour: i64,
    /// Minute.
    pub minute: i64,
    /// Second.
    pub second: i64,
}

const DAY: i64 = 86_400;
/// 0001-01-01T00:00:00Z.
const FIRST: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z.
const LAST: i64 = 253_402_300_799;

impl Timestamp {
    /// At so many seconds and nanoseconds since 1970, in UTC.
    ///
    /// # Errors
    /// `timestamp overflow` outside of years 1 to 9999.
    pub fn at(seconds: i64, nanos: u32) -> Result<Self, EvalError> {
        if (FIRST..=LAST).contains(&seconds) {
            Ok(Self { seconds, nanos, offset: 0 })
        } else {
            Err(EvalError::new("timestamp overflow"))
        }
    }

    /// RFC 3339, as Go reads it. None for any other text; the year may be outside of CEL's range.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let time = Time::parse(Layout::Rfc3339, text).ok()?;
        Some(Self { seconds: time.seconds, nanos: time.nanos, offset: time.offset })
    }

    /// The schema format `date-time`: RFC 3339, or without a zone.
    ///
    /// # Errors
    /// A sentence.
    pub fn parse_loose(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self { seconds: 0, nanos: 0, offset: 0 });
        }
        Self::parse(text)
            .or_else(|| Self::parse(&format!("{text}Z")))
            .ok_or_else(|| format!("parsing time {text:?} as \"2006-01-02T15:04:05\": cannot parse {text:?}"))
    }

    /// The schema format `date`: `2006-01-02`.
    ///
    /// # Errors
    /// A sentence.
    pub fn parse_date(text: &str) -> Result<Self, String> {
        Self::parse(&format!("{text}T00:00:00Z"))
            .ok_or_else(|| format!("parsing time {text:?} as \"2006-01-02\": cannot parse {text:?}"))
    }

    /// Later (or earlier) by a span.
    ///
    /// # Errors
    /// `timestamp overflow`.
    pub fn plus(self, span: Duration) -> Result<Self, EvalError> {
        self.shifted(i128::from(span.nanos))
    }

    /// Earlier (or later) by a span.
    ///
    /// # Errors
    /// `timestamp overflow`.
    pub fn minus(self, span: Duration) -> Result<Self, EvalError> {
        self.shifted(-i128::from(span.nanos))
    }

    fn shifted(self, nanos: i128) -> Result<Self, EvalError> {
        let moved = self.in_nanos() + nanos;
        let overflow = || EvalError::new("timestamp overflow");
        let seconds = i64::try_from(moved.div_euclid(1_000_000_000)).map_err(|_| overflow())?;
        let nanos = u32::try_from(moved.rem_euclid(1_000_000_000)).map_err(|_| overflow())?;
        Self::at(seconds, nanos).map(|at| Self { offset: self.offset, ..at })
    }

    /// The span since another point.
    ///
    /// # Errors
    /// `integer overflow` beyond 292 years.
    pub fn since(self, other: Self) -> Result<Duration, EvalError> {
        Duration::of(self.in_nanos() - other.in_nanos())
    }

    fn in_nanos(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos)
    }

    /// On the calendar of a zone so many seconds east of UTC.
    #[must_use]
    pub fn civil(&self, offset: i32) -> Civil {
        let local = self.seconds + i64::from(offset);
        let (days, rest) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let (year, month, day) = civil_from_days(days);
        Civil {
            year,
            month,
            day,
            day_of_year: days - days_from_civil(year, 1, 1) + 1,
            weekday: (days + 4).rem_euclid(7),
            hour: rest / 3_600,
            minute: rest / 60 % 60,
            second: rest % 60,
        }
    }
}

/// Days since 1970 of a day of the Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let part = (5 * of_year + 2) / 153;
    let month = if part < 10 { part + 3 } else { part - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * part + 2) / 5 + 1)
}

/// RFC 3339 with as many digits of a fraction as needed.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.civil(self.offset);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            at.year, at.month, at.day, at.hour, at.minute, at.second
        )?;
        if self.nanos != 0 {
            let fraction = format!("{:09}", self.nanos);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let minutes = self.offset.abs() / 60;
        let sign = if self.offset < 0 { '-' } else { '+' };
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
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
    fn a_day_knows_its_place_in_week_and_year() {
        let at = Timestamp::parse("2023-07-14T10:30:45Z").unwrap().civil(0);
        assert_eq!((at.weekday, at.day_of_year, at.hour), (5, 195, 10));
    }
}
