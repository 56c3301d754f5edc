//! Times in the format of the API (RFC 3339, whole seconds, UTC), and ages in the format of kubectl.

use jiff::Timestamp;
use portico_gostd::time::Time;

/// Formats a time as `2026-01-02T03:04:05Z`.
#[must_use]
pub fn rfc3339(at: Timestamp) -> String {
    Time::from(at).rfc3339().unwrap_or_default()
}

/// Formats a time as `2026-01-02T03:04:05.000006Z`, the format of MicroTime.
#[must_use]
pub fn rfc3339_micro(at: Timestamp) -> String {
    Time::from(at).rfc3339_micro().unwrap_or_default()
}

/// Parses a time in either format.
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// Formats a duration like upstream's `HumanDuration` (`5s`, `3m20s`, `4h`, `2d3h`, `1y20d`). Up to a second in the future is
/// printed as `0s`, later times as `<invalid>`.
#[must_use]
pub fn human_duration(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => join_units(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => join_units(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => join_units(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => join_units(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

fn join_units(big: i64, big_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 { format!("{big}{big_unit}") } else { format!("{big}{big_unit}{small}{small_unit}") }
}

/// Formats the age of an object with this creation time, or `<unknown>` if the time is absent or invalid.
#[must_use]
pub fn age(created: Option<&str>, now: Timestamp) -> String {
    created
        .and_then(parse)
        .map_or_else(|| "<unknown>".to_owned(), |at| human_duration(now.as_second() - at.as_second()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_printed_like_kubectl() {
        let rows = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (600, "10m"),
            (10_800, "3h"),
            (11_000, "3h3m"),
            (28_800, "8h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (64_000_000, "2y10d"),
            (300_000_000, "9y"),
        ];
        for (seconds, want) in rows {
            assert_eq!(human_duration(seconds), want, "{seconds}");
        }
    }

    #[test]
    fn times_round_trip() {
        let at = parse("2026-01-02T03:04:05Z").unwrap();
        assert_eq!(rfc3339(at), "2026-01-02T03:04:05Z");
        assert_eq!(rfc3339_micro(at), "2026-01-02T03:04:05.000000Z");
    }
}
