//! CertificateSigningRequest: the server sets the requesting user, the spec is immutable, and the subresources `status` and
//! `approval` each own a part of the status.

use portico_machinery::table::Cell;
use portico_machinery::{Object, UserInfo, time};

use super::validate;
use super::validate::VERDICTS;
use portico_registry::ObjectPart;
use portico_registry::{RequestTime, Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;

const CONDITIONS: [&str; 2] = ["status", "conditions"];

pub(crate) struct SigningRequest;

impl Strategy for SigningRequest {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn set_requester(&self, new: &mut Object, user: &UserInfo) {
        for field in ["username", "uid", "groups", "extra"] {
            new.remove(&["spec", field]);
        }
        for (field, text) in [("username", &user.name), ("uid", &user.uid)] {
            if !text.is_empty() {
                new.set(&["spec", field], text);
            }
        }
        if !user.groups.is_empty() {
            new.set(&["spec", "groups"], &user.groups);
        }
        if !user.extra.is_empty() {
            new.set(&["spec", "extra"], &user.extra);
        }
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: RequestTime) {
        new.copy_from(old, &["spec"]);
    }

    fn set_change_time(&self, part: ObjectPart<'_>, new: &mut Object, old: &Object, time: RequestTime) {
        if part != ObjectPart::Main {
            set_condition_times(new, old, &time::rfc3339(time.now));
        }
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate::validate_request(new, None, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate::update(new, old, errors);
    }
}

impl SubresourceStrategy for SigningRequest {
    fn prepare_status(&self, new: &mut Object, old: &Object) {
        for verdict in VERDICTS {
            restore_conditions(new, old, verdict);
        }
    }

    fn prepare_subresource(&self, _approval: &str, new: &mut Object, old: &Object) {
        let conditions = new.get(&CONDITIONS);
        new.copy_from(old, &["spec"]);
        new.copy_from(old, &["status"]);
        match conditions {
            Some(conditions) => new.put(&CONDITIONS, conditions),
            None => drop(new.remove(&CONDITIONS)),
        }
    }

    fn validate_status(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate::update(new, old, errors);
        validate::validate_no_new_verdicts(new, old, errors);
    }

    fn validate_subresource(&self, _approval: &str, new: &Object, old: &Object, errors: &mut Errors) {
        validate::update(new, old, errors);
    }
}

impl TableStrategy for SigningRequest {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        let or_none = |text: &str| Cell::text(if text.is_empty() { "<none>" } else { text });
        match function {
            "certificatesigningrequest-signername" => or_none(object.str_at("spec.signerName")),
            "certificatesigningrequest-requestedduration" => {
                let seconds = object.at(&["spec", "expirationSeconds"]).i64();
                seconds.map_or_else(|| or_none(""), |seconds| Cell::text(time::human_duration(seconds)))
            }
            "certificatesigningrequest-condition" => Cell::text(condition_column(object)),
            _ => Cell::Null,
        }
    }
}

/// Returns the indexes of conditions of a type.
fn condition_indexes(object: &Object, kind: &str) -> Vec<usize> {
    let conditions = object.at(&CONDITIONS);
    let of_kind = conditions.items().enumerate().filter(|(_, c)| c.field("type").str() == kind);
    of_kind.map(|(at, _)| at).collect()
}

/// Restores the stored conditions of a type if their number is unchanged, which drops edits. Validation handles added and removed
/// conditions.
fn restore_conditions(new: &mut Object, old: &Object, kind: &str) {
    let (before, after) = (condition_indexes(old, kind), condition_indexes(new, kind));
    if before.is_empty() || before.len() != after.len() {
        return;
    }
    let stored: Vec<_> = old.at(&CONDITIONS).items().filter_map(|c| c.node()).collect();
    let mut all: Vec<_> = new.at(&CONDITIONS).items().filter_map(|c| c.node()).collect();
    for (old_index, new_index) in before.into_iter().zip(after) {
        all[new_index].clone_from(&stored[old_index]);
    }
    new.put(&CONDITIONS, all.into_iter().collect());
}

/// Sets times that the client did not set: the update time to now; the transition time to that of the equal old condition, or
/// to now.
fn set_condition_times(new: &mut Object, old: &Object, now: &str) {
    if new.at(&CONDITIONS).is_empty() {
        return;
    }
    let all: Vec<_> = new
        .at(&CONDITIONS)
        .items()
        .filter_map(|condition| {
            let mut stamped = Object::from_node(condition.node()?).ok()?;
            if condition.field("lastUpdateTime").str().is_empty() {
                stamped.set(&["lastUpdateTime"], now);
            }
            if condition.field("lastTransitionTime").str().is_empty() {
                let is_same_condition = |c: &portico_machinery::Cursor<'_>| {
                    ["type", "status"].iter().all(|f| c.field(f).str() == condition.field(f).str())
                };
                let times = old
                    .at(&CONDITIONS)
                    .items()
                    .filter(is_same_condition)
                    .map(|c| c.field("lastTransitionTime").str());
                let before = times.filter(|t| !t.is_empty()).map(str::to_owned).next();
                stamped.set(&["lastTransitionTime"], before.unwrap_or_else(|| now.to_owned()));
            }
            Some(stamped.into_node())
        })
        .collect();
    new.put(&CONDITIONS, all.into_iter().collect());
}

/// Returns `Denied`, `Approved` or `Pending`, followed by `Failed` and `Issued` if they apply, as kubectl prints them.
fn condition_column(object: &Object) -> String {
    let has = |kind: &str| !condition_indexes(object, kind).is_empty();
    let mut text = match () {
        () if has("Denied") => "Denied",
        () if has("Approved") => "Approved",
        () => "Pending",
    }
    .to_owned();
    if has("Failed") {
        text.push_str(",Failed");
    }
    if !object.str_at("status.certificate").is_empty() {
        text.push_str(",Issued");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(conditions: &str) -> Object {
        Object::from_json(format!("{{\"status\":{{\"conditions\":{conditions}}}}}").as_bytes()).unwrap()
    }

    #[test]
    fn edits_of_a_verdict_are_dropped_and_a_new_verdict_remains() {
        let old = with(r#"[{"type":"Approved","status":"True","reason":"old"}]"#);
        let mut new = with(r#"[{"type":"Failed"},{"type":"Approved","status":"True","reason":"new"}]"#);
        restore_conditions(&mut new, &old, "Approved");
        assert_eq!(new.at(&CONDITIONS).items().nth(1).unwrap().field("reason").str(), "old");
        let mut duplicates = with(r#"[{"type":"Approved","reason":"a"},{"type":"Approved","reason":"b"}]"#);
        restore_conditions(&mut duplicates, &old, "Approved");
        assert_eq!(duplicates.at(&CONDITIONS).items().next().unwrap().field("reason").str(), "a");
    }

    #[test]
    fn missing_times_are_set_and_unchanged_conditions_keep_theirs() {
        let old = with(r#"[{"type":"A","status":"True","lastTransitionTime":"then"}]"#);
        let mut new = with(r#"[{"type":"A","status":"True"},{"type":"A","status":"False"}]"#);
        set_condition_times(&mut new, &old, "now");
        let times: Vec<_> = new
            .at(&CONDITIONS)
            .items()
            .map(|c| format!("{} {}", c.field("lastUpdateTime").str(), c.field("lastTransitionTime").str()))
            .collect();
        assert_eq!(times, ["now then", "now now"]);
    }

    #[test]
    fn the_condition_column_shows_verdict_failure_and_issue() {
        for (object, text) in [
            ("{}", "Pending"),
            (r#"{"status":{"conditions":[{"type":"Approved"},{"type":"Denied"}]}}"#, "Denied"),
            (
                r#"{"status":{"conditions":[{"type":"Approved"},{"type":"Failed"}],"certificate":"eA=="}}"#,
                "Approved,Failed,Issued",
            ),
        ] {
            assert_eq!(condition_column(&Object::from_json(object.as_bytes()).unwrap()), text);
        }
    }
}
