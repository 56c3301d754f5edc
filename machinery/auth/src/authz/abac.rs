//! Attribute-based access control (`--authorization-mode ABAC`): a file with one JSON policy per line.
//!
//! Upstream rules: pkg/auth/authorizer/abac. Parses the text; the process assembly reads the file.

use portico_machinery::rbac::Rule;
use portico_machinery::user::AUTHENTICATED;
use portico_machinery::{Attributes, UserInfo};
use serde::Deserialize;

use super::{Authorizer, Decision, UserRules};

const KIND: &str = "Policy";
const V1BETA1: &str = "abac.authorization.kubernetes.io/v1beta1";
const V0: &str = "abac.authorization.kubernetes.io/v0";
/// Matches every value.
const ANY: &str = "*";

/// Error in a line of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error reading policy, line {line}: {reason}")]
pub struct PolicyError {
    /// Number of the line, from 1.
    pub line: usize,
    /// Reason why the line is not a policy.
    pub reason: String,
}

/// Policies of a file, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies(Vec<Policy>);

/// Policy: subjects and their permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Policy {
    user: String,
    group: String,
    readonly: bool,
    api_group: String,
    resource: String,
    namespace: String,
    #[serde(rename = "nonResourcePath")]
    path: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct VersionedPolicy {
    kind: String,
    api_version: String,
    spec: Policy,
}

impl Policies {
    /// Parses the text of a file. Blank lines and comments (`#`) are skipped.
    ///
    /// # Errors
    /// Returns a [`PolicyError`] for the first line that is not a policy.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let policies = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let read =
            policies.map(|(line, text)| Policy::parse(text).map_err(|reason| PolicyError { line, reason }));
        read.collect::<Result<_, _>>().map(Self)
    }
}

impl Policy {
    fn parse(line: &str) -> Result<Self, String> {
        let wrong = |error: serde_json::Error| portico_gostd::json::error_text(&error);
        let tagged: VersionedPolicy = portico_gostd::json::from_slice(line.as_bytes()).map_err(wrong)?;
        match (tagged.api_version.as_str(), tagged.kind.as_str()) {
            (V1BETA1, KIND) => Ok(tagged.spec.limit_any_to_authenticated()),
            // A line without kind and version is of the oldest version, whose fields are at the top level.
            ("" | V0, "" | KIND) => {
                let policy: Self = portico_gostd::json::from_slice(line.as_bytes()).map_err(wrong)?;
                Ok(policy.convert_v0())
            }
            (version, kind) => Err(format!("no kind {kind:?} is registered for version {version:?}")),
        }
    }

    /// Replaces `*` as user or group by the group of authenticated users.
    fn limit_any_to_authenticated(mut self) -> Self {
        if self.user == ANY || self.group == ANY {
            AUTHENTICATED.clone_into(&mut self.group);
            self.user.clear();
        }
        self
    }

    /// Converts a policy of the oldest version, in which omitted fields match everything (`Convert_v0_Policy_To_abac_Policy`).
    fn convert_v0(mut self) -> Self {
        ANY.clone_into(&mut self.api_group);
        self.path.clear();
        if self.user.is_empty() && self.group.is_empty() {
            AUTHENTICATED.clone_into(&mut self.group);
        }
        if self.namespace.is_empty() && self.resource.is_empty() {
            ANY.clone_into(&mut self.path);
        }
        for field in [&mut self.namespace, &mut self.resource] {
            if field.is_empty() {
                ANY.clone_into(field);
            }
        }
        self.limit_any_to_authenticated()
    }

    fn matches_user(&self, user: &UserInfo) -> bool {
        let is_user = self.user.is_empty() || self.user == ANY || self.user == user.name;
        let is_group = self.group.is_empty() || self.group == ANY || user.groups.contains(&self.group);
        is_user && is_group && !(self.user.is_empty() && self.group.is_empty())
    }

    fn matches_request(&self, attributes: &Attributes) -> bool {
        let request = &attributes.request;
        if !self.matches_user(&attributes.user) || (self.readonly && !request.is_read_only()) {
            return false;
        }
        let matches = |policy: &str, requested: &str| policy == ANY || policy == requested;
        if request.is_resource_request {
            return matches(&self.namespace, &request.namespace)
                && matches(&self.resource, &request.resource)
                && matches(&self.api_group, &request.api_group);
        }
        let below = |path: &str| path.ends_with(ANY) && request.path.starts_with(path.trim_end_matches(ANY));
        matches(&self.path, &request.path) || below(&self.path)
    }

    fn rules(&self) -> impl Iterator<Item = Rule> {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let verbs = texts(if self.readonly { &["get", "list", "watch"] } else { &[ANY] });
        let resources = (!self.resource.is_empty()).then(|| Rule {
            verbs: verbs.clone(),
            api_groups: texts(&[&self.api_group]),
            resources: texts(&[&self.resource]),
            ..Rule::default()
        });
        let paths = (!self.path.is_empty()).then(|| Rule {
            verbs,
            non_resource_urls: texts(&[&self.path]),
            ..Rule::default()
        });
        resources.into_iter().chain(paths)
    }
}

impl Authorizer for Policies {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        if self.0.iter().any(|policy| policy.matches_request(attributes)) {
            return Decision::allow("");
        }
        Decision::no_opinion("No policy matched.")
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        let in_namespace = |policy: &&Policy| policy.namespace == ANY || policy.namespace == namespace;
        let policies = self.0.iter().filter(|policy| policy.matches_user(user)).filter(in_namespace);
        UserRules { rules: policies.flat_map(Policy::rules).collect(), ..UserRules::default() }
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::GroupResource;

    use super::*;

    const FILE: &str = r#"
# what everybody may
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"group": "*", "readonly": true, "nonResourcePath": "/version"}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "alice", "namespace": "*", "resource": "*", "apiGroup": "*", "nonResourcePath": "/logs/*"}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "bob", "group": "dev", "namespace": "n", "resource": "pods", "readonly": true}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"namespace": "*", "resource": "*", "apiGroup": "*"}}
{"user": "old", "resource": "pods"}
"#;

    fn user(name: &str, groups: &[&str]) -> UserInfo {
        UserInfo::new(name, groups.iter().copied()).with_authenticated_group()
    }

    fn is_allowed(user: UserInfo, verb: &str, group: &str, resource: &str, namespace: &str) -> bool {
        let resource = GroupResource::new(group, resource);
        Policies::parse(FILE)
            .unwrap()
            .authorize(&Attributes::resource(user, verb, &resource, namespace, ""))
            .is_allowed()
    }

    #[test]
    fn policies_match_by_user_group_and_request() {
        for (name, groups, verb, group, resource, namespace, allowed) in [
            ("alice", &[][..], "delete", "apps", "deployments", "n", true),
            ("bob", &["dev"], "get", "", "pods", "n", true),
            ("bob", &["dev"], "create", "", "pods", "n", false),
            ("bob", &["dev"], "get", "", "pods", "m", false),
            ("bob", &["dev"], "get", "apps", "pods", "n", false),
            ("bob", &[], "get", "", "pods", "n", false),
            ("carol", &["dev"], "get", "", "pods", "n", false),
            ("old", &[], "delete", "apps", "pods", "n", true),
            ("old", &[], "delete", "", "secrets", "n", false),
        ] {
            let result = is_allowed(user(name, groups), verb, group, resource, namespace);
            assert_eq!(result, allowed, "{name} {verb} {group}/{resource} {namespace}");
        }
    }

    #[test]
    fn paths_match_exactly_or_by_prefix_with_a_star() {
        let policies = Policies::parse(FILE).unwrap();
        let may = |user: UserInfo, verb: &str, path: &str| {
            policies.authorize(&Attributes::path(user, verb, path)).is_allowed()
        };
        assert!(may(user("carol", &[]), "get", "/version"));
        assert!(!may(UserInfo::anonymous(), "get", "/version"), "`*` matches authenticated users only");
        assert!(!may(user("carol", &[]), "post", "/version"));
        assert!(may(user("alice", &[]), "post", "/logs/x/y"));
        assert!(!may(user("alice", &[]), "get", "/metrics"));
        let refused = policies.authorize(&Attributes::path(user("carol", &[]), "get", "/x"));
        assert_eq!(refused, Decision::no_opinion("No policy matched."));
    }

    #[test]
    fn rules_are_listed_by_namespace() {
        let rules = Policies::parse(FILE).unwrap().rules_for(&user("bob", &["dev"]), "n");
        let verbs: Vec<_> = rules.rules.iter().map(|rule| rule.verbs.join(",")).collect();
        assert_eq!((verbs.len(), rules.incomplete), (1, false));
        assert_eq!(verbs[0], "get,list,watch");
    }

    #[test]
    fn errors_name_the_line_that_is_not_a_policy() {
        let wrong = |text: &str| Policies::parse(text).unwrap_err();
        assert_eq!(wrong("\n{").line, 2);
        let other = r#"{"apiVersion": "v1", "kind": "Pod"}"#;
        assert_eq!(wrong(other).reason, r#"no kind "Pod" is registered for version "v1""#);
        assert_eq!(Policies::parse("# nothing\n\n"), Ok(Policies::default()));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "[{}\":,a-z\\n]{0,80}") {
            let _ = Policies::parse(&text);
        }
    }
}
