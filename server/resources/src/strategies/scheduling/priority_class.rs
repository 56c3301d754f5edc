//! PriorityClass: immutable priority of pods. The two system classes cannot be deleted.

use portico_machinery::field::Error;
use portico_machinery::table::Cell;
use portico_machinery::{GroupResource, Object, Status};
use portico_store::Operation;

use portico_registry::{DeleteStrategy, Strategy, TableStrategy};
use portico_registry::{Result, stored_object};
use portico_registry::{ResultFuture, TransactionHooks, TxnContext};
use portico_validation::Errors;
use portico_validation::checks;

const USER_MAX: i64 = 1_000_000_000;
const SYSTEM_PREFIX: &str = "system-";
/// Classes that the server creates, with their values.
const SYSTEM: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

pub(crate) struct PriorityClass;

impl Strategy for PriorityClass {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        let value = new.at(&["value"]);
        if new.name().starts_with(SYSTEM_PREFIX) {
            if let Some(message) = unknown_system_class(new) {
                let text = format!(
                    "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {message}"
                );
                errors.push(Error::forbidden(&"metadata.name".into(), &text));
            }
        } else if value.i64().is_some_and(|n| n > USER_MAX) {
            let text = format!("maximum allowed value of a user defined priority is {USER_MAX}");
            errors.push(value.forbidden(&text));
        }
        let policy = new.at(&["preemptionPolicy"]);
        if policy.is_present() {
            checks::required_one_of(&policy, &["PreemptLowerPriority", "Never"], errors);
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        if new.at(&["value"]).i64().unwrap_or(0) != old.at(&["value"]).i64().unwrap_or(0) {
            errors.push(new.at(&["value"]).forbidden("may not be changed in an update."));
        }
        checks::unchanged(&new.at(&["preemptionPolicy"]), &old.at(&["preemptionPolicy"]), errors);
    }
}

impl DeleteStrategy for PriorityClass {
    fn check_delete(&self, resource: &GroupResource, name: &str) -> Option<Status> {
        let ours = SYSTEM.iter().any(|(system, _)| *system == name);
        ours.then(|| {
            Status::forbidden(resource, name, "this is a system priority class and cannot be deleted")
        })
    }
}

impl TableStrategy for PriorityClass {
    fn cell(&self, _function: &str, object: &Object) -> Cell {
        Cell::Bool(object.at(&["globalDefault"]).bool())
    }
}

impl TransactionHooks for PriorityClass {
    fn before_write<'a>(
        &'a self,
        write: TxnContext<'a>,
        new: &'a mut Object,
    ) -> ResultFuture<'a, Vec<Operation>> {
        Box::pin(check_single_default(write, new))
    }
}

/// Checks that no other class is the global default (upstream's admission plugin Priority).
async fn check_single_default(write: TxnContext<'_>, new: &Object) -> Result<Vec<Operation>> {
    if !new.at(&["globalDefault"]).bool() {
        return Ok(Vec::new());
    }
    let snapshot = write.objects.snapshot(write.served_resource).await?;
    let mut others = snapshot.iter().filter(|record| record.key.name() != new.name());
    let Some(other) = others.find(|record| stored_object::decode(record).at(&["globalDefault"]).bool())
    else {
        return Ok(Vec::new());
    };
    let message = format!(
        "PriorityClass {} is already marked as default. Only one default can exist",
        other.key.name()
    );
    Err(Box::new(Status::forbidden(&write.served_resource.resource, new.name(), &message)))
}

fn unknown_system_class(new: &Object) -> Option<String> {
    let name = new.name();
    let Some((_, value)) = SYSTEM.iter().find(|(system, _)| *system == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if new.at(&["value"]).i64() != Some(*value) {
        return Some(format!("value of {name} PriorityClass must be {value}"));
    }
    new.at(&["globalDefault"]).bool().then(|| format!("globalDefault of {name} PriorityClass must be false"))
}
