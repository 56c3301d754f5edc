//! Event of events.k8s.io: same objects as in the core group with other field names and strict validation.

use std::borrow::Cow;

use portico_machinery::field::Error;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

use super::{Event, validate_legacy};
use portico_registry::{DecodeStrategy, FieldStrategy, Strategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::checks;

/// Field names in this group and in storage.
const RENAMED_FIELDS: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Fields of events in the old format.
const LEGACY_FIELDS: [&str; 4] = ["firstTimestamp", "lastTimestamp", "count", "source"];

/// Immutable fields, with the names that errors use.
const IMMUTABLE: [(&str, &str); 14] = [
    ("involvedObject", "involvedObject"),
    ("reason", "reason"),
    ("message", "message"),
    ("source", "source"),
    ("firstTimestamp", "firstTimestamp"),
    ("lastTimestamp", "lastTimestamp"),
    ("count", "count"),
    // Repeated, because upstream's ValidateEventUpdate checks this field twice.
    ("reason", "reason"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingComponent", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

pub(crate) struct StrictEvent;

impl DecodeStrategy for StrictEvent {
    fn to_storage(&self, object: &mut Object) {
        RENAMED_FIELDS.iter().for_each(|(strict_name, core_name)| rename(object, strict_name, core_name));
    }

    fn to_version(&self, object: &mut Object) {
        RENAMED_FIELDS.iter().for_each(|(strict_name, core_name)| rename(object, core_name, strict_name));
    }
}

impl Strategy for StrictEvent {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate_legacy(new, "reportingController", errors);
        validate_series(new, errors);
        let (time, kind) = (new.at(&["eventTime"]), new.at(&["type"]));
        if !time.is_present() {
            errors.push(time.required(""));
        }
        if !matches!(kind.str(), "Normal" | "Warning") {
            let text = format!("has invalid value: {}", kind.str());
            errors.push(Error::invalid(&kind.path(), "", &text));
        }
        for field in LEGACY_FIELDS.map(|field| new.at(&[field])).iter().filter(|at| is_set(at)) {
            errors.push(Error::invalid(&field.path(), "", "needs to be unset"));
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate_legacy(new, "reportingController", errors);
        if !checks::is_same(&new.at(&["series"]), &old.at(&["series"])) {
            validate_series(new, errors);
        }
        for (field, reported_name) in IMMUTABLE {
            let (new_value, old_value) = (new.at(&[field]), old.at(&[field]));
            if !checks::is_same(&new_value, &old_value) && (is_set(&new_value) || is_set(&old_value)) {
                errors.push(Error::invalid_printed(
                    &reported_name.into(),
                    &new_value.printed(),
                    checks::IMMUTABLE,
                ));
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
        match (RENAMED_FIELDS.iter().find(|(strict_name, _)| *strict_name == head), rest) {
            (Some((_, core_name)), Some(rest)) => Cow::Owned(format!("{core_name}.{rest}")),
            (Some((_, core_name)), None) => Cow::Borrowed(core_name),
            (None, _) => Cow::Borrowed(field),
        }
    }
}

impl TableStrategy for StrictEvent {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        Event.cell(function, object)
    }
}

fn rename(object: &mut Object, old_name: &str, new_name: &str) {
    if let Some(node) = object.remove(&[old_name]) {
        object.put(&[new_name], node);
    }
}

/// True if the value is not the zero value.
fn is_set(at: &Cursor<'_>) -> bool {
    at.is_present() && at.i64() != Some(0) && !(at.is_empty() && at.str().is_empty() && at.i64().is_none())
}

fn validate_series(new: &Object, errors: &mut Errors) {
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
