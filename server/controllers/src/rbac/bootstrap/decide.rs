//! Decides the change that one object of the policy needs. Pure.

use portico_machinery::rbac::{Binding, GROUP, Resource, Rule, Subject, missing};
use portico_machinery::{Cursor, GroupVersionKind, Node, Object};
use portico_registry::Stored;
use serde::Serialize;

use super::facts::{Content, Entry};

const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";
const AGGREGATE_TO: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// A write that reconciles one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub resource: Resource,
    pub verb: Verb,
    /// Object to write.
    pub object: Object,
}

/// Kind of write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
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
pub(super) fn step(wanted: &Entry, present: Option<&Stored>) -> Option<Step> {
    step_of(wanted, present.map(Stored::object))
}

fn step_of(wanted: &Entry, present: Option<&Object>) -> Option<Step> {
    let resource = wanted.key.resource;
    let Some(present) = present else {
        return Some(Step { resource, verb: Verb::Create, object: whole(wanted) });
    };
    if present.annotation(AUTO_UPDATE) == Some("false") {
        return None;
    }
    if let Content::Binds(binding) = &wanted.content
        && !grants(present, binding)
    {
        let verb = Verb::Recreate { uid: present.uid().to_owned() };
        return Some(Step { resource, verb, object: whole(wanted) });
    }
    let mut object = present.clone();
    complete_metadata(&mut object, wanted);
    match &wanted.content {
        Content::Rules(rules) => complete_rules(&mut object, rules),
        Content::Gathers(what) => complete_selectors(&mut object, what),
        Content::Binds(binding) => complete_subjects(&mut object, binding),
    }
    (object != *present).then_some(Step { resource, verb: Verb::Update, object })
}

/// Returns the complete object of the policy.
fn whole(wanted: &Entry) -> Object {
    let key = &wanted.key;
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
    complete_metadata(&mut object, wanted);
    match &wanted.content {
        Content::Rules(rules) => object.set(&["rules"], rules),
        Content::Gathers(what) => complete_selectors(&mut object, what),
        Content::Binds(binding) => {
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
fn complete_metadata(object: &mut Object, wanted: &Entry) {
    let into = wanted.into.as_ref().map(|role| (format!("{AGGREGATE_TO}{role}"), "true"));
    let labels = [(BOOTSTRAPPING.to_owned(), "rbac-defaults")].into_iter().chain(into);
    let annotations = [(AUTO_UPDATE.to_owned(), "true")];
    let mut complete = |map: &str, key: &str, value: &str| {
        if object.at(&["metadata", map]).entry_str(key).is_none() {
            object.set(&["metadata", map, key], value);
        }
    };
    labels.for_each(|(key, value)| complete("labels", &key, value));
    annotations.into_iter().for_each(|(key, value)| complete("annotations", &key, value));
}

fn complete_rules(object: &mut Object, wanted: &[Rule]) {
    let mut rules = Rule::read_all(&object.at(&["rules"]));
    let missing = missing(&rules, wanted);
    if !missing.is_empty() {
        rules.extend(missing);
        object.set(&["rules"], rules);
    }
}

fn complete_selectors(object: &mut Object, what: &str) {
    let label = format!("{AGGREGATE_TO}{what}");
    let place = ["aggregationRule", "clusterRoleSelectors"];
    let selects = |selector: Cursor<'_>| {
        let labels = selector.field("matchLabels");
        selector.len() == 1 && labels.len() == 1 && labels.entry_str(&label) == Some("true")
    };
    if object.at(&place).items().any(selects) {
        return;
    }
    let mut own = Object::default();
    own.set(&["matchLabels", &label], "true");
    append(object, &place, vec![own.into_node()]);
}

/// Appends items to a list field.
fn append(object: &mut Object, place: &[&str], more: Vec<Node>) {
    let mut all: Vec<Node> = object.at(place).items().filter_map(|item| item.node()).collect();
    all.extend(more);
    object.set(place, all);
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
    let wanted = binding.subjects.iter().map(subject);
    wanted.filter(|wanted| !present.items().any(|one| same(&one, wanted))).map(Object::into_node).collect()
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
#[path = "decide_tests.rs"]
mod tests;
