//! `clusterrole-aggregation-controller`: fills the rules of aggregated ClusterRoles.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_kit::tasks::TaskSet;
use portico_machinery::rbac::{Resource, Rule};
use portico_machinery::selector::LabelSelector;
use portico_machinery::{Object, Reason, Status};
use portico_registry::{Change, ChangeStream, Context, ObjectPart, Registry, StoredObject, UpdateOptions};
use tokio::time::timeout;

/// Name of the controller in kube-controller-manager.
pub const NAME: &str = "clusterrole-aggregation-controller";
/// Maximum number of changes processed together.
const MAX_BATCH_SIZE: usize = 512;
/// Delay after which a failed write is retried, unless a change arrives earlier.
const RETRY_DELAY: Duration = Duration::from_secs(60);

/// ClusterRoles, by name.
type Roles = BTreeMap<String, StoredObject>;

/// Maintains the rules of aggregated roles until `tasks` is cancelled.
pub async fn run(registry: Registry, tasks: TaskSet) {
    tasks.token().run_until_cancelled(reconcile_loop(&registry)).await;
}

async fn reconcile_loop(registry: &Registry) {
    let mut backoff = Backoff::new(BackoffPolicy::RECONNECT);
    loop {
        match registry.follow(&Resource::ClusterRoles.group_resource()).await {
            Ok(feed) => {
                backoff.reset();
                let roles = by_name(feed.initial);
                process_changes(registry, roles, feed.changes).await;
            }
            Err(status) => tracing::warn!(error = %status, "cannot watch ClusterRoles, retrying"),
        }
        tokio::time::sleep(backoff.next_wait()).await;
    }
}

/// Processes changes until the store closes or changes were missed.
async fn process_changes(registry: &Registry, mut roles: Roles, changes: ChangeStream) {
    let mut batches = changes.ready_chunks(MAX_BATCH_SIZE);
    loop {
        for (role, rules) in outdated_roles(&roles) {
            if let Err(status) = write(registry, role, rules).await {
                tracing::warn!(
                    error = %status,
                    role = role.name(),
                    "cannot write the aggregated rules of a ClusterRole, retrying"
                );
            }
        }
        match timeout(RETRY_DELAY, batches.next()).await {
            Ok(None) => return,
            Ok(Some(batch)) => batch.into_iter().for_each(|change| apply(&mut roles, change)),
            Err(_) => {}
        }
    }
}

fn apply(roles: &mut Roles, change: Change) {
    match change {
        Change::Put(stored) => drop(roles.insert(stored.name().to_owned(), stored)),
        Change::Deleted(stored) => drop(roles.remove(stored.name())),
        Change::Relisted(all, _) => *roles = by_name(all),
    }
}

fn by_name(all: Vec<StoredObject>) -> Roles {
    all.into_iter().map(|stored| (stored.name().to_owned(), stored)).collect()
}

/// Returns the aggregated roles whose rules are outdated, with the desired rules.
fn outdated_roles(roles: &Roles) -> Vec<(&StoredObject, Vec<Rule>)> {
    let aggregated_roles = roles.values().filter(|role| is_aggregated(role.object()));
    let objects: Vec<&Object> = roles.values().map(StoredObject::object).collect();
    aggregated_roles.filter_map(|role| Some((role, decide(role.object(), &objects)?))).collect()
}

fn is_aggregated(role: &Object) -> bool {
    role.at(&["aggregationRule"]).is_present()
}

/// Returns the desired rules of a role; `None` if they are up to date. `all` is sorted by name. Pure.
fn decide(role: &Object, all: &[&Object]) -> Option<Vec<Rule>> {
    let mut rules: Vec<Rule> = Vec::new();
    for selector in role.at(&["aggregationRule", "clusterRoleSelectors"]).items() {
        // An invalid selector selects nothing; validation rejects such selectors.
        let Ok(Some(selector)) = LabelSelector::from_object(&selector) else { continue };
        let selected =
            |other: &&&Object| other.name() != role.name() && selector.matches(other.label_entries());
        for other in all.iter().filter(selected) {
            for rule in Rule::read_all(&other.at(&["rules"])) {
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
        }
    }
    (rules != Rule::read_all(&role.at(&["rules"]))).then_some(rules)
}

async fn write(registry: &Registry, role: &StoredObject, rules: Vec<Rule>) -> Result<(), Box<Status>> {
    let mut object = role.object().clone();
    object.set(&["rules"], rules);
    let resource = Resource::ClusterRoles.group_resource();
    let options = UpdateOptions::default();
    match registry.update(&Context::system(NAME), &resource, ObjectPart::Main, object, &options).await {
        // Another client was faster; its change will arrive as an event.
        Err(status) if matches!(status.reason(), Reason::Conflict | Reason::NotFound) => Ok(()),
        written => written.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(json: &str) -> Object {
        Object::from_json(json.as_bytes()).unwrap()
    }

    fn verbs(rules: &[Rule]) -> Vec<&str> {
        rules.iter().map(|rule| rule.verbs[0].as_str()).collect()
    }

    #[test]
    fn a_role_aggregates_each_rule_once_by_name_and_never_its_own() {
        let aggregated = role(
            r#"{"metadata":{"name":"b","labels":{"x":"1"}},"rules":[{"verbs":["old"]}],
                "aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"x":"1"}},{"matchLabels":{"y":"1"}}]}}"#,
        );
        let first = role(r#"{"metadata":{"name":"a","labels":{"y":"1"}},"rules":[{"verbs":["get"]}]}"#);
        let second = role(
            r#"{"metadata":{"name":"c","labels":{"x":"1"}},"rules":[{"verbs":["list"]},{"verbs":["get"]}]}"#,
        );
        let other = role(r#"{"metadata":{"name":"d"},"rules":[{"verbs":["delete"]}]}"#);
        let all = [&first, &aggregated, &second, &other];
        let rules = decide(&aggregated, &all).unwrap();
        assert_eq!(verbs(&rules), ["list", "get"]);
        let mut expected = aggregated.clone();
        expected.set(&["rules"], rules);
        assert_eq!(decide(&expected, &all), None);
    }

    #[test]
    fn a_role_without_selected_roles_is_emptied() {
        let aggregated = role(
            r#"{"metadata":{"name":"b"},"rules":[{"verbs":["old"]}],
                "aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"x":"1"}}]}}"#,
        );
        assert_eq!(decide(&aggregated, &[&aggregated]), Some(Vec::new()));
    }
}
