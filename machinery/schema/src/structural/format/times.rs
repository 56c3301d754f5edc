//! Formats of dates, times and durations, as lenient as upstream reads them.

use jiff::civil::Date;

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
    is_go_duration(text) || has_worded_duration(text)
}

/// Nanoseconds of the units that Go knows.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let most = i64::MAX as u128 + u128::from(text.starts_with('-'));
    let (mut total, mut any) = (0_u128, false);
    while !rest.is_empty() {
        let whole = digits(rest);
        let after = &rest[whole.len()..];
        let fraction = after.strip_prefix('.').map(digits);
        if whole.is_empty() && fraction.is_none_or(str::is_empty) {
            return false;
        }
        let after = &after[fraction.map_or(0, |fraction| fraction.len() + 1)..];
        let unit = &after[..after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len())];
        let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else { return false };
        let Ok(number) = (if whole.is_empty() { Ok(0) } else { whole.parse::<u64>() }) else { return false };
        total += u128::from(number) * nanos;
        if total > most {
            return false;
        }
        (rest, any) = (&after[unit.len()..], true);
    }
    any
}

fn digits(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())]
}

/// Units with all of their names; of the last the beginning is enough.
const WORDS: [&[&str]; 8] = [
    &["ns", "nano"],
    &["us", "\u{b5}s", "micro"],
    &["ms", "milli"],
    &["s", "sec"],
    &["m", "min"],
    &["h", "hr", "hour"],
    &["d", "day"],
    &["w", "wk", "week"],
];

/// Whether a number followed by a unit's name stands anywhere, and no such number is too large.
fn has_worded_duration(text: &str) -> bool {
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let number = digits(&rest[start..]);
        let after = rest[start + number.len()..].trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        let letters =
            after.find(|c: char| !(c.is_ascii_alphabetic() || c == '\u{b5}')).unwrap_or(after.len());
        rest = &after[letters..];
        if letters == 0 {
            continue;
        }
        if number.parse::<i64>().is_err() {
            return false;
        }
        let unit = after[..letters].to_lowercase();
        found |= WORDS.iter().any(|names| is_unit(&unit, names));
    }
    found
}

fn is_unit(unit: &str, names: &[&str]) -> bool {
    names.contains(&unit) || names.last().is_some_and(|longest| unit.starts_with(longest))
}
