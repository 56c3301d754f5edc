//! The bootstrap policy as data, embedded as a file. The head of `data/rbac.yaml` describes the format.

use std::collections::BTreeMap;

use portico_machinery::rbac::{Binding, Key, Resource, RoleRef, Rule, Subject};
use serde::Deserialize;

/// `data/rbac.yaml` as JSON, converted by the build script.
const FILE: &str = include_str!(concat!(env!("OUT_DIR"), "/rbac.json"));

/// One object of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Key,
    /// Aggregated role that includes this role's rules, expressed by a label.
    pub into: Option<String>,
    pub content: Content,
}

/// The content of an object of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A role with rules.
    Rules(Vec<Rule>),
    /// A ClusterRole that aggregates the rules of roles with a label.
    Gathers(String),
    /// A binding.
    Binds(Binding),
}

/// The embedded file is invalid, which is an error of the build.
#[derive(Debug, thiserror::Error)]
pub enum WrongFacts {
    /// The structure of the file is invalid.
    #[error("invalid bootstrap policy: {0}")]
    Shape(#[from] serde_json::Error),
    /// A rule or subject cannot be parsed.
    #[error("invalid bootstrap policy: cannot parse {0}")]
    Word(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    cluster_roles: BTreeMap<String, Role>,
    cluster_role_bindings: BTreeMap<String, Grant>,
    roles: BTreeMap<String, Role>,
    role_bindings: BTreeMap<String, Grant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Role {
    into: Option<String>,
    gathers: Option<String>,
    #[serde(default)]
    rules: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grant {
    role: Option<String>,
    to: Vec<String>,
}

/// Returns all objects of the policy.
///
/// # Errors
/// Returns [`InvalidPolicyFile`] if the embedded file is invalid.
pub fn entries() -> Result<Vec<Entry>, WrongFacts> {
    let file: File = serde_json::from_str(FILE)?;
    let roles = [(Resource::ClusterRoles, file.cluster_roles), (Resource::Roles, file.roles)];
    let bindings = [
        (Resource::ClusterRoleBindings, file.cluster_role_bindings),
        (Resource::RoleBindings, file.role_bindings),
    ];
    let mut entries = Vec::new();
    for (resource, roles) in roles {
        for (name, role) in roles {
            let content = match role.gathers {
                Some(what) => Content::Gathers(what),
                None => Content::Rules(role.rules.iter().map(|text| rule(text)).collect::<Result<_, _>>()?),
            };
            entries.push(Entry { key: key(resource, &name), into: role.into, content });
        }
    }
    for (resource, bindings) in bindings {
        for (name, grant) in bindings {
            let key = key(resource, &name);
            let cluster = resource == Resource::ClusterRoleBindings;
            let role = RoleRef { cluster, name: grant.role.unwrap_or_else(|| key.name.clone()) };
            let subjects = grant.to.iter().map(|text| subject(text)).collect::<Result<_, _>>()?;
            entries.push(Entry { key, into: None, content: Content::Binds(Binding { role, subjects }) });
        }
    }
    Ok(entries)
}

fn key(resource: Resource, name: &str) -> Key {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    Key { resource, namespace: namespace.to_owned(), name: name.to_owned() }
}

fn rule(text: &str) -> Result<Rule, WrongFacts> {
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
        _ => return Err(WrongFacts::Word(text.to_owned())),
    })
}

fn subject(text: &str) -> Result<Subject, WrongFacts> {
    let wrong = || WrongFacts::Word(text.to_owned());
    let (kind, name) = text.split_once(' ').ok_or_else(wrong)?;
    match (kind, name.split_once('/')) {
        ("User", _) => Ok(Subject::User(name.to_owned())),
        ("Group", _) => Ok(Subject::Group(name.to_owned())),
        ("ServiceAccount", Some((namespace, name))) => {
            Ok(Subject::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() })
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_reads_whole() {
        let entries = entries().unwrap();
        let of = |resource| entries.iter().filter(|e| e.key.resource == resource).count();
        assert_eq!(Resource::ALL.map(of), [69, 50, 7, 7]);
        let admin = entries.iter().find(|e| e.key.name == "cluster-admin").unwrap();
        assert_eq!(admin.content, Content::Rules(portico_machinery::rbac::cluster_admin().to_vec()));
    }

    #[test]
    fn every_binding_grants_a_role_of_the_policy() {
        let entries = entries().unwrap();
        for entry in &entries {
            let Content::Binds(Binding { role, .. }) = &entry.content else { continue };
            let resource = if role.cluster { Resource::ClusterRoles } else { Resource::Roles };
            let namespace = entry.key.namespace.clone();
            let role = Key { resource, namespace, name: role.name.clone() };
            assert!(entries.iter().any(|e| e.key == role), "{} grants {role}", entry.key);
        }
    }
}
