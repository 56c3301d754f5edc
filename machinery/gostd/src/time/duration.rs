//! `time.ParseDuration` and `Duration.String`: `1m30s`, `-1.5h`, `0`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::rfc3339::quote;

/// A Go `time.Duration`: a signed number of nanoseconds, at most about 292 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GoDuration(pub i64);

/// Reason why a text is not a duration, with Go's message.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DurationError {
    /// The text does not have the form `[-+](number unit)+`, or is out of range.
    Invalid(String),
    /// A number has no unit.
    MissingUnit(String),
    /// A unit is unknown.
    UnknownUnit {
        /// The unknown unit.
        unit: String,
        /// The whole text.
        text: String,
    },
}

impl std::error::Error for DurationError {}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(text) => write!(f, "time: invalid duration {}", quote(text)),
            Self::MissingUnit(text) => write!(f, "time: missing unit in duration {}", quote(text)),
            Self::UnknownUnit { unit, text } => {
                write!(f, "time: unknown unit {} in duration {}", quote(unit), quote(text))
            }
        }
    }
}

const SECOND: u64 = 1_000_000_000;

impl GoDuration {
    /// Returns the duration, or zero if it is negative.
    #[must_use]
    pub fn to_std(self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0).unwrap_or(0))
    }

    /// Converts a standard duration; values that are too large become the maximum.
    #[must_use]
    pub fn from_std(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// Parses a duration that is not negative.
///
/// # Errors
/// [`DurationError`]; a negative duration is invalid.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let duration = GoDuration::from_str(text)?;
    if duration.0 < 0 { Err(DurationError::Invalid(text.to_owned())) } else { Ok(duration.to_std()) }
}

/// Formats a duration like Go: `1h0m0s`, `1.5s`, `100ms`, `0s`.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    GoDuration::from_std(duration).to_string()
}

impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let invalid = || DurationError::Invalid(text.to_owned());
        let negative = text.starts_with('-');
        let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
        if rest == "0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (nanos, after) = term(rest, text)?;
            total = total.checked_add(nanos).filter(|sum| *sum <= 1 << 63).ok_or_else(invalid)?;
            rest = after;
        }
        match (negative, i64::try_from(total)) {
            (true, Ok(nanos)) => Ok(Self(-nanos)),
            (true, Err(_)) => Ok(Self(i64::MIN)),
            (false, Ok(nanos)) => Ok(Self(nanos)),
            (false, Err(_)) => Err(invalid()),
        }
    }
}

/// Parses one `number unit`. Returns nanoseconds and the rest.
fn term<'a>(rest: &'a str, text: &str) -> Result<(u64, &'a str), DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, mut after) = rest.split_at(digits(rest));
    let mut fraction = "";
    if let Some(dotted) = after.strip_prefix('.') {
        (fraction, after) = dotted.split_at(digits(dotted));
    }
    if whole.is_empty() && fraction.is_empty() {
        return Err(invalid());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
    if whole > 1 << 63 {
        return Err(invalid());
    }
    let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
    let (unit, after) = after.split_at(end);
    let scale = match unit {
        "" => return Err(DurationError::MissingUnit(text.to_owned())),
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3600 * SECOND,
        other => return Err(DurationError::UnknownUnit { unit: other.to_owned(), text: text.to_owned() }),
    };
    let nanos = whole.checked_mul(scale).filter(|n| *n <= 1 << 63).ok_or_else(invalid)?;
    let fraction = if fraction.is_empty() { 0 } else { fraction_nanos(fraction, scale) };
    Ok((nanos + fraction, after))
}

/// Returns the nanoseconds of a fraction of `scale`, computed with floats like Go; digits that exceed 63 bits are ignored.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "same conversions as in Go"
)]
fn fraction_nanos(fraction: &str, scale: u64) -> u64 {
    let (mut value, mut base) = (0_u64, 1.0);
    for digit in fraction.bytes() {
        let longer = (value * 10).saturating_add(u64::from(digit - b'0'));
        if longer > 1 << 63 {
            break;
        }
        (value, base) = (longer, base * 10.0);
        if value > i64::MAX.unsigned_abs() / 10 {
            break;
        }
    }
    (value as f64 * (scale as f64 / base)) as u64
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let nanos = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        if nanos < SECOND {
            let (scale, unit) = match nanos {
                0..1_000 => (1, "ns"),
                1_000..1_000_000 => (1_000, "µs"),
                _ => (1_000_000, "ms"),
            };
            return write!(f, "{}{unit}", decimal(nanos, scale));
        }
        let (hours, minutes) = (nanos / (3600 * SECOND), nanos / (60 * SECOND) % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{}s", decimal(nanos % (60 * SECOND), SECOND))
    }
}

/// Formats `nanos / scale` without trailing zeros.
fn decimal(nanos: u64, scale: u64) -> String {
    let (whole, rest) = (nanos / scale, nanos % scale);
    if rest == 0 {
        return whole.to_string();
    }
    let width = scale.ilog10() as usize;
    let text = format!("{whole}.{rest:0width$}");
    text.trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_parse_as_in_go() {
        let table: &[(&str, i64)] = &[
            ("0", 0),
            ("5s", 5_000_000_000),
            ("1m30s", 90_000_000_000),
            ("-1.5h", -5_400_000_000_000),
            ("+100ms", 100_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("3us", 3_000),
            ("3µs", 3_000),
            ("-9223372036854775808ns", i64::MIN),
        ];
        for (text, nanos) in table {
            assert_eq!(text.parse(), Ok(GoDuration(*nanos)), "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_rejected_as_in_go() {
        for text in ["", "-", ".s", "s", "1 s", "9223372036854775808ns", "99999999999999999999h"] {
            assert!(text.parse::<GoDuration>().is_err(), "{text}");
        }
        assert_eq!(parse_duration("10").unwrap_err().to_string(), "time: missing unit in duration \"10\"");
        assert_eq!(
            parse_duration("1d").unwrap_err().to_string(),
            "time: unknown unit \"d\" in duration \"1d\""
        );
        assert_eq!(parse_duration("-1s").unwrap_err().to_string(), "time: invalid duration \"-1s\"");
    }

    #[test]
    fn durations_print_as_in_go() {
        let table = [(0, "0s"), (1, "1ns"), (1_100, "1.1µs"), (2_200_000, "2.2ms"), (3_300_000_000, "3.3s")];
        for (nanos, text) in table {
            assert_eq!(GoDuration(nanos).to_string(), text);
        }
        assert_eq!(format_duration(Duration::from_secs(3600)), "1h0m0s");
        assert_eq!(GoDuration(-90_000_000_000).to_string(), "-1m30s");
    }

    #[test]
    fn durations_read_and_print_as_recorded() {
        let rows = include_str!("../../testdata/durations.jsonl").lines();
        let mut count = 0;
        for row in rows {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            let got = match row["text"].as_str().unwrap().parse::<GoDuration>() {
                Ok(duration) => format!("{} {duration}", duration.0),
                Err(error) => error.to_string(),
            };
            assert_eq!(got, row["answer"].as_str().unwrap(), "{row}");
            count += 1;
        }
        assert!(count > 200, "{count} rows");
    }

    proptest! {
        #[test]
        fn formatted_durations_parse_to_the_same_value(nanos: i64) {
            let duration = GoDuration(nanos);
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,24}") {
            let _ = text.parse::<GoDuration>();
        }
    }
}
