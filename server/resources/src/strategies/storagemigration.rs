//! storagemigration.k8s.io: StorageVersionMigration, a request to rewrite all objects of a resource in the storage version.

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, GroupResource, Object, names};

use portico_registry::condition;
use portico_registry::{Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::{checks, validate_conditions};

const SUCCEEDED: &str = "Succeeded";
const FAILED: &str = "Failed";

pub(crate) struct StorageVersionMigration;

impl Strategy for StorageVersionMigration {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        let resource = new.at(&["spec", "resource"]);
        let name = resource.field("resource");
        if name.str().is_empty() {
            errors.push(name.required("resource is required to be set"));
        } else {
            validate(&name, names::dns1035_label, errors);
        }
        let group = resource.field("group");
        if !group.str().is_empty() {
            validate(&group, names::dns1123_subdomain, errors);
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
        checks::unchanged(&new.at(&["spec"]), &old.at(&["spec"]), errors);
    }
}

impl SubresourceStrategy for StorageVersionMigration {
    fn validate_status(&self, new: &Object, old: &Object, errors: &mut Errors) {
        let status = new.at(&["status"]);
        let [revision, conditions] = ["resourceVersion", "conditions"].map(|field| status.field(field));
        if !revision.str().is_empty() && !is_revision(revision.str()) {
            errors
                .push(revision.invalid(&format!("resource version is not well formed: {}", revision.str())));
        }
        validate_conditions(&conditions, errors);
        let before = old.at(&["status", "resourceVersion"]).str();
        if !before.is_empty() && before != revision.str() {
            errors.push(revision.invalid_text(checks::IMMUTABLE));
        }
        let is = |object: &Object, kind| condition::is_true(object, kind);
        if is(new, SUCCEEDED) && is(new, FAILED) {
            errors.push(
                conditions.invalid("Both success and failed conditions cannot be true at the same time"),
            );
        }
        for (kind, condition_name) in [(SUCCEEDED, "Success"), (FAILED, "Failed")] {
            if is(old, kind) && !is(new, kind) {
                let text = format!("{condition_name} condition cannot be set to false once it is true");
                errors.push(conditions.invalid(&text));
            }
        }
    }
}

impl TableStrategy for StorageVersionMigration {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        match function {
            "storageversionmigration-resource" => {
                let resource = object.at(&["spec", "resource"]);
                let [group, name] = ["group", "resource"].map(|field| resource.field(field).str());
                Cell::text(GroupResource::new(group, name).to_string())
            }
            "storageversionmigration-status" => Cell::text(status_column(object)),
            _ => Cell::Null,
        }
    }
}

/// Validates a field. As upstream, diagnostics are joined by a comma without a space.
fn validate(at: &Cursor<'_>, rule: checks::Rule, errors: &mut Errors) {
    let diagnostics = rule(at.str());
    if !diagnostics.is_empty() {
        errors.push(at.invalid(&diagnostics.join(",")));
    }
}

/// True for digits that do not start with a zero.
fn is_revision(text: &str) -> bool {
    !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the type of the last condition that is true.
fn status_column(object: &Object) -> &str {
    let conditions = object.at(&["status", "conditions"]);
    let kinds =
        conditions.items().filter(|c| c.field("status").str() == "True").map(|c| c.field("type").str());
    kinds.filter(|kind| ["Running", FAILED, SUCCEEDED].contains(kind)).last().unwrap_or("Unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> Object {
        Object::from_json(json.as_bytes()).unwrap()
    }

    fn fields(validate: impl FnOnce(&mut Errors)) -> Vec<String> {
        let mut errors = Errors::new();
        validate(&mut errors);
        errors.iter().map(|e| e.to_string().split(": ").take(2).collect::<Vec<_>>().join(": ")).collect()
    }

    #[test]
    fn the_resource_is_immutable() {
        let migration = StorageVersionMigration;
        let spec = |json: &str| object(&format!(r#"{{"spec":{{"resource":{json}}}}}"#));
        let good = spec(r#"{"group":"a.io","resource":"bolts"}"#);
        assert_eq!(fields(|e| migration.validate(&good, e)), [""; 0]);
        let none = spec("{}");
        assert_eq!(fields(|e| migration.validate(&none, e)), ["spec.resource.resource: Required value"]);
        let invalid = spec(r#"{"group":"A","resource":"B"}"#);
        assert_eq!(
            fields(|e| migration.validate(&invalid, e)),
            ["spec.resource.resource: Invalid value", "spec.resource.group: Invalid value"]
        );
        let other = spec(r#"{"group":"a.io","resource":"nuts"}"#);
        assert_eq!(fields(|e| migration.validate_update(&other, &good, e)), ["spec: Invalid value"]);
    }

    #[test]
    fn terminal_conditions_and_the_revision_are_immutable() {
        let migration = StorageVersionMigration;
        let condition_json = |kind: &str, status: &str| {
            format!(
                r#"{{"type":"{kind}","status":"{status}","reason":"R","message":"",
                    "lastTransitionTime":"2026-01-01T00:00:00Z"}}"#
            )
        };
        let migration_status = |revision: &str, conditions: &[String]| {
            let conditions = conditions.join(",");
            object(&format!(r#"{{"status":{{"resourceVersion":"{revision}","conditions":[{conditions}]}}}}"#))
        };
        let validated = |new: &Object, old: &Object| fields(|e| migration.validate_status(new, old, e));
        let succeeded = migration_status("7", &[condition_json("Succeeded", "True")]);
        assert_eq!(validated(&succeeded, &migration_status("", &[])), [""; 0]);
        let both =
            migration_status("7", &[condition_json("Succeeded", "True"), condition_json("Failed", "True")]);
        assert_eq!(validated(&both, &succeeded), ["status.conditions: Invalid value"]);
        assert_eq!(validated(&migration_status("7", &[]), &succeeded), ["status.conditions: Invalid value"]);
        let other_revision = migration_status("8", &[condition_json("Succeeded", "True")]);
        assert_eq!(validated(&other_revision, &succeeded), ["status.resourceVersion: Invalid value"]);
        assert_eq!(
            validated(&migration_status("07", &[]), &migration_status("", &[])),
            ["status.resourceVersion: Invalid value"]
        );
        assert_eq!(
            status_column(&migration_status(
                "",
                &[condition_json("Running", "True"), condition_json("Succeeded", "False")]
            )),
            "Running"
        );
        assert_eq!((status_column(&both), status_column(&migration_status("", &[]))), ("Failed", "Unknown"));
    }
}
