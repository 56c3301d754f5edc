//! Event of the core group.

mod strict;

pub(crate) use strict::StrictEvent;

use std::borrow::Cow;

use portico_machinery::field::Error;
use portico_machinery::table::Cell;
use portico_machinery::{Object, names};

use portico_registry::{FieldStrategy, Strategy, TableStrategy};
use portico_validation::Errors;

const WORD_MAX: usize = 128;
const MESSAGE_MAX: usize = 1_024;

pub(crate) struct Event;

impl Strategy for Event {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate_legacy(new, "reportingComponent", errors);
    }
}

impl FieldStrategy for Event {
    fn field<'o>(&self, object: &'o Object, field: &str) -> Cow<'o, str> {
        match field {
            "source" => Cow::Borrowed(match object.str_at("source.component") {
                "" => object.str_at("reportingComponent"),
                component => component,
            }),
            path => Cow::Borrowed(object.str_at(path)),
        }
    }
}

impl TableStrategy for Event {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        match function {
            "event-last-seen" => last_seen(object),
            "event-first-seen" => first_seen(object),
            "event-object" => Cell::text(involved_object(object)),
            "event-source" => Cell::text(source(object)),
            "event-message" => Cell::text(object.at(&["message"]).str().trim()),
            "event-count" => Cell::Integer(count(object)),
            _ => Cell::Null,
        }
    }
}

/// Validates the rules of both groups. `controller` is the name of the controller field in the group.
fn validate_legacy(new: &Object, controller: &str, errors: &mut Errors) {
    let about = new.at(&["involvedObject", "namespace"]);
    let (namespace, timed) = (new.namespace(), new.at(&["eventTime"]).is_present());
    let matches = match (timed, about.str()) {
        (false, "") => namespace == "default",
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (false, other) => other == namespace,
        (true, _) => true,
    };
    if !matches {
        errors.push(about.invalid("does not match event.namespace"));
    }
    if timed {
        validate_timed(new, controller, errors);
    }
}

fn validate_timed(new: &Object, controller: &str, errors: &mut Errors) {
    let (component, path) = (new.at(&["reportingComponent"]), controller.into());
    if component.str().is_empty() {
        errors.push(Error::required(&path, ""));
    }
    errors.extend(names::to_field_errors(&path, component.str(), names::qualified_name(component.str())));
    for field in ["reportingInstance", "action", "reason"] {
        let cursor = new.at(&[field]);
        if cursor.str().is_empty() {
            errors.push(cursor.required(""));
        }
        check_length(&cursor, WORD_MAX, errors);
    }
    check_length(&new.at(&["message"]), MESSAGE_MAX, errors);
}

/// Adds an error without a value, as upstream does.
fn check_length(cursor: &portico_machinery::Cursor<'_>, limit: usize, errors: &mut Errors) {
    if cursor.str().len() > limit {
        errors.push(Error::invalid(&cursor.path(), "", &format!("can have at most {limit} characters")));
    }
}

fn time(object: &Object, path: &[&str]) -> Option<String> {
    object.at(path).opt_str().filter(|t| !t.is_empty()).map(str::to_owned)
}

fn first(object: &Object) -> Option<String> {
    time(object, &["firstTimestamp"]).or_else(|| time(object, &["eventTime"]))
}

fn first_seen(object: &Object) -> Cell {
    Cell::Age(first(object))
}

fn last_seen(object: &Object) -> Cell {
    if object.at(&["series"]).is_present() {
        return Cell::Age(time(object, &["series", "lastObservedTime"]));
    }
    Cell::Age(time(object, &["lastTimestamp"]).or_else(|| first(object)))
}

fn involved_object(object: &Object) -> String {
    let about = object.at(&["involvedObject"]);
    let kind = about.field("kind").str().to_lowercase();
    match about.field("name").str() {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(object: &Object) -> String {
    let or = |a: &[&str], b: &str| match object.at(a).str() {
        "" => object.at(&[b]).str().to_owned(),
        text => text.to_owned(),
    };
    let component = or(&["source", "component"], "reportingComponent");
    match or(&["source", "host"], "reportingInstance") {
        instance if instance.is_empty() => component,
        instance => format!("{component}, {instance}"),
    }
}

fn count(object: &Object) -> i64 {
    let series = object.at(&["series", "count"]).i64();
    series.or_else(|| object.at(&["count"]).i64().filter(|n| *n != 0)).unwrap_or(1)
}
