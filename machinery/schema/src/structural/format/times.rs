//! Formats of dates, times and durations, as lenient as upstream reads them.

use jiff::civil::Date;
use portico_cel::value::Duration;

/// `2006-01-02`, a day that there is.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 10
        && bytes.iter().enumerate().all(|(at, b)| match at {
            4 | 7 => *b == b'-',
            _ => b.is_ascii_digit(),
        });
    if !shaped {
        return false;
    }
    let number = |from: usize, to: usize| text[from..to].parse::<i8>();
    match (text[..4].parse::<i16>(), number(5, 7), number(8, 10)) {
        (Ok(year), Ok(month), Ok(day)) => Date::new(year, month, day).is_ok(),
        _ => false,
    }
}

/// A date, `t` and a time with a zone, in any case.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    match (parts.next(), parts.next()) {
        (Some(date), Some(time)) => is_date(date) && is_time(time),
        _ => false,
    }
}

/// `15:04:05`, perhaps any character and digits, and `z` or `+00:00`.
fn is_time(text: &str) -> bool {
    let mut rest = text;
    for (separator, most) in [("", "23"), (":", "59"), (":", "59")] {
        let Some(number) = rest.strip_prefix(separator).and_then(|rest| rest.get(..2)) else { return false };
        if !number.bytes().all(|b| b.is_ascii_digit()) || number > most {
            return false;
        }
        rest = &rest[separator.len() + 2..];
    }
    is_zone(rest) || after_fraction(rest).is_some_and(is_zone)
}

/// What follows a character and digits.
fn after_fraction(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    chars.next().filter(|c| *c != '\n')?;
    let digits = chars.as_str();
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < digits.len()).then_some(rest)
}

fn is_zone(text: &str) -> bool {
    let bytes = text.as_bytes();
    text == "z"
        || (bytes.len() == 6
            && matches!(bytes[0], b'+' | b'-')
            && bytes[3] == b':'
            && [1, 2, 4, 5].iter().all(|at| bytes[*at].is_ascii_digit()))
}

/// A duration as Go writes them, or numbers with words such as `3 weeks`.
pub(super) fn is_duration(text: &str) -> bool {
    Duration::parse_loose(text).is_ok()
}
