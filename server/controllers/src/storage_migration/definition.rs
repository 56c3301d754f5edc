//! Condition StorageMigrating of the definition of a custom resource. Built-in resources have no definition.

use jiff::Timestamp;
use portico_machinery::{GroupResource, Object, Reason, Status};
use portico_registry::condition::{self, Condition};
use portico_registry::definition::{self, storage_version};
use portico_registry::{Context, Registry};

const STORAGE_MIGRATING: &str = "StorageMigrating";
/// Upstream's field manager of the condition.
const MANAGER: &str = "migration-runner-controller";
/// Maximum attempts after conflicts.
const ATTEMPTS: usize = 5;

/// Reports that a migration has started. The observed generation allows detecting later changes of the definition.
pub(super) async fn report_started(
    registry: &Registry,
    resource: &GroupResource,
    migration: &str,
) -> Result<(), Box<Status>> {
    change(registry, resource, |definition| {
        let message = format!("Migration {migration} is running");
        set_condition(definition, migration_condition("True", "MigrationRunning", message));
    })
    .await
}

/// Reports that a migration has ended, and sets the stored versions unless the definition has changed in the meantime.
pub(super) async fn report_ended(
    registry: &Registry,
    resource: &GroupResource,
    succeeded: bool,
) -> Result<(), Box<Status>> {
    change(registry, resource, |definition| apply_end(definition, succeeded)).await
}

/// Applies the end of a migration. Unlike upstream, keeps the older stored versions after a failure.
fn apply_end(definition: &mut Object, succeeded: bool) {
    if !succeeded {
        return set_condition(
            definition,
            migration_condition("False", "MigrationFailed", "The migration has failed"),
        );
    }
    let before =
        condition::get(definition, STORAGE_MIGRATING).and_then(|reported| reported.observed_generation);
    let is_same = before == Some(definition.generation());
    let versions_note = match is_same {
        true => "and the stored versions have been updated",
        false => "but the stored versions have not been updated due to a generation mismatch",
    };
    if let (true, Some(storage)) = (is_same, storage_version(definition)) {
        definition.set(&["status", "storedVersions"], [storage]);
    }
    set_condition(
        definition,
        migration_condition(
            "False",
            "MigrationSucceeded",
            format!("The migration has succeeded {versions_note}"),
        ),
    );
}

fn migration_condition(status: &str, reason: &str, message: impl Into<String>) -> Condition {
    Condition::new(STORAGE_MIGRATING, status, reason, message)
}

fn set_condition(definition: &mut Object, reported: Condition) {
    let reported = Condition { observed_generation: Some(definition.generation()), ..reported };
    condition::set(definition, reported, Timestamp::now());
}

/// Changes the status of the definition, if it exists.
async fn change(
    registry: &Registry,
    resource: &GroupResource,
    change: impl Fn(&mut Object),
) -> Result<(), Box<Status>> {
    let (definitions, name) = (definition::resource(), resource.to_string());
    let mut retries = 1..ATTEMPTS;
    loop {
        let mut object = match registry.get(&definitions, "", &name).await {
            Ok(stored) => stored.object().clone(),
            Err(status) if status.reason() == Reason::NotFound => return Ok(()),
            Err(status) => return Err(status),
        };
        change(&mut object);
        match registry.update_status(&Context::system(MANAGER), &definitions, object).await {
            Err(status) if status.reason() == Reason::Conflict && retries.next().is_some() => {}
            written => return written.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(generation: i64) -> Object {
        let json = format!(
            r#"{{"metadata":{{"generation":{generation}}},"spec":{{"versions":[{{"name":"v1"}},{{"name":"v2","storage":true}}]}},
                "status":{{"storedVersions":["v1","v2"]}}}}"#
        );
        Object::from_json(json.as_bytes()).unwrap()
    }

    fn stored(definition: &Object) -> usize {
        definition.at(&["status", "storedVersions"]).len()
    }

    #[test]
    fn older_versions_are_dropped_after_success_if_the_definition_is_unchanged() {
        let rows = [
            (true, 1, 1, "MigrationSucceeded"),
            (true, 2, 2, "MigrationSucceeded"),
            (false, 1, 2, "MigrationFailed"),
        ];
        for (succeeded, generation, left, reason) in rows {
            let mut object = definition(1);
            set_condition(&mut object, migration_condition("True", "MigrationRunning", ""));
            object.set(&["metadata", "generation"], generation);
            apply_end(&mut object, succeeded);
            let reported = condition::get(&object, STORAGE_MIGRATING).unwrap();
            assert_eq!(
                (stored(&object), reported.reason.as_str(), reported.status.as_str()),
                (left, reason, "False")
            );
            assert_eq!(reported.observed_generation, Some(generation));
        }
    }
}
