//! Times as upstream reads them: RFC 3339 against a layout, with the layout named in what it says of a misfit.

use jiff::Timestamp;
use portico_machinery::time;

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// A time in canonical form: UTC, whole seconds; a fraction is cut off.
///
/// # Errors
/// Go's words for what does not fit the layout.
pub fn seconds(text: &str) -> Result<String, String> {
    read(text, LAYOUT).map(time::rfc3339)
}

/// A time in canonical form: UTC, exactly six digits, which upstream demands on input, too.
pub(crate) fn micros(text: &str) -> Result<String, String> {
    read(text, MICRO_LAYOUT).map(time::rfc3339_micro)
}

fn read(text: &str, layout: &str) -> Result<Timestamp, String> {
    let misfit = |rest: &str, piece: &str| {
        format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {piece:?}")
    };
    let mut rest = text;
    let micro = layout == MICRO_LAYOUT;
    let pieces = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"];
    for piece in pieces {
        rest = take(rest, piece).ok_or_else(|| misfit(rest, piece))?;
    }
    if micro {
        rest = rest.strip_prefix('.').and_then(|r| digits(r, 6)).ok_or_else(|| misfit(rest, ".000000"))?;
    } else if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let after = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        if after.len() < fraction.len() {
            rest = after;
        }
    }
    let after = zone(rest).ok_or_else(|| misfit(rest, "Z07:00"))?;
    if !after.is_empty() {
        return Err(format!("parsing time {text:?}: extra text: {after:?}"));
    }
    ranges(text)?;
    text.replacen(',', ".", 1).parse().map_err(|_| format!("parsing time {text:?}: day out of range"))
}

/// What follows this piece of a layout: digits where it has digits, else the character itself.
fn take<'t>(text: &'t str, piece: &str) -> Option<&'t str> {
    if piece.starts_with(|c: char| c.is_ascii_digit()) {
        digits(text, piece.len())
    } else {
        text.strip_prefix(piece)
    }
}

fn digits(text: &str, count: usize) -> Option<&str> {
    let head = text.as_bytes().get(..count)?;
    head.iter().all(u8::is_ascii_digit).then(|| &text[count..])
}

fn zone(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix('Z') {
        return Some(rest);
    }
    digits(digits(text.strip_prefix(['+', '-'])?, 2)?.strip_prefix(':')?, 2)
}

/// Checks the ranges of a text whose shape is known: digits stand where the layout has them.
fn ranges(text: &str) -> Result<(), String> {
    let number = |from: usize| text[from..from + 2].parse::<u8>().unwrap_or(u8::MAX);
    let rows = [
        (5, 1..=12, "month"),
        (8, 1..=31, "day"),
        (11, 0..=23, "hour"),
        (14, 0..=59, "minute"),
        (17, 0..=59, "second"),
    ];
    for (from, range, name) in rows {
        if !range.contains(&number(from)) {
            return Err(format!("parsing time {text:?}: {name} out of range"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_canonical() {
        let rows = [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05.987Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
        ];
        for (text, want) in rows {
            assert_eq!(seconds(text).as_deref(), Ok(want));
        }
        assert_eq!(micros("2026-01-02T03:04:05.123456-01:00").unwrap(), "2026-01-02T04:04:05.123456Z");
    }

    #[test]
    fn misfits_name_the_layout() {
        let rows = [
            ("yesterday", r#"as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#),
            ("", r#"parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006""#),
            ("2026-01-02", r#"cannot parse "" as "T""#),
            ("2026-01-02T03:04:05", r#"cannot parse "" as "Z07:00""#),
            ("2026-13-02T03:04:05Z", ": month out of range"),
            ("2026-02-30T03:04:05Z", ": day out of range"),
            ("2026-01-02T03:04:05Zx", r#": extra text: "x""#),
        ];
        for (text, want) in rows {
            let error = seconds(text).unwrap_err();
            assert!(error.ends_with(want), "{error}");
        }
        let error = micros("2026-01-02T03:04:05Z").unwrap_err();
        assert!(error.ends_with(r#"cannot parse "Z" as ".000000""#), "{error}");
        assert!(seconds("2026-01-0\u{e9}").is_err());
    }
}
