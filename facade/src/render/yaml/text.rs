//! Strings in the style that go-yaml selects: plain, quoted or literal.

use std::fmt::Write as _;

/// Writes a string that starts at the cursor.
pub(super) fn text(value: &str, indent: usize, out: &mut String) {
    let has_lines = value.contains('\n');
    // As upstream, lines that end in a space are not written as lines.
    let ends_in_space = value.contains(" \n") || has_lines && value.ends_with(' ');
    if ends_in_space || !value.chars().all(is_printable) {
        return double_quoted(value, out);
    }
    if has_lines {
        return literal(value, indent, out);
    }
    if is_plain(value) {
        return if resolves_to_other_type(value) { double_quoted(value, out) } else { out.push_str(value) };
    }
    out.push('\'');
    out.push_str(&value.replace('\'', "''"));
    out.push('\'');
}

/// True for a character that needs no double quotes. As upstream, tabs and characters above 16 bits need them.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// Writes a literal: `|`, an indentation indicator if needed, a chomping indicator, and the lines.
fn literal(value: &str, indent: usize, out: &mut String) {
    out.push('|');
    if value.starts_with([' ', '\n']) {
        out.push('2');
    }
    let trailing = value.len() - value.trim_end_matches('\n').len();
    out.push_str(match trailing {
        0 => "-",
        1 if value.len() > 1 => "",
        _ => "+",
    });
    let body = if trailing == 0 { value } else { &value[..value.len() - 1] };
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', indent.max(2)));
            out.push_str(line);
        }
    }
}

/// Writes a string in double quotes.
pub(super) fn double_quoted(value: &str, out: &mut String) {
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\u{1b}' => out.push_str("\\e"),
            '\u{85}' => out.push_str("\\N"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            c if is_printable(c) => out.push(c),
            c => escape(u32::from(c), out),
        }
    }
    out.push('"');
}

fn escape(code: u32, out: &mut String) {
    let _ = match code {
        0..=0xff => write!(out, "\\x{code:02X}"),
        0x100..=0xffff => write!(out, "\\u{code:04X}"),
        _ => write!(out, "\\U{code:08X}"),
    };
}

/// True if the syntax of YAML allows the text without quotes.
fn is_plain(value: &str) -> bool {
    let Some(first) = value.chars().next() else { return true };
    if value.starts_with(' ') || value.ends_with(' ') || value.starts_with("---") || value.starts_with("...")
    {
        return false;
    }
    let second_space = value.chars().nth(1).is_none_or(char::is_whitespace);
    let bad_start = match first {
        '-' | '?' | ':' => second_space,
        c => "#,[]{}&*!|>'\"%@`".contains(c),
    };
    !bad_start && !value.contains(": ") && !value.ends_with(':') && !value.contains(" #")
}

/// True if YAML 1.1, as upstream reads it, resolves the bare text to another type than string.
fn resolves_to_other_type(value: &str) -> bool {
    is_keyword(value) || is_number(value) || is_timestamp(value)
}

/// True for a keyword of YAML 1.1 in one of its three spellings: `null`, `Null`, `NULL`.
fn is_keyword(value: &str) -> bool {
    const WORDS: &[&str] =
        &["null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", "-.inf", "+.inf"];
    const OTHERS: &[&str] = &["", "~", ".nan", ".NaN", ".NAN"];
    let spelled = |word: &str| {
        let letter = word.find(|c: char| c.is_ascii_lowercase()).unwrap_or(0);
        let capital =
            format!("{}{}{}", &word[..letter], word[letter..=letter].to_uppercase(), &word[letter + 1..]);
        value == word || value == capital || value == word.to_uppercase()
    };
    OTHERS.contains(&value) || WORDS.iter().any(|word| spelled(word))
}

fn is_number(value: &str) -> bool {
    let digits = value.trim_start_matches(['+', '-']);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return false;
    }
    let number = digits.replace('_', "");
    let is_in_base = |prefix: &str, base: u32| {
        number
            .strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_digit(base)))
    };
    let sexagesimal = || {
        number.contains(':')
            && number.split(':').all(|p| !p.is_empty() && p.chars().all(|c| c.is_ascii_digit() || c == '.'))
    };
    number.parse::<f64>().is_ok()
        || is_in_base("0x", 16)
        || is_in_base("0b", 2)
        || is_in_base("0o", 8)
        || sexagesimal()
}

/// True for a date, or a date and a time of day.
fn is_timestamp(value: &str) -> bool {
    let date = value.split(['T', 't', ' ']).next().unwrap_or_default();
    let time = &value[date.len()..];
    is_date(date) && (time.is_empty() || is_time(time))
}

fn is_date(date: &str) -> bool {
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let parse_part = |text: &str| text.parse::<i8>().ok().filter(|_| is_digits(text, 1..=2));
    let (Some(month), Some(day)) = (parse_part(month), parse_part(day)) else { return false };
    is_digits(year, 4..=4) && year.parse().is_ok_and(|year| jiff::civil::Date::new(year, month, day).is_ok())
}

/// True for a time of day with its separator: with a zone after `T`, without one after a space.
fn is_time(text: &str) -> bool {
    let (separator, time) = text.split_at(1);
    let clock = match (separator, time.strip_suffix('Z')) {
        (" ", _) => Some(time),
        (_, Some(clock)) => Some(clock),
        (_, None) => {
            time.rfind(['+', '-']).filter(|at| is_clock(&time[at + 1..], 2..=2)).map(|at| &time[..at])
        }
    };
    clock.is_some_and(|clock| is_clock(clock, 3..=3))
}

/// True for numbers between colons, the last one with an optional fraction.
fn is_clock(text: &str, parts: std::ops::RangeInclusive<usize>) -> bool {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let numbers: Vec<&str> = clock.split(':').collect();
    let is_below = |text: &str, limit: u8| text.parse::<u8>().is_ok_and(|number| number < limit);
    parts.contains(&numbers.len())
        && is_digits(fraction, 1..=9)
        && is_digits(numbers[0], 2..=2)
        && is_below(numbers[0], 24)
        && numbers[1..].iter().all(|number| is_digits(number, 1..=2) && is_below(number, 60))
}

fn is_digits(text: &str, count: std::ops::RangeInclusive<usize>) -> bool {
    count.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_have_the_style_that_upstream_chooses() {
        for (value, want) in [
            ("a\tb", r#""a\tb""#),
            ("a\n\tb", r#""a\n\tb""#),
            ("a \nb", r#""a \nb""#),
            ("\na", "|2-\n\n  a"),
            (" a\nb", "|2-\n   a\n  b"),
            ("\n", "|2+\n"),
            ("a\n\n", "|+\n  a\n"),
            ("\u{1}", r#""\x01""#),
            ("\u{1b}[0m", r#""\e[0m""#),
            ("\u{1f600}", r#""\U0001F600""#),
            ("\u{feff}", r#""\uFEFF""#),
            ("=", "="),
            ("<<", "<<"),
            ("nULL", "nULL"),
            ("NULL", r#""NULL""#),
            (".Inf", r#"".Inf""#),
            ("oN", "oN"),
            ("2024-1-2", r#""2024-1-2""#),
            ("2024-01-02 03:04:05", r#""2024-01-02 03:04:05""#),
            ("2024-01-02t03:04:05+01:00", r#""2024-01-02t03:04:05+01:00""#),
            ("2024-01-02t03:04:05z", "2024-01-02t03:04:05z"),
            ("2024-01-02T", "2024-01-02T"),
            ("9999-99-99", "9999-99-99"),
        ] {
            let mut out = String::new();
            text(value, 2, &mut out);
            assert_eq!(out, want, "{value:?}");
        }
    }
}
