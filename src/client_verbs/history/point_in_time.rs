//! Parser for the points in time of `portico history --at`.

use jiff::Timestamp;
use portico_proto::history::list_request::At;

/// Parses a revision, a time, or a duration before now.
pub(super) fn parse(text: &str) -> Result<At, String> {
    if let Ok(revision) = text.parse::<i64>() {
        return match revision {
            1.. => Ok(At::Revision(revision)),
            _ => Err("revisions are greater than 0".to_owned()),
        };
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(At::Time(time.as_second()));
    }
    let ago = portico_gostd::time::parse_duration(text).map_err(|_| {
        "neither a revision nor a time (2026-01-31T12:00:00Z) nor a duration (15m)".to_owned()
    })?;
    let seconds = i64::try_from(ago.as_secs()).unwrap_or(i64::MAX);
    Ok(At::Time(Timestamp::now().as_second().saturating_sub(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_time_is_a_revision_a_time_or_a_duration() {
        assert_eq!(parse("17"), Ok(At::Revision(17)));
        assert_eq!(parse("1970-01-01T00:01:00Z"), Ok(At::Time(60)));
        let now = Timestamp::now().as_second();
        let Ok(At::Time(time)) = parse("15m") else { panic!("no time") };
        assert!((now - 900..=now - 890).contains(&time), "{time}");
        for wrong in ["0", "-1", "", "yesterday", "15"] {
            assert_eq!(parse(wrong).is_err(), wrong != "15", "{wrong:?}");
        }
    }
}
