//! Operations on strings by characters.

use std::ops::Range;

use super::limits::{MAX_TEXT_BYTES, too_long};
use crate::error::EvalError;
use crate::value::Text;

fn out_of_range(index: i64) -> EvalError {
    EvalError::new(format!("index out of range: {index}"))
}

/// Returns the offset of a character, or of the end for the index after the last one. `None` for larger indices.
fn byte_at(text: &str, character: usize) -> Option<usize> {
    if text.is_ascii() {
        return (character <= text.len()).then_some(character);
    }
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(character)
}

/// Returns a part of a string, borrowed or shared like the string.
pub(super) fn part<'v>(text: &Text<'v>, range: Range<usize>) -> Text<'v> {
    match text {
        Text::Borrowed(text) => Text::Borrowed(&text[range]),
        Text::Shared(text) => Text::Shared(text[range].into()),
    }
}

/// Returns the character at an index, or an empty string at the end.
pub(super) fn char_at<'v>(text: &Text<'v>, index: i64) -> Result<Text<'v>, EvalError> {
    let start = usize::try_from(index).ok().and_then(|index| byte_at(text, index));
    let start = start.ok_or_else(|| out_of_range(index))?;
    let length = text[start..].chars().next().map_or(0, char::len_utf8);
    Ok(part(text, start..start + length))
}

/// Returns the first index of a string at or after an offset; -1 if there is none.
pub(super) fn index_of(text: &str, needle: &str, offset: i64) -> Result<i64, EvalError> {
    if needle.is_empty() {
        return Ok(offset);
    }
    let from = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
    let Some(start) = byte_at(text, from) else { return Ok(-1) };
    Ok(text[start..].find(needle).map_or(-1, |at| offset + characters(&text[start..start + at])))
}

/// Returns the last index of a string at or before an offset; -1 if there is none.
pub(super) fn last_index_of(text: &str, needle: &str, offset: Option<i64>) -> Result<i64, EvalError> {
    if needle.is_empty() {
        return Ok(offset.unwrap_or_else(|| characters(text)));
    }
    let end = match offset {
        None => text.len(),
        Some(offset) => {
            let from = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
            match byte_at(text, from).filter(|start| *start < text.len()) {
                Some(start) => start.saturating_add(needle.len()).min(text.len()),
                None => return Ok(-1),
            }
        }
    };
    // The match must end at a character boundary.
    let within = &text[..text.floor_char_boundary(end)];
    Ok(within.rfind(needle).map_or(-1, |at| characters(&text[..at])))
}

fn characters(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

/// Returns the characters from a start index to an end index, or to the end.
pub(super) fn substring<'v>(text: &Text<'v>, start: i64, end: Option<i64>) -> Result<Text<'v>, EvalError> {
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(EvalError::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let byte = |index: i64| {
        usize::try_from(index).ok().and_then(|index| byte_at(text, index)).ok_or_else(|| out_of_range(index))
    };
    let from = byte(start)?;
    let to = end.map_or(Ok(text.len()), byte)?;
    Ok(part(text, from..to))
}

/// Splits a string into at most `limit` pieces, the last with the rest; all pieces if `limit` is negative.
pub(super) fn split<'v>(text: &Text<'v>, separator: &str, limit: i64) -> Vec<Text<'v>> {
    let max_pieces = usize::try_from(limit).unwrap_or(usize::MAX);
    if max_pieces == 0 || (separator.is_empty() && text.is_empty()) {
        return Vec::new();
    }
    let mut pieces = Vec::new();
    let mut start = 0;
    while pieces.len() + 1 < max_pieces {
        let found = if separator.is_empty() {
            text[start..].char_indices().nth(1).map(|(at, _)| at)
        } else {
            text[start..].find(separator)
        };
        let Some(index) = found else { break };
        pieces.push(part(text, start..start + index));
        start += index + separator.len();
    }
    pieces.push(part(text, start..text.len()));
    pieces
}

/// Replaces at most `max` occurrences; all if `max` is negative.
pub(super) fn replace(text: &str, old: &str, new: &str, max: i64) -> Result<String, EvalError> {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let found = text.matches(old).take(max).count();
    let length = found.saturating_mul(new.len()).saturating_add(text.len());
    if length.saturating_sub(found.saturating_mul(old.len())) > MAX_TEXT_BYTES {
        return Err(EvalError::new(too_long()));
    }
    Ok(text.replacen(old, new, max))
}

/// Formats a string as a CEL literal. Only characters with a one-letter escape are escaped.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(text: &str) -> Text<'static> {
        Text::Shared(text.into())
    }

    #[test]
    fn positions_count_characters() {
        let ok = |result: Result<i64, EvalError>| result.map_err(|error| error.to_string());
        let out = |index: i64| Err(format!("index out of range: {index}"));
        for (text, needle, offset, want) in [
            ("tacocat", "ac", 0, Ok(1)),
            ("ta©o©αT", "©", 3, Ok(4)),
            ("tacocat", "", 100, Ok(100)),
            ("tacocat", "", -5, Ok(-5)),
            ("tacocat", "a", 7, Ok(-1)),
            ("tacocat", "a", 70, Ok(-1)),
            ("tacocat", "a", -1, out(-1)),
            ("", "a", 0, Ok(-1)),
        ] {
            assert_eq!(ok(index_of(text, needle, offset)), want, "{text} {needle} {offset}");
        }
        for (text, needle, offset, want) in [
            ("tacocat", "at", None, Ok(5)),
            ("tacocat", "", None, Ok(7)),
            ("ta©o©αT", "©", Some(3), Ok(2)),
            ("ta©o©αT", "o©", Some(3), Ok(3)),
            ("text", "t", Some(2), Ok(0)),
            ("text", "text", Some(3), Ok(0)),
            ("text", "textt", None, Ok(-1)),
            ("text", "t", Some(4), Ok(-1)),
            ("text", "t", Some(-3), out(-3)),
            ("", "", None, Ok(0)),
            ("", "", Some(9), Ok(9)),
        ] {
            assert_eq!(ok(last_index_of(text, needle, offset)), want, "{text} {needle} {offset:?}");
        }
    }

    #[test]
    fn substrings_are_indexed_by_characters() {
        for (index, want) in [(0, Some("a")), (1, Some("é")), (2, Some("")), (3, None), (-1, None)] {
            assert_eq!(char_at(&shared("aé"), index).ok().as_deref(), want, "{index}");
        }
        for (start, end, want) in [
            (0, None, Ok("tacé")),
            (4, None, Ok("")),
            (1, Some(4), Ok("acé")),
            (3, Some(2), Err("invalid substring range. start: 3, end: 2")),
            (-1, Some(2), Err("index out of range: -1")),
            (1, Some(9), Err("index out of range: 9")),
            (5, None, Err("index out of range: 5")),
        ] {
            let found = substring(&shared("tacé"), start, end).map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), want, "{start} {end:?}");
        }
    }

    #[test]
    fn texts_are_split_into_at_most_the_requested_pieces() {
        for (text, separator, max, want) in [
            ("a,b,c", ",", -1, vec!["a", "b", "c"]),
            ("a,b,c", ",", 0, vec![]),
            ("a,b,c", ",", 1, vec!["a,b,c"]),
            ("a,b,c", ",", 2, vec!["a", "b,c"]),
            ("aéc", "", -1, vec!["a", "é", "c"]),
            ("aéc", "", 2, vec!["a", "éc"]),
            ("", "", -1, vec![]),
            ("", ",", -1, vec![""]),
            (",", ",", -1, vec!["", ""]),
        ] {
            let pieces = split(&shared(text), separator, max);
            assert_eq!(
                pieces.iter().map(|piece| &**piece).collect::<Vec<_>>(),
                want,
                "{text} {separator} {max}"
            );
        }
    }

    #[test]
    fn replacements_are_counted_and_bounded() {
        for (text, old, new, max, want) in [
            ("abc", "", "-", -1, "-a-b-c-"),
            ("abc", "", "-", 2, "-a-bc"),
            ("aaa", "a", "b", 0, "aaa"),
            ("aaa", "a", "b", 2, "bba"),
            ("aaa", "aa", "", -1, "a"),
        ] {
            assert_eq!(replace(text, old, new, max).unwrap(), want, "{text} {old} {new} {max}");
        }
        let long = "a".repeat(100_000);
        assert!(replace(&long, "a", &long, -1).is_err());
    }

    #[test]
    fn quotes_only_escape_characters_with_a_letter_escape() {
        assert_eq!(quote("a\"b\\\u{7}\n\u{1}é"), "\"a\\\"b\\\\\\a\\n\u{1}é\"");
    }
}
