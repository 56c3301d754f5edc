//! Flow schema: requests that it matches, their priority level, and the attribute that distinguishes flows.

use crate::object::{Cursor, Object};
use crate::rbac::Subject;
use crate::request_info::RequestInfo;
use crate::user::UserInfo;

/// Content of a FlowSchema object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowSchema {
    /// Name of the flow schema.
    pub name: String,
    /// UID; empty for a mandatory schema without an object.
    pub uid: String,
    /// `matchingPrecedence`: the matching schema with the lowest value applies.
    pub precedence: i32,
    /// Name of the priority level.
    pub level: String,
    /// Attribute that distinguishes flows.
    pub distinguisher: Distinguisher,
    /// Rules for the requests that the schema matches.
    pub rules: Vec<PolicyRules>,
}

/// Attribute that distinguishes the flows of one schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distinguisher {
    /// All requests belong to one flow.
    #[default]
    SingleFlow,
    /// One flow per user.
    ByUser,
    /// One flow per namespace of the request.
    ByNamespace,
}

impl Distinguisher {
    /// Returns the name of a request's flow within its schema.
    #[must_use]
    pub fn flow_name<'a>(self, user: &'a UserInfo, request: &'a RequestInfo) -> &'a str {
        match self {
            Self::SingleFlow => "",
            Self::ByUser => &user.name,
            Self::ByNamespace => &request.namespace,
        }
    }
}

/// Subjects and their requests (`PolicyRulesWithSubjects`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyRules {
    /// Matching subjects. The name `*` matches every user, or every service account of the namespace.
    pub subjects: Vec<Subject>,
    /// Matching requests for resources.
    pub resource_rules: Vec<ResourceRule>,
    /// Matching requests for other paths.
    pub non_resource_rules: Vec<NonResourceRule>,
}

/// Rule for requests for resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRule {
    /// Verbs of the requests.
    pub verbs: Vec<String>,
    /// API groups; the empty string is core.
    pub api_groups: Vec<String>,
    /// Resources and subresources.
    pub resources: Vec<String>,
    /// True if the rule matches cluster-scoped requests.
    pub cluster_scope: bool,
    /// Namespaces; `*` matches every namespace.
    pub namespaces: Vec<String>,
}

/// Rule for requests for other paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonResourceRule {
    /// Verbs: HTTP methods in lower case.
    pub verbs: Vec<String>,
    /// Paths, exact or as a prefix ending in `*`.
    pub urls: Vec<String>,
}

impl FlowSchema {
    /// Parses an object. Subjects of unknown kinds match no user and are dropped.
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
                _ => Distinguisher::SingleFlow,
            },
            rules: spec.field("rules").items().map(|cursor| PolicyRules::read(&cursor)).collect(),
        }
    }
}

impl PolicyRules {
    fn read(cursor: &Cursor<'_>) -> Self {
        let resource_rule = |cursor: Cursor<'_>| ResourceRule {
            verbs: texts(&cursor, "verbs"),
            api_groups: texts(&cursor, "apiGroups"),
            resources: texts(&cursor, "resources"),
            cluster_scope: cursor.field("clusterScope").bool(),
            namespaces: texts(&cursor, "namespaces"),
        };
        let non_resource_rule = |cursor: Cursor<'_>| NonResourceRule {
            verbs: texts(&cursor, "verbs"),
            urls: texts(&cursor, "nonResourceURLs"),
        };
        Self {
            subjects: cursor.field("subjects").items().filter_map(|cursor| subject(&cursor)).collect(),
            resource_rules: cursor.field("resourceRules").items().map(resource_rule).collect(),
            non_resource_rules: cursor.field("nonResourceRules").items().map(non_resource_rule).collect(),
        }
    }
}

fn subject(cursor: &Cursor<'_>) -> Option<Subject> {
    let of = |kind: &'static str| cursor.field(kind);
    let name = |kind: &'static str| of(kind).field("name").str().to_owned();
    match cursor.field("kind").str() {
        "User" => of("user").is_present().then(|| Subject::User(name("user"))),
        "Group" => of("group").is_present().then(|| Subject::Group(name("group"))),
        "ServiceAccount" => of("serviceAccount").is_present().then(|| Subject::ServiceAccount {
            namespace: of("serviceAccount").field("namespace").str().to_owned(),
            name: name("serviceAccount"),
        }),
        _ => None,
    }
}

fn texts(cursor: &Cursor<'_>, field: &str) -> Vec<String> {
    cursor.field(field).items().map(|text| text.str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_parse_subjects_and_rules() {
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
