//! Conversion of roles and bindings.

use portico_machinery::rbac::{Binding, Fact, RoleRef, Rule, Subject};

use crate::config as pb;

pub(super) fn to_proto(fact: &Fact) -> pb::Rbac {
    use pb::rbac::Says;
    let says = match fact {
        Fact::Rules(rules) => Says::Rules(pb::Rules { rules: rules.iter().map(rule_to_proto).collect() }),
        Fact::Binding(binding) => Says::Binding(pb::Binding {
            cluster_role: binding.role.is_cluster_role,
            role: binding.role.name.clone(),
            subjects: binding.subjects.iter().map(subject_to_proto).collect(),
        }),
    };
    pb::Rbac { says: Some(says) }
}

/// Converts a message; `None` if it is empty. Subjects unknown to this build are omitted, because they match no user.
pub(super) fn from_proto(message: pb::Rbac) -> Option<Fact> {
    use pb::rbac::Says;
    Some(match message.says? {
        Says::Rules(rules) => Fact::Rules(rules.rules.into_iter().map(rule_from_proto).collect()),
        Says::Binding(binding) => Fact::Binding(Binding {
            role: RoleRef { is_cluster_role: binding.cluster_role, name: binding.role },
            subjects: binding.subjects.into_iter().filter_map(subject_from_proto).collect(),
        }),
    })
}

fn rule_to_proto(rule: &Rule) -> pb::PolicyRule {
    pb::PolicyRule {
        verbs: rule.verbs.clone(),
        api_groups: rule.api_groups.clone(),
        resources: rule.resources.clone(),
        resource_names: rule.resource_names.clone(),
        non_resource_urls: rule.non_resource_urls.clone(),
    }
}

fn rule_from_proto(rule: pb::PolicyRule) -> Rule {
    Rule {
        verbs: rule.verbs,
        api_groups: rule.api_groups,
        resources: rule.resources,
        resource_names: rule.resource_names,
        non_resource_urls: rule.non_resource_urls,
    }
}

pub(super) fn subject_to_proto(subject: &Subject) -> pb::Subject {
    let (kind, namespace, name) = match subject {
        Subject::User(name) => (pb::SubjectKind::User, "", name),
        Subject::Group(name) => (pb::SubjectKind::Group, "", name),
        Subject::ServiceAccount { namespace, name } => {
            (pb::SubjectKind::ServiceAccount, namespace.as_str(), name)
        }
    };
    pb::Subject { kind: kind.into(), namespace: namespace.to_owned(), name: name.clone() }
}

pub(super) fn subject_from_proto(subject: pb::Subject) -> Option<Subject> {
    Some(match subject.kind() {
        pb::SubjectKind::User => Subject::User(subject.name),
        pb::SubjectKind::Group => Subject::Group(subject.name),
        pb::SubjectKind::ServiceAccount => {
            Subject::ServiceAccount { namespace: subject.namespace, name: subject.name }
        }
        pb::SubjectKind::Unspecified => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Facts of both kinds, with all fields set.
    pub(crate) fn facts() -> [Fact; 2] {
        let list = |word: &str| vec![word.to_owned()];
        let rule = Rule {
            verbs: list("v"),
            api_groups: list(""),
            resources: list("r"),
            resource_names: list("n"),
            non_resource_urls: list("/u"),
        };
        let subjects = vec![
            Subject::User("u".into()),
            Subject::Group("g".into()),
            Subject::ServiceAccount { namespace: "n".into(), name: "s".into() },
        ];
        let role = RoleRef { is_cluster_role: true, name: "r".into() };
        [Fact::Rules(vec![rule]), Fact::Binding(Binding { role, subjects })]
    }
}
