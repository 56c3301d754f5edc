//! Decides the change that one object of the policy needs. Pure.

use portico_machinery::rbac::{Binding, GROUP, Resource, Rule, Subject, missing_rights};
use portico_machinery::{Cursor, GroupVersionKind, Node, Object};
use portico_registry::StoredObject;
use serde::Serialize;

use super::policy_data::{PolicyContent, PolicyObject};

const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";
const AGGREGATE_TO: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// A write that reconciles one object.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyStep {
    pub resource: Resource,
    pub verb: PolicyStepVerb,
    /// Object to write.
    pub object: Object,
}

/// Kind of write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyStepVerb {
    /// The object does not exist.
    Create,
    /// Parts of the object are missing.
    Update,
    /// The binding refers to another role, which is immutable.
    Recreate {
        /// UID of the binding to delete.
        uid: String,
    },
}

/// Returns the step; `None` if the object is complete or protected.
pub(super) fn step(expected: &PolicyObject, present: Option<&StoredObject>) -> Option<PolicyStep> {
    step_of(expected, present.map(StoredObject::object))
}

fn step_of(expected: &PolicyObject, present: Option<&Object>) -> Option<PolicyStep> {
    let resource = expected.key.resource;
    let Some(present) = present else {
        return Some(PolicyStep {
            resource,
            verb: PolicyStepVerb::Create,
            object: complete_object(expected),
        });
    };
    if present.annotation(AUTO_UPDATE) == Some("false") {
        return None;
    }
    if let PolicyContent::Binding(binding) = &expected.content
        && !grants(present, binding)
    {
        let verb = PolicyStepVerb::Recreate { uid: present.uid().to_owned() };
        return Some(PolicyStep { resource, verb, object: complete_object(expected) });
    }
    let mut object = present.clone();
    complete_metadata(&mut object, expected);
    match &expected.content {
        PolicyContent::Rules(rules) => complete_rules(&mut object, rules),
        PolicyContent::Aggregates(role) => complete_selectors(&mut object, role),
        PolicyContent::Binding(binding) => complete_subjects(&mut object, binding),
    }
    (object != *present).then_some(PolicyStep { resource, verb: PolicyStepVerb::Update, object })
}

/// Returns the complete object of the policy.
fn complete_object(expected: &PolicyObject) -> Object {
    let key = &expected.key;
    let kind = GroupVersionKind {
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        kind: key.resource.kind().to_owned(),
    };
    let mut object = Object::new(&kind);
    object.set(&["metadata", "name"], &key.name);
    if !key.namespace.is_empty() {
        object.set(&["metadata", "namespace"], &key.namespace);
    }
    complete_metadata(&mut object, expected);
    match &expected.content {
        PolicyContent::Rules(rules) => object.set(&["rules"], rules),
        PolicyContent::Aggregates(role) => complete_selectors(&mut object, role),
        PolicyContent::Binding(binding) => {
            let role = &binding.role;
            object.set(&["roleRef"], RoleRefJson { api_group: GROUP, kind: role.kind(), name: &role.name });
            complete_subjects(&mut object, binding);
        }
    }
    object
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RoleRefJson<'a> {
    api_group: &'a str,
    kind: &'a str,
    name: &'a str,
}

/// Adds the labels and annotations of the policy, except keys that already have a value.
fn complete_metadata(object: &mut Object, expected: &PolicyObject) {
    let aggregation_label =
        expected.aggregate_to.as_ref().map(|role| (format!("{AGGREGATE_TO}{role}"), "true"));
    let labels = [(BOOTSTRAPPING.to_owned(), "rbac-defaults")].into_iter().chain(aggregation_label);
    let annotations = [(AUTO_UPDATE.to_owned(), "true")];
    let mut complete = |map: &str, key: &str, value: &str| {
        if object.at(&["metadata", map]).entry_str(key).is_none() {
            object.set(&["metadata", map, key], value);
        }
    };
    labels.for_each(|(key, value)| complete("labels", &key, value));
    annotations.into_iter().for_each(|(key, value)| complete("annotations", &key, value));
}

fn complete_rules(object: &mut Object, expected: &[Rule]) {
    let mut rules = Rule::read_all(&object.at(&["rules"]));
    let missing = missing_rights(&rules, expected);
    if !missing.is_empty() {
        rules.extend(missing);
        object.set(&["rules"], rules);
    }
}

fn complete_selectors(object: &mut Object, role: &str) {
    let label = format!("{AGGREGATE_TO}{role}");
    let path = ["aggregationRule", "clusterRoleSelectors"];
    let selects = |selector: Cursor<'_>| {
        let labels = selector.field("matchLabels");
        selector.len() == 1 && labels.len() == 1 && labels.entry_str(&label) == Some("true")
    };
    if object.at(&path).items().any(selects) {
        return;
    }
    let mut selector = Object::default();
    selector.set(&["matchLabels", &label], "true");
    append(object, &path, vec![selector.into_node()]);
}

/// Appends items to a list field.
fn append(object: &mut Object, path: &[&str], items: Vec<Node>) {
    let mut all: Vec<Node> = object.at(path).items().filter_map(|item| item.node()).collect();
    all.extend(items);
    object.set(path, all);
}

fn grants(present: &Object, binding: &Binding) -> bool {
    let role = present.at(&["roleRef"]);
    role.field("kind").str() == binding.role.kind()
        && role.field("name").str() == binding.role.name
        && role.field("apiGroup").str() == GROUP
}

fn complete_subjects(object: &mut Object, binding: &Binding) {
    let missing = missing_subjects(object, binding);
    if !missing.is_empty() {
        append(object, &["subjects"], missing);
    }
}

fn missing_subjects(object: &Object, binding: &Binding) -> Vec<Node> {
    let same = |one: &Cursor<'_>, other: &Object| {
        ["kind", "name", "namespace"].iter().all(|field| one.field(field).str() == other.at(&[field]).str())
    };
    let present = object.at(&["subjects"]);
    let expected = binding.subjects.iter().map(subject);
    expected
        .filter(|expected| !present.items().any(|one| same(&one, expected)))
        .map(Object::into_node)
        .collect()
}

fn subject(subject: &Subject) -> Object {
    let (kind, namespace, name) = match subject {
        Subject::User(name) => ("User", "", name),
        Subject::Group(name) => ("Group", "", name),
        Subject::ServiceAccount { namespace, name } => ("ServiceAccount", namespace.as_str(), name),
    };
    let mut object = Object::default();
    object.set(&["kind"], kind);
    if namespace.is_empty() {
        object.set(&["apiGroup"], GROUP);
    }
    object.set(&["name"], name);
    if !namespace.is_empty() {
        object.set(&["namespace"], namespace);
    }
    object
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
