//! Spans of time in nanoseconds, spelled as Go spells them.

use std::fmt;

use portico_gostd::time::GoDuration;

use crate::EvalError;

/// A span of time: nanoseconds, up to about 292 years either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    /// Nanoseconds.
    pub nanos: i64,
}

const SECOND: i64 = 1_000_000_000;
/// Units of the schema format `duration`, in nanoseconds; the last spelling of each is a prefix.
const LOOSE_UNITS: [(&[&str], i64); 8] = [
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], SECOND),
    (&["m", "min"], 60 * SECOND),
    (&["h", "hr", "hour"], 3_600 * SECOND),
    (&["d", "day"], 86_400 * SECOND),
    (&["w", "wk", "week"], 604_800 * SECOND),
];

impl Duration {
    /// Of so many nanoseconds.
    ///
    /// # Errors
    /// `integer overflow` beyond 64 bits.
    pub fn of(nanos: i128) -> Result<Self, EvalError> {
        i64::try_from(nanos).map(|nanos| Self { nanos }).map_err(|_| EvalError::new("integer overflow"))
    }

    /// Go's spelling: `1h30m`, `-1.5s`, `0`. None for any other.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(|GoDuration(nanos)| Self { nanos })
    }

    /// The schema format `duration`: Go's spelling, or numbers with units such as `3 days`.
    ///
    /// # Errors
    /// Upstream's sentence.
    pub fn parse_loose(text: &str) -> Result<Self, String> {
        if let Some(duration) = Self::parse(text) {
            return Ok(duration);
        }
        let refused = || format!("unable to parse {text} as duration");
        let mut total: Option<i64> = None;
        let mut rest = text;
        while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
            rest = &rest[start..];
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let number = &rest[..digits];
            let unit = rest[digits..].trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
            let length = unit.find(|c: char| !(c.is_ascii_alphabetic() || c == 'µ')).unwrap_or(unit.len());
            rest = &unit[length..];
            if length == 0 {
                continue;
            }
            let factor: i64 = number.parse().map_err(|_| refused())?;
            if let Some(scale) = loose_unit(&unit[..length].to_lowercase()) {
                // Sums beyond 64 bits wrap around, as upstream's do.
                total = Some(total.unwrap_or(0).wrapping_add(factor.wrapping_mul(scale)));
            }
        }
        total.map(|nanos| Self { nanos }).ok_or_else(refused)
    }

    /// In seconds, as a number with a fraction.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "as Go's Seconds()")]
    pub fn seconds(&self) -> f64 {
        (self.nanos / 1_000_000_000) as f64 + (self.nanos % 1_000_000_000) as f64 / 1e9
    }
}

fn loose_unit(unit: &str) -> Option<i64> {
    LOOSE_UNITS
        .iter()
        .find(|(names, _)| {
            names.contains(&unit) || names.last().is_some_and(|prefix| unit.starts_with(prefix))
        })
        .map(|(_, scale)| *scale)
}

/// As `string(duration)` spells it: `90s`, `0.5s`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_go_reads_them() {
        let cases = [
            ("1h30m", Some(5_400_000_000_000)),
            ("-1.5s", Some(-1_500_000_000)),
            (".5ms", Some(500_000)),
            ("0", Some(0)),
            ("+5ns", Some(5)),
            ("1", None),
            ("", None),
            ("s", None),
            (".s", None),
            ("1d", None),
            ("9223372036.854775807s", Some(i64::MAX)),
            ("9223372037s", None),
            ("-9223372036.854775808s", Some(i64::MIN)),
        ];
        for (text, nanos) in cases {
            assert_eq!(Duration::parse(text).map(|d| d.nanos), nanos, "{text}");
        }
    }

    #[test]
    fn the_schema_format_knows_days_and_weeks() {
        assert_eq!(Duration::parse_loose("3 days").unwrap().nanos, 3 * 86_400 * 1_000_000_000);
        assert_eq!(Duration::parse_loose("1w 2h").unwrap().nanos, (604_800 + 7_200) * 1_000_000_000);
        assert!(Duration::parse_loose("soon").is_err());
    }

    #[test]
    fn spans_are_printed_in_seconds() {
        assert_eq!(Duration { nanos: 5_400_000_000_000 }.to_string(), "5400s");
        assert_eq!(Duration { nanos: -500_000_000 }.to_string(), "-0.5s");
    }
}
