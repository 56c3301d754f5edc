//! Time zones: by name, or as an offset such as `-08:00`.

use jiff::tz::TimeZone;

use crate::error::EvalError;
use crate::value::Timestamp;

/// Returns the offset of a zone at a point in time, in seconds east of UTC.
///
/// # Errors
/// No such zone.
pub(super) fn offset(timestamp: &Timestamp, zone: &str) -> Result<i32, EvalError> {
    if let Some((hours, minutes)) = zone.split_once(':') {
        return parse_offset(zone, hours, minutes);
    }
    if zone.is_empty() || zone == "UTC" || zone == "Local" {
        return Ok(0);
    }
    if zone.contains("..") || zone.starts_with(['/', '\\']) {
        return Err(EvalError::new("time: invalid location name"));
    }
    let unknown = || EvalError::new(format!("unknown time zone {zone}"));
    let zone = TimeZone::get(zone).map_err(|_| unknown())?;
    // Times beyond the calendar have the current offset of the zone.
    let point = jiff::Timestamp::from_second(timestamp.seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    Ok(zone.to_offset(point).seconds())
}

fn parse_offset(zone: &str, hours: &str, minutes: &str) -> Result<i32, EvalError> {
    let number = |text: &str| {
        text.parse::<i32>()
            .ok()
            .filter(|number| number.abs() < 100)
            .ok_or_else(|| EvalError::new(format!("strconv.Atoi: parsing {text:?}: invalid syntax")))
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let total = if zone.starts_with('-') { hours * 60 - minutes } else { hours * 60 + minutes };
    Ok(total * 60)
}
