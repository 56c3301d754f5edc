//! A flow schema: which requests it is about, which level they belong to, and what distinguishes flows.

use crate::object::{Cursor, Object};
use crate::rbac::Subject;
use crate::request_info::RequestInfo;
use crate::user::UserInfo;

/// What a FlowSchema says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowSchema {
    /// Its name.
    pub name: String,
    /// Its uid; empty for a mandatory one that has no object.
    pub uid: String,
    /// `matchingPrecedence`: the lowest that matches counts.
    pub precedence: i32,
    /// The name of its priority level.
    pub level: String,
    /// What distinguishes flows.
    pub distinguisher: Distinguisher,
    /// Which requests it is about.
    pub rules: Vec<PolicyRules>,
}

/// What distinguishes flows of one schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distinguisher {
    /// Nothing: all are one flow.
    #[default]
    Nothing,
    /// The user.
    ByUser,
    /// The namespace of the request.
    ByNamespace,
}

impl Distinguisher {
    /// What a request's flow is called within its schema.
    #[must_use]
    pub fn of<'a>(self, user: &'a UserInfo, request: &'a RequestInfo) -> &'a str {
        match self {
            Self::Nothing => "",
            Self::ByUser => &user.name,
            Self::ByNamespace => &request.namespace,
        }
    }
}

/// Subjects, and what of theirs is meant (`PolicyRulesWithSubjects`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyRules {
    /// Who; a name `*` is everybody, of a service account every one of its namespace.
    pub subjects: Vec<Subject>,
    /// Which requests for resources.
    pub resource_rules: Vec<ResourceRule>,
    /// Which other requests.
    pub non_resource_rules: Vec<NonResourceRule>,
}

/// Requests for resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRule {
    /// Verbs.
    pub verbs: Vec<String>,
    /// API groups; the empty text is core.
    pub api_groups: Vec<String>,
    /// Resources and subresources.
    pub resources: Vec<String>,
    /// Whether requests without a namespace are meant.
    pub cluster_scope: bool,
    /// Namespaces; `*` is every one.
    pub namespaces: Vec<String>,
}

/// Requests for other paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonResourceRule {
    /// Verbs: methods in lower case.
    pub verbs: Vec<String>,
    /// Paths, whole or with what is below.
    pub urls: Vec<String>,
}

impl FlowSchema {
    /// What an object says. Subjects of kinds that nobody knows match nobody and are left out.
    #[must_use]
    pub fn read(object: &Object) -> Self {
        let spec = object.at(&["spec"]);
        Self {
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
            precedence: spec
                .field("matchingPrecedence")
                .i64()
                .and_then(|n| n.try_into().ok())
                .unwrap_or(1000),
            level: spec.field("priorityLevelConfiguration").field("name").str().to_owned(),
            distinguisher: match spec.field("distinguisherMethod").field("type").str() {
                "ByUser" => Distinguisher::ByUser,
                "ByNamespace" => Distinguisher::ByNamespace,
                _ => Distinguisher::Nothing,
            },
            rules: spec.field("rules").items().map(|at| PolicyRules::read(&at)).collect(),
        }
    }
}

impl PolicyRules {
    fn read(at: &Cursor<'_>) -> Self {
        let resource_rule = |at: Cursor<'_>| ResourceRule {
            verbs: texts(&at, "verbs"),
            api_groups: texts(&at, "apiGroups"),
            resources: texts(&at, "resources"),
            cluster_scope: at.field("clusterScope").bool(),
            namespaces: texts(&at, "namespaces"),
        };
        let non_resource_rule = |at: Cursor<'_>| NonResourceRule {
            verbs: texts(&at, "verbs"),
            urls: texts(&at, "nonResourceURLs"),
        };
        Self {
            subjects: at.field("subjects").items().filter_map(|at| subject(&at)).collect(),
            resource_rules: at.field("resourceRules").items().map(resource_rule).collect(),
            non_resource_rules: at.field("nonResourceRules").items().map(non_resource_rule).collect(),
        }
    }
}

fn subject(at: &Cursor<'_>) -> Option<Subject> {
    let of = |kind: &'static str| at.field(kind);
    let name = |kind: &'static str| of(kind).field("name").str().to_owned();
    match at.field("kind").str() {
        "User" => of("user").is_present().then(|| Subject::User(name("user"))),
        "Group" => of("group").is_present().then(|| Subject::Group(name("group"))),
        "ServiceAccount" => of("serviceAccount").is_present().then(|| Subject::ServiceAccount {
            namespace: of("serviceAccount").field("namespace").str().to_owned(),
            name: name("serviceAccount"),
        }),
        _ => None,
    }
}

fn texts(at: &Cursor<'_>, field: &str) -> Vec<String> {
    at.field(field).items().map(|text| text.str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_says_who_does_what() {
        let json = br#"{"metadata":{"name":"s","uid":"u"},"spec":{"matchingPrecedence":7,
            "priorityLevelConfiguration":{"name":"p"},"distinguisherMethod":{"type":"ByNamespace"},
            "rules":[{"subjects":[{"kind":"User","user":{"name":"amy"}},{"kind":"Group","group":{"name":"g"}},
                {"kind":"ServiceAccount","serviceAccount":{"namespace":"n","name":"*"}},{"kind":"Robot"}],
              "resourceRules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"namespaces":["*"]}],
              "nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["/healthz"]}]}]}}"#;
        let schema = FlowSchema::read(&Object::from_json(json).unwrap());
        assert_eq!((schema.precedence, schema.level.as_str()), (7, "p"));
        assert_eq!(schema.distinguisher, Distinguisher::ByNamespace);
        let rules = &schema.rules[0];
        let account = Subject::ServiceAccount { namespace: "n".into(), name: "*".into() };
        assert_eq!(rules.subjects, [Subject::User("amy".into()), Subject::Group("g".into()), account]);
        assert!(!rules.resource_rules[0].cluster_scope && rules.resource_rules[0].namespaces == ["*"]);
        assert_eq!(rules.non_resource_rules[0].urls, ["/healthz"]);
    }
}
