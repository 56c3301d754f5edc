//! Event of events.k8s.io: the same objects under other field names, validated strictly when they come this way.

use std::borrow::Cow;

use portico_machinery::field::Error;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

use super::{Event, legacy};
use portico_registry::{DecodeStrategy, FieldStrategy, Strategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::checks;

/// What the fields are called here and where they are stored.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Fields that only older events have.
const LEGACY: [&str; 4] = ["firstTimestamp", "lastTimestamp", "count", "source"];

/// What an update may not touch, and its name in errors.
const IMMUTABLE: [(&str, &str); 14] = [
    ("involvedObject", "involvedObject"),
    ("reason", "reason"),
    ("message", "message"),
    ("source", "source"),
    ("firstTimestamp", "firstTimestamp"),
    ("lastTimestamp", "lastTimestamp"),
    ("count", "count"),
    // ValidateEventUpdate looks at it twice.
    ("reason", "reason"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingComponent", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

/// See the module.
pub(crate) struct StrictEvent;

impl DecodeStrategy for StrictEvent {
    fn to_storage(&self, object: &mut Object) {
        NAMES.iter().for_each(|(here, there)| rename(object, here, there));
    }

    fn to_version(&self, object: &mut Object) {
        NAMES.iter().for_each(|(here, there)| rename(object, there, here));
    }
}

impl Strategy for StrictEvent {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        legacy(new, "reportingController", errors);
        series(new, errors);
        let (time, kind) = (new.at(&["eventTime"]), new.at(&["type"]));
        if !time.is_present() {
            errors.push(time.required(""));
        }
        if !matches!(kind.str(), "Normal" | "Warning") {
            let text = format!("has invalid value: {}", kind.str());
            errors.push(Error::invalid(&kind.path(), "", &text));
        }
        for field in LEGACY.map(|field| new.at(&[field])).iter().filter(|at| is_set(at)) {
            errors.push(Error::invalid(&field.path(), "", "needs to be unset"));
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        legacy(new, "reportingController", errors);
        if !checks::same(&new.at(&["series"]), &old.at(&["series"])) {
            series(new, errors);
        }
        for (field, reported) in IMMUTABLE {
            let (now, then) = (new.at(&[field]), old.at(&[field]));
            if !checks::same(&now, &then) && (is_set(&now) || is_set(&then)) {
                errors.push(Error::invalid_printed(&reported.into(), &now.printed(), checks::IMMUTABLE));
            }
        }
    }
}

impl FieldStrategy for StrictEvent {
    fn field<'o>(&self, object: &'o Object, field: &str) -> Cow<'o, str> {
        Event.field(object, field)
    }

    fn stored_field<'f>(&self, field: &'f str) -> Cow<'f, str> {
        let (head, rest) = field.split_once('.').map_or((field, None), |(head, rest)| (head, Some(rest)));
        match (NAMES.iter().find(|(here, _)| *here == head), rest) {
            (Some((_, there)), Some(rest)) => Cow::Owned(format!("{there}.{rest}")),
            (Some((_, there)), None) => Cow::Borrowed(there),
            (None, _) => Cow::Borrowed(field),
        }
    }
}

impl TableStrategy for StrictEvent {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        Event.cell(function, object)
    }
}

fn rename(object: &mut Object, from: &str, to: &str) {
    if let Some(node) = object.remove(&[from]) {
        object.put(&[to], node);
    }
}

/// Zero values count as nothing.
fn is_set(at: &Cursor<'_>) -> bool {
    at.is_present() && at.i64() != Some(0) && !(at.is_empty() && at.str().is_empty() && at.i64().is_none())
}

fn series(new: &Object, errors: &mut Errors) {
    let series = new.at(&["series"]);
    if !series.is_present() {
        return;
    }
    let (count, observed) = (series.field("count"), series.field("lastObservedTime"));
    if count.i64().unwrap_or(0) < 2 {
        errors.push(Error::invalid(&count.path(), "", "should be at least 2"));
    }
    if !observed.is_present() {
        errors.push(observed.required(""));
    }
}
