//! Checks of formats. Each returns the violations in a string.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_gostd::apimachinery::validation;
use portico_gostd::strfmt::{is_date, is_date_time};
use portico_gostd::url::check_request_uri;

/// Masks a trailing dash, which a name prefix may have.
fn without_dash(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(before) if !before.is_empty() => {
            let mut characters = before.chars();
            characters.next_back();
            format!("{}a", characters.as_str())
        }
        _ => name.to_owned(),
    }
}

pub(super) fn dns1123_label(text: &str) -> Vec<String> {
    validation::dns1123_label(text)
}

pub(super) fn dns1123_subdomain(text: &str) -> Vec<String> {
    validation::dns1123_subdomain(text)
}

pub(super) fn dns1035_label(text: &str) -> Vec<String> {
    validation::dns1035_label(text)
}

pub(super) fn dns1123_label_prefix(text: &str) -> Vec<String> {
    validation::dns1123_label(&without_dash(text))
}

pub(super) fn dns1123_subdomain_prefix(text: &str) -> Vec<String> {
    validation::dns1123_subdomain(&without_dash(text))
}

pub(super) fn dns1035_label_prefix(text: &str) -> Vec<String> {
    validation::dns1035_label(&without_dash(text))
}

pub(super) fn qualified_name(text: &str) -> Vec<String> {
    validation::qualified_name(text)
}

pub(super) fn label_value(text: &str) -> Vec<String> {
    validation::label_value(text)
}

pub(super) fn uri(text: &str) -> Vec<String> {
    check_request_uri(text).err().into_iter().collect()
}

fn violation_unless(fine: bool, problem: &str) -> Vec<String> {
    if fine { Vec::new() } else { vec![problem.to_owned()] }
}

/// Checks five groups of hexadecimal digits; the dashes between them are optional.
pub(super) fn uuid(text: &str) -> Vec<String> {
    let mut rest = Some(text);
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        rest = rest.and_then(|rest| {
            let rest = if index == 0 { rest } else { rest.strip_prefix('-').unwrap_or(rest) };
            let (group, rest) = rest.split_at_checked(length)?;
            group.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(rest)
        });
    }
    violation_unless(rest == Some(""), "does not match the UUID format")
}

/// Checks padded, non-empty base64.
pub(super) fn byte(text: &str) -> Vec<String> {
    // Unused bits of the last character are ignored.
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    let fine = !body.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && body.bytes().all(|byte| STANDARD.decode([byte, byte, byte, byte]).is_ok());
    violation_unless(fine, "invalid base64")
}

pub(super) fn date(text: &str) -> Vec<String> {
    violation_unless(is_date(text), "invalid date")
}

pub(super) fn datetime(text: &str) -> Vec<String> {
    violation_unless(is_date_time(text), "invalid datetime")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_schemas_are_checked_as_upstream_checks_them() {
        for (check, good, bad) in [
            (
                uuid as fn(&str) -> Vec<String>,
                vec!["123e4567-e89b-12d3-a456-426614174000", "123E4567e89b12d3a456426614174000"],
                vec!["", "x", "123e4567-e89b-12d3-a456-42661417400", "123e4567--e89b-12d3-a456-426614174000"],
            ),
            (
                byte,
                vec!["YWI=", "aGVsbG8=", "YWJj", "YWJ/", "YQ=="],
                vec!["", "a", "YWI", "YW I=", "Y===", "YW-_"],
            ),
            (
                date,
                vec!["2020-02-29", "0000-01-01"],
                vec!["2021-02-29", "2021-13-01", "2020-2-9", "99999-01-01", "2020/01/01", "+020-01-01"],
            ),
            (
                datetime,
                vec![
                    "2021-01-01T00:00:00Z",
                    "2021-01-01t23:59:59z",
                    "2021-01-01T00:00:00x5Z",
                    "2021-01-01T00:00:00+99:99",
                    "2021-01-01T00:00:00Ztrash",
                    "2021-01-01T00:00:00.123456-01:00",
                ],
                vec![
                    "2021-01-01T23:59:60Z",
                    "2021-01-01 00:00:00Z",
                    "2021-01-01T24:00:00Z",
                    "2021-01-01T00:00:00",
                    "",
                    "2021-01-01T00:00:00.Z",
                ],
            ),
        ] {
            assert_eq!(
                good.iter().filter(|text| !check(text).is_empty()).collect::<Vec<_>>(),
                Vec::<&&str>::new()
            );
            assert_eq!(
                bad.iter().filter(|text| check(text).is_empty()).collect::<Vec<_>>(),
                Vec::<&&str>::new()
            );
        }
    }

    #[test]
    fn prefixes_of_names_may_end_with_a_dash() {
        for (text, want) in
            [("a-", true), ("a--", true), ("-", false), ("A-", true), ("Ab-", false), ("é-", true)]
        {
            assert_eq!(dns1123_label_prefix(text).is_empty(), want, "{text}");
        }
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
    }
}
