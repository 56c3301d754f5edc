//! Parsed content of objects of the four kinds, by key, as sent to facades.

use std::fmt;
use std::str::FromStr;

use super::{GROUP, Rule};
use crate::gvk::GroupResource;
use crate::object::{Cursor, Object};

/// Resource of one of the four kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// `clusterroles`
    ClusterRoles,
    /// `clusterrolebindings`
    ClusterRoleBindings,
    /// `roles`
    Roles,
    /// `rolebindings`
    RoleBindings,
}

impl Resource {
    /// All four resources.
    pub const ALL: [Self; 4] =
        [Self::ClusterRoles, Self::ClusterRoleBindings, Self::Roles, Self::RoleBindings];

    /// Returns the plural resource name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClusterRoles => "clusterroles",
            Self::ClusterRoleBindings => "clusterrolebindings",
            Self::Roles => "roles",
            Self::RoleBindings => "rolebindings",
        }
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::ClusterRoles => "ClusterRole",
            Self::ClusterRoleBindings => "ClusterRoleBinding",
            Self::Roles => "Role",
            Self::RoleBindings => "RoleBinding",
        }
    }

    /// True for resources of bindings.
    #[must_use]
    pub fn is_binding(self) -> bool {
        matches!(self, Self::ClusterRoleBindings | Self::RoleBindings)
    }

    /// Returns group and resource.
    #[must_use]
    pub fn group_resource(self) -> GroupResource {
        GroupResource::new(GROUP, self.name())
    }
}

/// Identity of the object of a fact; printed as `resource/[namespace/]name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Resource of the object.
    pub resource: Resource,
    /// Namespace of the object, empty at cluster scope.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{}/{}", self.resource.name(), self.name),
            namespace => write!(f, "{}/{namespace}/{}", self.resource.name(), self.name),
        }
    }
}

/// Text that is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not the key of a role or binding", portico_gostd::strconv::quote(.0))]
pub struct KeyError(String);

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let (resource, rest) = text.split_once('/').ok_or_else(|| KeyError(text.to_owned()))?;
        let resource = Resource::ALL.into_iter().find(|r| r.name() == resource);
        // Names can contain colons, but no slashes.
        let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
        match resource {
            Some(resource) if !name.is_empty() => {
                Ok(Self { resource, namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(KeyError(text.to_owned())),
        }
    }
}

/// Role that a binding grants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleRef {
    /// True for a ClusterRole; otherwise, a Role in the namespace of the binding.
    pub is_cluster_role: bool,
    /// Name of the role.
    pub name: String,
}

impl RoleRef {
    /// Returns the kind of the role.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        if self.is_cluster_role { "ClusterRole" } else { "Role" }
    }
}

/// Subject of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// User with this name.
    User(String),
    /// Members of the group with this name.
    Group(String),
    /// Service account; its namespace defaults to that of the binding.
    ServiceAccount {
        /// Namespace of the account; never empty for a subject that can match.
        namespace: String,
        /// Name of the account.
        name: String,
    },
}

impl Subject {
    /// Parses a subject of a binding. Returns `None` for unknown kinds.
    fn read(cursor: &Cursor<'_>, binding_namespace: &str) -> Option<Self> {
        let name = cursor.field("name").str().to_owned();
        match cursor.field("kind").str() {
            "User" => Some(Self::User(name)),
            "Group" => Some(Self::Group(name)),
            "ServiceAccount" => {
                let own_namespace = cursor.field("namespace").str();
                let namespace =
                    if own_namespace.is_empty() { binding_namespace } else { own_namespace }.to_owned();
                Some(Self::ServiceAccount { namespace, name })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => write!(f, "User {name:?}"),
            Self::Group(name) => write!(f, "Group {name:?}"),
            Self::ServiceAccount { namespace, name } => {
                write!(f, "ServiceAccount {:?}", format!("{name}/{namespace}"))
            }
        }
    }
}

/// Content of a RoleBinding or ClusterRoleBinding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// Role that is granted.
    pub role: RoleRef,
    /// Subjects to which the role is granted.
    pub subjects: Vec<Subject>,
}

/// Parsed content of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Rules of a role.
    Rules(Vec<Rule>),
    /// Content of a binding.
    Binding(Binding),
}

impl Fact {
    /// Parses an object of this resource.
    #[must_use]
    pub fn read(resource: Resource, object: &Object) -> Self {
        if !resource.is_binding() {
            return Self::Rules(Rule::read_all(&object.at(&["rules"])));
        }
        let role = RoleRef {
            is_cluster_role: object.at(&["roleRef", "kind"]).str() == "ClusterRole",
            name: object.at(&["roleRef", "name"]).str().to_owned(),
        };
        let subjects = object.at(&["subjects"]);
        let subjects =
            subjects.items().filter_map(|cursor| Subject::read(&cursor, object.namespace())).collect();
        Self::Binding(Binding { role, subjects })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip() {
        for text in ["clusterroles/system:a:b", "roles/ns/r", "rolebindings/ns/r", "clusterrolebindings/x"] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
        for text in ["", "clusterroles", "clusterroles/", "pods/ns/p", "roles/ns/"] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
    }

    #[test]
    fn service_accounts_default_to_the_namespace_of_the_binding() {
        let json = br#"{"metadata":{"namespace":"n","name":"b"},"roleRef":{"kind":"Role","name":"r"},
            "subjects":[{"kind":"ServiceAccount","name":"s"},{"kind":"Robot","name":"x"}]}"#;
        let object = Object::from_json(json).unwrap();
        let account = Subject::ServiceAccount { namespace: "n".into(), name: "s".into() };
        let binding =
            Binding { role: RoleRef { is_cluster_role: false, name: "r".into() }, subjects: vec![account] };
        assert_eq!(Fact::read(Resource::RoleBindings, &object), Fact::Binding(binding));
    }
}
