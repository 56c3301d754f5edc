//! `time.Parse` with the layouts of RFC 3339, and `Time.Format`.
//!
//! Covers the years 0 to 9999. Uses civil dates, because [`jiff::Timestamp`] does not cover the last day.

use std::fmt::{self, Write as _};

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, date};

/// 1970-01-01T00:00:00.
const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// Seconds after which dates, weekdays and leap years repeat: 400 years.
const CALENDAR_CYCLE: i64 = 146_097 * 86_400;

/// Text format of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `time.RFC3339`, with an optional fraction when parsing.
    Rfc3339,
    /// Format of apimachinery's `MicroTime`: a fraction of exactly six digits.
    Micro,
}

/// A point in time with an offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
    /// Seconds east of UTC.
    pub offset: i32,
}

impl Time {
    /// Parses a time.
    ///
    /// # Errors
    /// The message of Go's `ParseError`.
    pub fn parse(layout: Layout, text: &str) -> Result<Self, String> {
        let mut reader = Reader { text, layout, rest: text };
        reader.time()
    }

    /// Returns the time at these seconds and nanoseconds since 1970, in UTC (`time.Unix`).
    #[must_use]
    pub fn unix(seconds: i64, nanos: i64) -> Self {
        let rest = nanos.rem_euclid(1_000_000_000);
        let seconds = seconds.saturating_add(nanos.div_euclid(1_000_000_000));
        Self { seconds, nanos: u32::try_from(rest).unwrap_or_default(), offset: 0 }
    }

    /// Returns the date and time at the offset. `None` outside of the years 0 to 9999.
    #[must_use]
    pub fn civil(&self) -> Option<DateTime> {
        let local = SignedDuration::from_secs(self.seconds.saturating_add(i64::from(self.offset)));
        EPOCH.checked_add(local).ok().filter(|at| at.year() >= 0)
    }

    /// Returns the year at the offset, which is not limited, and a date and time with the same month, day, weekday and clock in
    /// the years 1970 to 2369.
    #[must_use]
    pub fn calendar(&self) -> (i64, DateTime) {
        let local = self.seconds.saturating_add(i64::from(self.offset));
        let nanos = i32::try_from(self.nanos).unwrap_or_default();
        let in_cycle = SignedDuration::new(local.rem_euclid(CALENDAR_CYCLE), nanos);
        let civil = EPOCH.checked_add(in_cycle).unwrap_or(EPOCH);
        (i64::from(civil.year()) + 400 * local.div_euclid(CALENDAR_CYCLE), civil)
    }

    /// Formats as `2006-01-02T15:04:05Z`, in UTC, without a fraction. `None` outside of the years 0 to 9999.
    #[must_use]
    pub fn rfc3339(&self) -> Option<String> {
        let mut text = clock(Self { offset: 0, ..*self }.civil()?);
        text.push('Z');
        Some(text)
    }

    /// Formats as `2006-01-02T15:04:05.999999999Z` (`RFC3339Nano`), in UTC, without trailing zeros.
    #[must_use]
    pub fn rfc3339_nano(&self) -> Option<String> {
        let clock = clock(Self { offset: 0, ..*self }.civil()?);
        let fraction = format!(".{:09}", self.nanos);
        Some(format!("{clock}{}Z", fraction.trim_end_matches('0').trim_end_matches('.')))
    }

    /// Formats as `2006-01-02T15:04:05.000000Z`, in UTC.
    #[must_use]
    pub fn rfc3339_micro(&self) -> Option<String> {
        let mut text = clock(Self { offset: 0, ..*self }.civil()?);
        let micros = self.nanos / 1000;
        text.push('.');
        for pair in [micros / 10_000, micros / 100 % 100, micros % 100] {
            two_digits(&mut text, pair as u8);
        }
        text.push('Z');
        Some(text)
    }
}

impl From<jiff::Timestamp> for Time {
    fn from(at: jiff::Timestamp) -> Self {
        Self::unix(at.as_second(), at.subsec_nanosecond().into())
    }
}

/// Formats the date and time. Writes each digit, because the formatting machinery costs five times as much.
fn clock(civil: DateTime) -> String {
    let (date, time) = (civil.date(), civil.time());
    let mut text = String::with_capacity("2006-01-02T15:04:05.000000000Z".len());
    let year = date.year().unsigned_abs();
    two_digits(&mut text, (year / 100) as u8);
    two_digits(&mut text, (year % 100) as u8);
    let fields = [
        ('-', date.month()),
        ('-', date.day()),
        ('T', time.hour()),
        (':', time.minute()),
        (':', time.second()),
    ];
    for (separator, number) in fields {
        text.push(separator);
        two_digits(&mut text, number.unsigned_abs());
    }
    text
}

fn two_digits(text: &mut String, number: u8) {
    text.push(char::from(b'0' + number / 10 % 10));
    text.push(char::from(b'0' + number % 10));
}

/// Formats like `time.RFC3339Nano`: at the time's offset, with as many fractional digits as needed.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.civil() {
            Some(civil) => f.write_str(&clock(civil))?,
            None => {
                let (year, civil) = self.calendar();
                write!(f, "{year:04}{}", &clock(civil)[4..])?;
            }
        }
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

/// Parser for a layout, like `time.parse`: a value that is out of range is reported before errors in the rest.
struct Reader<'t> {
    text: &'t str,
    layout: Layout,
    rest: &'t str,
}

impl Reader<'_> {
    fn time(&mut self) -> Result<Time, String> {
        let year = self.number("2006", 4)?;
        self.literal("-")?;
        let month = self.number("01", 2)?;
        self.check_range(month, 1, 12, "month")?;
        self.literal("-")?;
        let day = self.number("02", 2)?;
        self.literal("T")?;
        // Go also accepts an hour of one digit.
        let digits = if self.rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit) { 2 } else { 1 };
        let hour = self.number("15", digits)?;
        self.check_range(hour, 0, 23, "hour")?;
        self.literal(":")?;
        let minute = self.number("04", 2)?;
        self.check_range(minute, 0, 59, "minute")?;
        self.literal(":")?;
        let second = self.number("05", 2)?;
        self.check_range(second, 0, 59, "second")?;
        let nanos = self.fraction()?;
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(format!("parsing time {}: extra text: {}", quote(self.text), quote(self.rest)));
        }
        let field = |number: i64| i8::try_from(number).unwrap_or_default();
        let day = Date::new(i16::try_from(year).unwrap_or_default(), field(month), field(day));
        let day = day.map_err(|_| self.out_of_range("day"))?;
        let local = day.at(field(hour), field(minute), field(second), 0).duration_since(EPOCH).as_secs();
        Ok(Time { seconds: local - i64::from(offset), nanos, offset })
    }

    fn mismatch(&self, piece: &str) -> String {
        let layout = match self.layout {
            Layout::Rfc3339 => "2006-01-02T15:04:05Z07:00",
            Layout::Micro => "2006-01-02T15:04:05.000000Z07:00",
        };
        let [text, rest] = [self.text, self.rest].map(quote);
        format!("parsing time {text} as \"{layout}\": cannot parse {rest} as \"{piece}\"")
    }

    fn out_of_range(&self, name: &str) -> String {
        format!("parsing time {}: {name} out of range", quote(self.text))
    }

    fn check_range(&self, number: i64, min: i64, max: i64, name: &str) -> Result<(), String> {
        if (min..=max).contains(&number) { Ok(()) } else { Err(self.out_of_range(name)) }
    }

    fn literal(&mut self, piece: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(piece).ok_or_else(|| self.mismatch(piece))?;
        Ok(())
    }

    fn number(&mut self, piece: &str, digits: usize) -> Result<i64, String> {
        let number = leading_number(self.rest, digits).ok_or_else(|| self.mismatch(piece))?;
        self.rest = &self.rest[digits..];
        Ok(number)
    }

    fn fraction(&mut self) -> Result<u32, String> {
        let digits = self.rest.strip_prefix(['.', ',']);
        let count = match (self.layout, digits) {
            (Layout::Micro, Some(digits)) if leading_number(digits, 6).is_some() => 6,
            (Layout::Micro, _) => return Err(self.mismatch(".000000")),
            (Layout::Rfc3339, digits) => {
                digits.map_or(0, |digits| digits.bytes().take_while(u8::is_ascii_digit).count())
            }
        };
        let Some(digits) = digits.filter(|_| count > 0) else { return Ok(0) };
        let nano_digits = &digits[..count.min(9)];
        self.rest = &digits[count..];
        Ok(format!("{nano_digits:0<9}").parse().unwrap_or_default())
    }

    fn offset(&mut self) -> Result<i32, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let (zone, rest) = self.rest.split_at_checked(6).ok_or_else(|| self.mismatch("Z07:00"))?;
        if zone.as_bytes()[3] != b':' {
            return Err(self.mismatch("Z07:00"));
        }
        let part = |start: usize| zone.get(start..start + 2).and_then(|two| leading_number(two, 2));
        // The ranges are checked before the sign.
        let numbers = part(1).zip(part(4));
        self.check_range(part(1).unwrap_or(0), 0, 24, "time zone offset hour")?;
        self.check_range(numbers.map_or(0, |(_, minutes)| minutes), 0, 60, "time zone offset minute")?;
        let sign = match zone.as_bytes()[0] {
            b'+' => 1,
            b'-' => -1,
            _ => return Err(self.mismatch("Z07:00")),
        };
        let (hours, minutes) = numbers.ok_or_else(|| self.mismatch("Z07:00"))?;
        self.rest = rest;
        Ok(sign * i32::try_from(hours * 3600 + minutes * 60).unwrap_or_default())
    }
}

/// Parses exactly this number of leading digits.
fn leading_number(text: &str, digits: usize) -> Option<i64> {
    let head = text.as_bytes().get(..digits)?;
    head.iter().all(u8::is_ascii_digit).then(|| text[..digits].parse().ok())?
}

/// Quotes a text like package `time` in its errors: bytes that are not printable ASCII are escaped one by one.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        let written = match byte {
            b'"' | b'\\' => write!(quoted, "\\{}", char::from(byte)),
            b' '..=b'~' | 0x7f => write!(quoted, "{}", char::from(byte)),
            _ => write!(quoted, "\\x{byte:02x}"),
        };
        // Writing to a string cannot fail.
        written.unwrap_or_default();
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn times_read_and_print_as_recorded() {
        let rows: Vec<Value> = include_str!("../../testdata/times.jsonl")
            .lines()
            .map(|row| serde_json::from_str(row).unwrap())
            .collect();
        assert!(rows.len() > 200);
        for row in rows {
            let text = row["text"].as_str().unwrap();
            for (layout, name) in [(Layout::Rfc3339, "time"), (Layout::Micro, "micro")] {
                let got = match Time::parse(layout, text) {
                    Ok(time) if layout == Layout::Micro => time.rfc3339_micro().unwrap(),
                    Ok(time) => format!("{} {time}", time.rfc3339().unwrap()),
                    Err(error) => error,
                };
                assert_eq!(got, row[name].as_str().unwrap(), "{row}");
            }
        }
    }
}
