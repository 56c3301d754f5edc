//! The bootstrap policy as data, embedded as a file. The head of `data/rbac.yaml` describes the format.

use std::collections::BTreeMap;

use portico_machinery::rbac::{Binding, Key, Resource, RoleRef, Rule, Subject};
use serde::Deserialize;

/// `data/rbac.yaml` as JSON, converted by the build script.
const FILE: &str = include_str!(concat!(env!("OUT_DIR"), "/rbac.json"));

/// One object of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyObject {
    pub key: Key,
    /// Aggregated role that includes this role's rules, expressed by a label.
    pub aggregate_to: Option<String>,
    pub content: PolicyContent,
}

/// The content of an object of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyContent {
    /// A role with rules.
    Rules(Vec<Rule>),
    /// A ClusterRole that aggregates the rules of roles with a label.
    Aggregates(String),
    /// A binding.
    Binding(Binding),
}

/// Error: the embedded policy file is invalid, which is a fault of the build.
#[derive(Debug, thiserror::Error)]
pub enum InvalidPolicyFile {
    /// The structure of the file is invalid.
    #[error("invalid bootstrap policy: {0}")]
    Shape(#[from] serde_json::Error),
    /// A rule or subject cannot be parsed.
    #[error("invalid bootstrap policy: cannot parse {0}")]
    InvalidEntry(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PolicyFile {
    cluster_roles: BTreeMap<String, RoleEntry>,
    cluster_role_bindings: BTreeMap<String, BindingEntry>,
    roles: BTreeMap<String, RoleEntry>,
    role_bindings: BTreeMap<String, BindingEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoleEntry {
    into: Option<String>,
    gathers: Option<String>,
    #[serde(default)]
    rules: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BindingEntry {
    role: Option<String>,
    to: Vec<String>,
}

/// Returns all objects of the policy.
///
/// # Errors
/// Returns [`InvalidPolicyFile`] if the embedded file is invalid.
pub fn policy_objects() -> Result<Vec<PolicyObject>, InvalidPolicyFile> {
    let file: PolicyFile = serde_json::from_str(FILE)?;
    let roles = [(Resource::ClusterRoles, file.cluster_roles), (Resource::Roles, file.roles)];
    let bindings = [
        (Resource::ClusterRoleBindings, file.cluster_role_bindings),
        (Resource::RoleBindings, file.role_bindings),
    ];
    let mut entries = Vec::new();
    for (resource, roles) in roles {
        for (name, role) in roles {
            let content = match role.gathers {
                Some(label) => PolicyContent::Aggregates(label),
                None => {
                    PolicyContent::Rules(role.rules.iter().map(|text| rule(text)).collect::<Result<_, _>>()?)
                }
            };
            entries.push(PolicyObject { key: key(resource, &name), aggregate_to: role.into, content });
        }
    }
    for (resource, bindings) in bindings {
        for (name, grant) in bindings {
            let key = key(resource, &name);
            let is_cluster_role = resource == Resource::ClusterRoleBindings;
            let role = RoleRef { is_cluster_role, name: grant.role.unwrap_or_else(|| key.name.clone()) };
            let subjects = grant.to.iter().map(|text| subject(text)).collect::<Result<_, _>>()?;
            entries.push(PolicyObject {
                key,
                aggregate_to: None,
                content: PolicyContent::Binding(Binding { role, subjects }),
            });
        }
    }
    Ok(entries)
}

fn key(resource: Resource, name: &str) -> Key {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    Key { resource, namespace: namespace.to_owned(), name: name.to_owned() }
}

fn rule(text: &str) -> Result<Rule, InvalidPolicyFile> {
    let list = |word: &str| -> Vec<String> { word.split(',').map(str::to_owned).collect() };
    let words: Vec<&str> = text.split(' ').collect();
    Ok(match words.as_slice() {
        [verbs, paths] => Rule { verbs: list(verbs), non_resource_urls: list(paths), ..Rule::default() },
        [verbs, groups, resources, names @ ..] if names.len() < 2 => Rule {
            verbs: list(verbs),
            api_groups: groups.split(',').map(|g| if g == "core" { "" } else { g }.to_owned()).collect(),
            resources: list(resources),
            resource_names: names.iter().flat_map(|names| list(names)).collect(),
            ..Rule::default()
        },
        _ => return Err(InvalidPolicyFile::InvalidEntry(text.to_owned())),
    })
}

fn subject(text: &str) -> Result<Subject, InvalidPolicyFile> {
    let invalid_entry = || InvalidPolicyFile::InvalidEntry(text.to_owned());
    let (kind, name) = text.split_once(' ').ok_or_else(invalid_entry)?;
    match (kind, name.split_once('/')) {
        ("User", _) => Ok(Subject::User(name.to_owned())),
        ("Group", _) => Ok(Subject::Group(name.to_owned())),
        ("ServiceAccount", Some((namespace, name))) => {
            Ok(Subject::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() })
        }
        _ => Err(invalid_entry()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_policy_is_parsed() {
        let entries = policy_objects().unwrap();
        let count_of = |resource| entries.iter().filter(|e| e.key.resource == resource).count();
        assert_eq!(Resource::ALL.map(count_of), [69, 50, 7, 7]);
        let admin = entries.iter().find(|e| e.key.name == "cluster-admin").unwrap();
        assert_eq!(
            admin.content,
            PolicyContent::Rules(portico_machinery::rbac::cluster_admin_rules().to_vec())
        );
    }

    #[test]
    fn every_binding_grants_a_role_of_the_policy() {
        let entries = policy_objects().unwrap();
        for entry in &entries {
            let PolicyContent::Binding(Binding { role, .. }) = &entry.content else { continue };
            let resource = if role.is_cluster_role { Resource::ClusterRoles } else { Resource::Roles };
            let namespace = entry.key.namespace.clone();
            let role = Key { resource, namespace, name: role.name.clone() };
            assert!(entries.iter().any(|e| e.key == role), "{} grants {role}", entry.key);
        }
    }
}
