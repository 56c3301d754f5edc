//! Times in the canonical form of the API.

use portico_gostd::time::{Layout, Time};

/// Converts a time to canonical form: UTC, whole seconds; a fraction is truncated.
///
/// # Errors
/// Go's error for text that does not match the layout.
pub fn canonical_seconds(text: &str) -> Result<String, String> {
    Time::parse(Layout::Rfc3339, text)?.rfc3339().ok_or_else(|| year_out_of_range(text))
}

/// Converts a time to canonical form: UTC, exactly six fraction digits, which upstream also requires on input.
pub(crate) fn canonical_micros(text: &str) -> Result<String, String> {
    Time::parse(Layout::Micro, text)?.rfc3339_micro().ok_or_else(|| year_out_of_range(text))
}

/// Returns the error for a time whose UTC year does not have four digits.
fn year_out_of_range(text: &str) -> String {
    format!("parsing time {text:?}: year out of range")
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
            assert_eq!(canonical_seconds(text).as_deref(), Ok(want));
        }
        assert_eq!(canonical_seconds("9999-12-31T23:59:59Z").as_deref(), Ok("9999-12-31T23:59:59Z"));
        assert!(canonical_seconds("9999-12-31T23:59:59-01:00").is_err());
        assert_eq!(
            canonical_micros("2026-01-02T03:04:05.123456-01:00").unwrap(),
            "2026-01-02T04:04:05.123456Z"
        );
    }

    #[test]
    fn type_mismatches_name_the_layout() {
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
            let error = canonical_seconds(text).unwrap_err();
            assert!(error.ends_with(want), "{error}");
        }
        let error = canonical_micros("2026-01-02T03:04:05Z").unwrap_err();
        assert!(error.ends_with(r#"cannot parse "Z" as ".000000""#), "{error}");
        assert!(canonical_seconds("2026-01-0\u{e9}").is_err());
    }
}
