//! CertificateSigningRequest: who asks is written by us, the spec never changes, and status and approval each own a part
//! of the status.

use portico_machinery::table::Cell;
use portico_machinery::{Object, UserInfo, time};

use super::validate;
use super::validate::VERDICTS;
use portico_registry::Part;
use portico_registry::{Moment, Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;

const CONDITIONS: [&str; 2] = ["status", "conditions"];

pub(crate) struct SigningRequest;

impl Strategy for SigningRequest {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn claim(&self, new: &mut Object, user: &UserInfo) {
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

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: Moment) {
        new.copy_from(old, &["spec"]);
    }

    fn stamp(&self, part: Part<'_>, new: &mut Object, old: &Object, moment: Moment) {
        if part != Part::Main {
            stamp(new, old, &time::rfc3339(moment.now));
        }
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate::request(new, None, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate::update(new, old, errors);
    }
}

impl SubresourceStrategy for SigningRequest {
    fn prepare_status(&self, new: &mut Object, old: &Object) {
        for verdict in VERDICTS {
            keep(new, old, verdict);
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
        validate::no_new_verdicts(new, old, errors);
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
                let asked = object.at(&["spec", "expirationSeconds"]).i64();
                asked.map_or_else(|| or_none(""), |seconds| Cell::text(time::human_duration(seconds)))
            }
            "certificatesigningrequest-condition" => Cell::text(condition_column(object)),
            _ => Cell::Null,
        }
    }
}

/// Places of conditions of a type.
fn places(object: &Object, kind: &str) -> Vec<usize> {
    let conditions = object.at(&CONDITIONS);
    let of_kind = conditions.items().enumerate().filter(|(_, c)| c.field("type").str() == kind);
    of_kind.map(|(at, _)| at).collect()
}

/// Takes the stored conditions of a type over the new ones when there are as many: an edit of them is lost, an added or
/// removed one is left for validation.
fn keep(new: &mut Object, old: &Object, kind: &str) {
    let (before, after) = (places(old, kind), places(new, kind));
    if before.is_empty() || before.len() != after.len() {
        return;
    }
    let stored: Vec<_> = old.at(&CONDITIONS).items().filter_map(|c| c.node()).collect();
    let mut all: Vec<_> = new.at(&CONDITIONS).items().filter_map(|c| c.node()).collect();
    for (from, to) in before.into_iter().zip(after) {
        all[to].clone_from(&stored[from]);
    }
    new.put(&CONDITIONS, all.into_iter().collect());
}

/// Times that the caller left out: the update's is now, the transition's that of the same condition before, or now.
fn stamp(new: &mut Object, old: &Object, now: &str) {
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
                let same = |c: &portico_machinery::Cursor<'_>| {
                    ["type", "status"].iter().all(|f| c.field(f).str() == condition.field(f).str())
                };
                let times =
                    old.at(&CONDITIONS).items().filter(same).map(|c| c.field("lastTransitionTime").str());
                let before = times.filter(|t| !t.is_empty()).map(str::to_owned).next();
                stamped.set(&["lastTransitionTime"], before.unwrap_or_else(|| now.to_owned()));
            }
            Some(stamped.into_node())
        })
        .collect();
    new.put(&CONDITIONS, all.into_iter().collect());
}

/// `Pending`, or the verdict; then `Failed` and `Issued`, as kubectl shows them.
fn condition_column(object: &Object) -> String {
    let has = |kind: &str| !places(object, kind).is_empty();
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
    fn an_edited_verdict_is_taken_back_and_a_new_one_is_left_to_validation() {
        let old = with(r#"[{"type":"Approved","status":"True","reason":"old"}]"#);
        let mut new = with(r#"[{"type":"Failed"},{"type":"Approved","status":"True","reason":"new"}]"#);
        keep(&mut new, &old, "Approved");
        assert_eq!(new.at(&CONDITIONS).items().nth(1).unwrap().field("reason").str(), "old");
        let mut more = with(r#"[{"type":"Approved","reason":"a"},{"type":"Approved","reason":"b"}]"#);
        keep(&mut more, &old, "Approved");
        assert_eq!(more.at(&CONDITIONS).items().next().unwrap().field("reason").str(), "a");
    }

    #[test]
    fn times_left_out_are_filled_and_an_unchanged_condition_keeps_its_own() {
        let old = with(r#"[{"type":"A","status":"True","lastTransitionTime":"then"}]"#);
        let mut new = with(r#"[{"type":"A","status":"True"},{"type":"A","status":"False"}]"#);
        stamp(&mut new, &old, "now");
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
