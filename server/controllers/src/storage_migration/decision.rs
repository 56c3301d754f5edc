//! Decides the steps of the migrations of a resource. Pure.

use portico_machinery::{GroupResource, Object};
use portico_registry::StoredObject;
use portico_registry::condition;

/// Condition of the migration that runs for its resource.
pub(super) const RUNNING: &str = "Running";
/// Condition after all objects are rewritten.
pub(super) const SUCCEEDED: &str = "Succeeded";
/// Condition if an object or the resource cannot be migrated.
pub(super) const FAILED: &str = "Failed";

/// Next step of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MigrationStep {
    /// The migration has ended: remove its condition Running and update the condition of the definition.
    CleanUp,
    /// Set the condition Running.
    Start,
    /// Rewrite the objects.
    Run,
}

/// Returns the resource that a migration names.
pub(super) fn resource_of(migration: &Object) -> GroupResource {
    let resource = migration.at(&["spec", "resource"]);
    let [group, resource] = ["group", "resource"].map(|field| resource.field(field).str());
    GroupResource::new(group, resource)
}

/// Returns the steps of the migrations of one resource: ended ones are cleaned up, and the oldest pending one starts if none
/// is running.
pub(super) fn steps<'a>(
    all: &'a [StoredObject],
    resource: &GroupResource,
) -> Vec<(&'a StoredObject, MigrationStep)> {
    let for_resource: Vec<&StoredObject> =
        all.iter().filter(|m| resource_of(m.object()) == *resource).collect();
    let mut steps: Vec<(&StoredObject, MigrationStep)> =
        for_resource.iter().filter_map(|migration| Some((*migration, step(migration.object())?))).collect();
    if steps.iter().all(|(_, step)| *step == MigrationStep::CleanUp) {
        let waiting = for_resource.into_iter().filter(|m| !is_running(m.object()) && !has_ended(m.object()));
        let oldest = waiting.min_by_key(|m| (m.object().creation_timestamp(), m.name()));
        steps.extend(oldest.map(|migration| (migration, MigrationStep::Start)));
    }
    steps
}

/// Returns the step of a migration with the condition Running.
fn step(migration: &Object) -> Option<MigrationStep> {
    is_running(migration)
        .then(|| if has_ended(migration) { MigrationStep::CleanUp } else { MigrationStep::Run })
}

fn is_running(migration: &Object) -> bool {
    condition::is_true(migration, RUNNING)
}

fn has_ended(migration: &Object) -> bool {
    condition::is_true(migration, SUCCEEDED) || condition::is_true(migration, FAILED)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use portico_store::{Indexed, Key, Record, Resource, Value};

    use super::*;

    fn migration(name: &str, created: u32, resource: &str, conditions: &[&str]) -> StoredObject {
        let reported: Vec<String> =
            conditions.iter().map(|kind| format!(r#"{{"type":"{kind}","status":"True"}}"#)).collect();
        let json = format!(
            r#"{{"metadata":{{"name":"{name}","creationTimestamp":"2026-01-01T00:00:{created:02}Z"}},
                "spec":{{"resource":{{"group":"g.io","resource":"{resource}"}}}},"status":{{"conditions":[{}]}}}}"#,
            reported.join(",")
        );
        let key = Key::new(&Resource::new("storagemigration.k8s.io", "storageversionmigrations"), "", name);
        let value = Value::new(json.into_bytes(), Indexed::default());
        StoredObject::new(Arc::new(Record { key, revision: 1, value }))
    }

    fn decided(all: &[StoredObject]) -> Vec<(&str, MigrationStep)> {
        let steps = steps(all, &GroupResource::new("g.io", "bolts"));
        steps.into_iter().map(|(migration, step)| (migration.name(), step)).collect()
    }

    #[test]
    fn one_migration_per_resource_runs_at_a_time_oldest_first() {
        let waiting = || {
            vec![
                migration("b", 1, "bolts", &[]),
                migration("a", 1, "bolts", &[]),
                migration("0", 2, "bolts", &[]),
            ]
        };
        assert_eq!(decided(&waiting()), [("a", MigrationStep::Start)]);
        let with = |more: StoredObject| waiting().into_iter().chain([more]).collect::<Vec<_>>();
        assert_eq!(decided(&with(migration("r", 3, "bolts", &["Running"]))), [("r", MigrationStep::Run)]);
        let ended = migration("r", 3, "bolts", &["Running", "Succeeded"]);
        assert_eq!(decided(&with(ended)), [("r", MigrationStep::CleanUp), ("a", MigrationStep::Start)]);
        assert_eq!(decided(&with(migration("r", 0, "nuts", &["Running"]))), [("a", MigrationStep::Start)]);
    }

    #[test]
    fn a_cleaned_up_migration_has_no_steps() {
        assert_eq!(decided(&[migration("a", 1, "bolts", &["Failed"])]), []);
        assert_eq!(
            decided(&[migration("a", 1, "bolts", &["Running", "Failed"])]),
            [("a", MigrationStep::CleanUp)]
        );
    }
}
