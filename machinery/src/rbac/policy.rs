//! Index of roles and bindings by subject: the cost of a decision depends on the bindings of the user, not on their total number.
//!
//! The maps are persistent: a clone shares all data, and a change copies only the path to the changed entry. Readers keep a
//! consistent policy, and a new version costs no more than the change.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexSet;
use rpds::{HashTrieMapSync, RedBlackTreeMapSync};

use super::{Binding, Fact, Key, RoleRef, Rule, Subject};
use crate::request_info::RequestInfo;
use crate::user::UserInfo;

/// Decision of the policy on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyDecision {
    /// Allowed, with the reason.
    Allowed(String),
    /// No rule allows the request. Contains the missing roles of the user's bindings.
    NoOpinion(String),
}

/// Rules of a user in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedRules {
    /// Rules of cluster bindings, then those of bindings in the namespace, each sorted by the name of the binding.
    pub rules: Vec<Rule>,
    /// Errors for missing roles that bindings refer to.
    pub errors: Vec<String>,
}

/// Binding with its namespace and name.
#[derive(Debug)]
struct NamedBinding {
    namespace: String,
    name: String,
    binding: Binding,
}

/// Bindings of one subject: by namespace (empty at cluster scope) and name.
type Grants = HashTrieMapSync<String, RedBlackTreeMapSync<String, Arc<NamedBinding>>>;
/// Map by namespace and name.
type ByName<T> = HashTrieMapSync<String, HashTrieMapSync<String, T>>;

/// Roles and bindings, indexed for decisions. Cloning is cheap, and a clone does not see later changes.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    roles: ByName<Arc<[Rule]>>,
    bindings: ByName<Arc<NamedBinding>>,
    /// Bindings by user name; service accounts under the user name of their tokens.
    users: HashTrieMapSync<String, Grants>,
    groups: HashTrieMapSync<String, Grants>,
}

impl Policy {
    /// Sets the content of an object, or removes the object.
    pub fn set(&mut self, key: Key, fact: Option<Fact>) {
        let Key { resource, namespace, name } = key;
        if resource.is_binding() {
            self.unbind(&namespace, &name);
            if let Some(Fact::Binding(binding)) = fact {
                self.bind(Arc::new(NamedBinding { namespace, name, binding }));
            }
            return;
        }
        match fact {
            Some(Fact::Rules(rules)) => {
                insert(&mut self.roles, namespace, name, rules.into());
            }
            _ => remove(&mut self.roles, &namespace, &name),
        }
    }

    fn bind(&mut self, bound: Arc<NamedBinding>) {
        for subject in &bound.binding.subjects {
            let (subjects, name) = match subject {
                Subject::User(name) => (&mut self.users, name.clone()),
                Subject::Group(name) => (&mut self.groups, name.clone()),
                Subject::ServiceAccount { namespace, .. } if namespace.is_empty() => continue,
                Subject::ServiceAccount { namespace, name } => {
                    (&mut self.users, service_account(namespace, name))
                }
            };
            let mut grants = subjects.get(&name).cloned().unwrap_or_default();
            let mut in_namespace = grants.get(&bound.namespace).cloned().unwrap_or_default();
            in_namespace.insert_mut(bound.name.clone(), bound.clone());
            grants.insert_mut(bound.namespace.clone(), in_namespace);
            subjects.insert_mut(name, grants);
        }
        insert(&mut self.bindings, bound.namespace.clone(), bound.name.clone(), bound);
    }

    fn unbind(&mut self, namespace: &str, name: &str) {
        let Some(bound) =
            self.bindings.get(namespace).and_then(|in_namespace| in_namespace.get(name)).cloned()
        else {
            return;
        };
        remove(&mut self.bindings, namespace, name);
        for subject in &bound.binding.subjects {
            match subject {
                Subject::User(user) => remove_grant(&mut self.users, user, &bound),
                Subject::Group(group) => remove_grant(&mut self.groups, group, &bound),
                Subject::ServiceAccount { namespace, name } => {
                    remove_grant(&mut self.users, &service_account(namespace, name), &bound);
                }
            }
        }
    }

    /// Decides if a user may send a request.
    #[must_use]
    pub fn decide(&self, user: &UserInfo, request: &RequestInfo) -> PolicyDecision {
        let namespace = if request.is_resource_request { request.namespace.as_str() } else { "" };
        let mut dangling = false;
        for bound in self.grants(user, namespace) {
            match self.rules_of(&bound.namespace, &bound.binding.role) {
                Some(rules) if rules.iter().any(|rule| rule.allows(request)) => {
                    return PolicyDecision::Allowed(reason(bound, user));
                }
                Some(_) => {}
                None => dangling = true,
            }
        }
        if !dangling {
            return PolicyDecision::NoOpinion(String::new());
        }
        PolicyDecision::NoOpinion(format!("RBAC: {}", aggregate(&self.resolve_rules(user, namespace).errors)))
    }

    /// Returns all rules of a user; for an empty namespace, those at cluster scope.
    #[must_use]
    pub fn resolve_rules(&self, user: &UserInfo, namespace: &str) -> ResolvedRules {
        // A binding that names both a user and one of the user's groups counts once.
        let bound: BTreeMap<(&str, &str), &Arc<NamedBinding>> =
            self.grants(user, namespace).map(|b| ((b.namespace.as_str(), b.name.as_str()), b)).collect();
        let mut resolved = ResolvedRules::default();
        for bound in bound.into_values() {
            let role = &bound.binding.role;
            match self.rules_of(&bound.namespace, role) {
                Some(rules) => resolved.rules.extend(rules.iter().cloned()),
                None => resolved.errors.push(not_found(role)),
            }
        }
        resolved
    }

    /// Returns the bindings of a user that apply in a namespace, those at cluster scope first.
    fn grants<'a>(
        &'a self,
        user: &'a UserInfo,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<NamedBinding>> + 'a {
        let scopes = [Some(""), Some(namespace).filter(|n| !n.is_empty())];
        scopes.into_iter().flatten().flat_map(move |scope| {
            let groups = user.groups.iter().filter_map(|group| self.groups.get(group));
            let grants = self.users.get(&user.name).into_iter().chain(groups);
            grants.filter_map(move |grants| grants.get(scope)).flat_map(RedBlackTreeMapSync::values)
        })
    }

    fn rules_of(&self, namespace: &str, role: &RoleRef) -> Option<&Arc<[Rule]>> {
        let namespace = if role.is_cluster_role { "" } else { namespace };
        self.roles.get(namespace)?.get(&role.name)
    }
}

/// Joins errors into one line like upstream: a single one as it is, several in brackets, each once.
#[must_use]
pub fn aggregate(errors: &[String]) -> String {
    let each: IndexSet<&str> = errors.iter().map(String::as_str).collect();
    let each: Vec<&str> = each.into_iter().collect();
    match each.as_slice() {
        [one] => (*one).to_owned(),
        several => format!("[{}]", several.join(", ")),
    }
}

fn not_found(role: &RoleRef) -> String {
    format!("{}.{} {:?} not found", role.kind().to_lowercase(), super::GROUP, role.name)
}

/// Returns the binding, role and subject that allow a request.
fn reason(bound: &NamedBinding, user: &UserInfo) -> String {
    let NamedBinding { namespace, name, binding } = bound;
    let subject = binding.subjects.iter().find(|subject| applies_to(subject, user));
    let subject = subject.map(ToString::to_string).unwrap_or_default();
    let binding_name = match namespace.as_str() {
        "" => format!("ClusterRoleBinding {name:?}"),
        _ => format!("RoleBinding {:?}", format!("{name}/{namespace}")),
    };
    let role = &binding.role;
    format!("RBAC: allowed by {binding_name} of {} {:?} to {subject}", role.kind(), role.name)
}

fn applies_to(subject: &Subject, user: &UserInfo) -> bool {
    match subject {
        Subject::User(name) => *name == user.name,
        Subject::Group(name) => user.in_group(name),
        Subject::ServiceAccount { namespace, name } => user.name == service_account(namespace, name),
    }
}

fn service_account(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

fn insert<T>(map: &mut ByName<T>, namespace: String, name: String, value: T) {
    let mut in_namespace = map.get(&namespace).cloned().unwrap_or_default();
    in_namespace.insert_mut(name, value);
    map.insert_mut(namespace, in_namespace);
}

fn remove<T>(map: &mut ByName<T>, namespace: &str, name: &str) {
    let Some(mut in_namespace) = map.get(namespace).cloned() else { return };
    in_namespace.remove_mut(name);
    if in_namespace.is_empty() {
        map.remove_mut(namespace);
    } else {
        map.insert_mut(namespace.to_owned(), in_namespace);
    }
}

fn remove_grant(subjects: &mut HashTrieMapSync<String, Grants>, subject: &str, bound: &NamedBinding) {
    let Some(mut grants) = subjects.get(subject).cloned() else { return };
    if let Some(mut in_namespace) = grants.get(&bound.namespace).cloned() {
        in_namespace.remove_mut(&bound.name);
        if in_namespace.is_empty() {
            grants.remove_mut(&bound.namespace);
        } else {
            grants.insert_mut(bound.namespace.clone(), in_namespace);
        }
    }
    if grants.is_empty() {
        subjects.remove_mut(subject);
    } else {
        subjects.insert_mut(subject.to_owned(), grants);
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
