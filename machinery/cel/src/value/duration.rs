//! Durations in nanoseconds, with Go's text format.

use std::fmt;

use portico_gostd::time::GoDuration;

use crate::error::EvalError;

/// A signed duration of at most about 292 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    /// Duration in nanoseconds.
    pub nanos: i64,
}

impl Duration {
    /// Returns a duration from nanoseconds.
    ///
    /// # Errors
    /// `integer overflow` if the number exceeds 64 bits.
    pub fn of(nanos: i128) -> Result<Self, EvalError> {
        i64::try_from(nanos).map(|nanos| Self { nanos }).map_err(|_| EvalError::new("integer overflow"))
    }

    /// Parses Go's format: `1h30m`, `-1.5s`, `0`. Returns `None` for other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(|GoDuration(nanos)| Self { nanos })
    }

    /// Returns the duration in seconds, with a fraction.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "as Go's Seconds()")]
    pub fn seconds(&self) -> f64 {
        (self.nanos / 1_000_000_000) as f64 + (self.nanos % 1_000_000_000) as f64 / 1e9
    }
}

/// Prints like CEL's `string(duration)`: `90s`, `0.5s`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_as_in_go() {
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
    fn durations_print_in_seconds() {
        assert_eq!(Duration { nanos: 5_400_000_000_000 }.to_string(), "5400s");
        assert_eq!(Duration { nanos: -500_000_000 }.to_string(), "-0.5s");
    }
}
