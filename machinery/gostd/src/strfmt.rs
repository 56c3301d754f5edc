//! `github.com/go-openapi/strfmt`: formats of dates, times and durations in OpenAPI schemas.
//!
//! ```
//! use portico_gostd::strfmt::{is_date, is_date_time, parse_duration};
//!
//! assert!(is_date("2024-02-29") && !is_date("2023-02-29"));
//! assert!(is_date_time("2024-02-29T12:00:00Z"));
//! assert_eq!(parse_duration("3 days"), Ok(3 * 86_400 * 1_000_000_000));
//! ```

use jiff::civil::Date;

use crate::time::GoDuration;

/// Units of the format `duration`, in nanoseconds. The last spelling of each is a prefix.
const UNITS: [(&[&str], i64); 8] = [
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], SECOND),
    (&["m", "min"], 60 * SECOND),
    (&["h", "hr", "hour"], 3_600 * SECOND),
    (&["d", "day"], 86_400 * SECOND),
    (&["w", "wk", "week"], 604_800 * SECOND),
];
const SECOND: i64 = 1_000_000_000;

/// True for a valid date in the form `2006-01-02` (`strfmt.IsDate`).
#[must_use]
pub fn is_date(text: &str) -> bool {
    let digits = |range: std::ops::Range<usize>| {
        text.get(range).filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
    };
    let fields = || {
        let (year, month, day): (i16, i8, i8) =
            (digits(0..4)?, digits(5..7)?.try_into().ok()?, digits(8..10)?.try_into().ok()?);
        Some((year, month, day))
    };
    let dashes = text.len() == 10 && text.as_bytes()[4] == b'-' && text.as_bytes()[7] == b'-';
    dashes && fields().is_some_and(|(year, month, day)| Date::new(year, month, day).is_ok())
}

/// True for a date, `t`, and a time with a zone, in any case (`strfmt.IsDateTime`). Text after another `t` is
/// ignored, as in Go.
#[must_use]
pub fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    parts.next().is_some_and(is_date) && parts.next().is_some_and(is_time)
}

/// True for `hh:mm:ss`, an optional fraction after any separator, and `z` or an offset. Leap seconds are invalid.
fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let field = |range: std::ops::Range<usize>, max: &str| {
        clock.get(range).is_some_and(|two| two.bytes().all(|byte| byte.is_ascii_digit()) && two <= max)
    };
    let colons = clock.as_bytes()[2] == b':' && clock.as_bytes()[5] == b':';
    if !(colons && field(0..2, "23") && field(3..5, "59") && field(6..8, "59")) {
        return false;
    }
    is_zone(rest) || without_fraction(rest).is_some_and(is_zone)
}

/// Returns the text after a character and at least one digit.
fn without_fraction(text: &str) -> Option<&str> {
    let mut characters = text.chars();
    characters.next().filter(|separator| *separator != '\n')?;
    let digits = characters.as_str();
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < digits.len()).then_some(rest)
}

fn is_zone(text: &str) -> bool {
    let offset = |text: &str| {
        let bytes = text.as_bytes();
        bytes.len() == 5 && bytes[2] == b':' && [0, 1, 3, 4].into_iter().all(|at| bytes[at].is_ascii_digit())
    };
    text == "z" || text.strip_prefix(['+', '-']).is_some_and(offset)
}

/// Parses the format `duration` (`strfmt.ParseDuration`): Go's format, or numbers with units such as `3 days`.
/// Returns nanoseconds.
///
/// # Errors
/// Go's message.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    if let Ok(GoDuration(nanos)) = text.parse() {
        return Ok(nanos);
    }
    let parse_error = || format!("unable to parse {text} as duration");
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
        let factor: i64 = number.parse().map_err(|_| parse_error())?;
        if let Some(scale) = unit_nanos(&unit[..length].to_lowercase()) {
            // Sums wrap around on overflow, as in upstream.
            total = Some(total.unwrap_or(0).wrapping_add(factor.wrapping_mul(scale)));
        }
    }
    total.ok_or_else(parse_error)
}

fn unit_nanos(unit: &str) -> Option<i64> {
    let found = UNITS.iter().find(|(names, _)| {
        names.contains(&unit) || names.last().is_some_and(|prefix| unit.starts_with(prefix))
    });
    found.map(|(_, nanos)| *nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_accepted_as_upstream_accepts_them() {
        for text in ["2020-02-29", "0000-01-01"] {
            assert!(is_date(text), "{text}");
        }
        for text in ["2021-02-29", "2021-13-01", "2020-2-9", "99999-01-01", "2020/01/01", "+020-01-01"] {
            assert!(!is_date(text), "{text}");
        }
        for text in ["2021-01-01T00:00:00Z", "2021-01-01t23:59:59z", "2021-01-01T00:00:00Ztrash"] {
            assert!(is_date_time(text), "{text}");
        }
        for text in ["2021-01-01T23:59:60Z", "2021-01-01 00:00:00Z", "2021-01-01T00:00:00.Z", ""] {
            assert!(!is_date_time(text), "{text}");
        }
    }

    #[test]
    fn durations_have_days_and_weeks() {
        assert_eq!(parse_duration("3 days"), Ok(3 * 86_400 * SECOND));
        assert_eq!(parse_duration("1w 2h"), Ok((604_800 + 7_200) * SECOND));
        assert_eq!(parse_duration("1h30m"), Ok(5_400 * SECOND));
        assert!(parse_duration("soon").is_err());
    }
}
