//! Matching of requests to flow schemas (upstream's `matchesFlowSchema`).

use portico_machinery::flow_control::{FlowSchema, NonResourceRule, PolicyRules, ResourceRule};
use portico_machinery::rbac::Subject;
use portico_machinery::{RequestInfo, UserInfo};

const WILDCARD: &str = "*";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

pub(crate) fn matches(schema: &FlowSchema, user: &UserInfo, request: &RequestInfo) -> bool {
    schema.rules.iter().any(|rules| {
        rules.subjects.iter().any(|subject| matches_subject(subject, user))
            && any_rule_matches(rules, request)
    })
}

fn any_rule_matches(rules: &PolicyRules, request: &RequestInfo) -> bool {
    if request.is_resource_request {
        rules.resource_rules.iter().any(|rule| resource_rule_matches(rule, request))
    } else {
        rules.non_resource_rules.iter().any(|rule| non_resource_rule_matches(rule, request))
    }
}

fn matches_subject(subject: &Subject, user: &UserInfo) -> bool {
    match subject {
        Subject::User(name) => name == WILDCARD || *name == user.name,
        Subject::Group(name) => name == WILDCARD || user.in_group(name),
        Subject::ServiceAccount { namespace, name } => {
            let account = user.name.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':'));
            account.is_some_and(|(account_namespace, account)| {
                account_namespace == namespace && (name == WILDCARD || account == name)
            })
        }
    }
}

fn resource_rule_matches(rule: &ResourceRule, request: &RequestInfo) -> bool {
    let resource = |listed: &String| match listed.split_once('/') {
        Some((resource, sub)) => resource == request.resource && sub == request.subresource,
        None => *listed == request.resource && request.subresource.is_empty(),
    };
    list_matches(&rule.verbs, &request.verb)
        && (is_wildcard(&rule.resources) || rule.resources.iter().any(resource))
        && list_matches(&rule.api_groups, &request.api_group)
        && match request.namespace.as_str() {
            "" => rule.cluster_scope,
            namespace => list_matches(&rule.namespaces, namespace),
        }
}

fn non_resource_rule_matches(rule: &NonResourceRule, request: &RequestInfo) -> bool {
    let path = request.path.as_str();
    let is_below = |url: &str| {
        let prefix = url.strip_suffix('*').unwrap_or(url);
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
    };
    list_matches(&rule.verbs, &request.verb)
        && rule.urls.iter().any(|url| url == WILDCARD || url == path || is_below(url))
}

/// True if the list consists of only the wildcard; within a longer list, `*` has no meaning.
fn is_wildcard(list: &[String]) -> bool {
    matches!(list, [only] if only == WILDCARD)
}

fn list_matches(list: &[String], value: &str) -> bool {
    is_wildcard(list) || list.iter().any(|listed| listed == value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|text| (*text).to_owned()).collect()
    }

    fn request(method: &str, path: &str) -> RequestInfo {
        RequestInfo::parse(method, path, "").unwrap()
    }

    #[test]
    fn subjects_are_users_groups_and_service_accounts() {
        let account = |namespace: &str, name: &str| Subject::ServiceAccount {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let user = UserInfo::new("system:serviceaccount:ns:sa", ["g"]);
        for (subject, expected) in [
            (Subject::User("*".into()), true),
            (Subject::User("system:serviceaccount:ns:sa".into()), true),
            (Subject::User("sa".into()), false),
            (Subject::Group("g".into()), true),
            (Subject::Group("*".into()), true),
            (Subject::Group("h".into()), false),
            (account("ns", "sa"), true),
            (account("ns", "*"), true),
            (account("n", "*"), false),
            (account("ns", "s"), false),
        ] {
            assert_eq!(matches_subject(&subject, &user), expected, "{subject:?}");
        }
    }

    #[test]
    fn resource_rules_match_by_verb_group_resource_and_scope() {
        let rule = ResourceRule {
            verbs: texts(&["get", "list"]),
            api_groups: texts(&[""]),
            resources: texts(&["pods", "pods/log"]),
            cluster_scope: false,
            namespaces: texts(&["*"]),
        };
        for (path, matches) in [
            ("/api/v1/namespaces/n/pods/p", true),
            ("/api/v1/namespaces/n/pods/p/log", true),
            ("/api/v1/namespaces/n/pods/p/status", false),
            ("/api/v1/namespaces/n/secrets/s", false),
            ("/api/v1/pods", false),
            ("/apis/apps/v1/namespaces/n/pods/p", false),
        ] {
            assert_eq!(resource_rule_matches(&rule, &request("GET", path)), matches, "{path}");
        }
        assert!(!resource_rule_matches(&rule, &request("POST", "/api/v1/namespaces/n/pods")));
        let cluster = ResourceRule { cluster_scope: true, namespaces: texts(&["only"]), ..rule };
        assert!(resource_rule_matches(&cluster, &request("GET", "/api/v1/pods")));
        assert!(!resource_rule_matches(&cluster, &request("GET", "/api/v1/namespaces/n/pods")));
    }

    #[test]
    fn paths_match_exactly_by_prefix_or_all() {
        let rule = |url: &str| NonResourceRule { verbs: texts(&["*"]), urls: texts(&[url]) };
        for (url, path, matches) in [
            ("*", "/anything", true),
            ("/healthz", "/healthz", true),
            ("/healthz", "/healthz/etcd", true),
            ("/healthz", "/healthzz", false),
            ("/apis/*", "/apis/apps", true),
            ("/apis/*", "/apis", false),
        ] {
            assert_eq!(non_resource_rule_matches(&rule(url), &request("GET", path)), matches, "{url} {path}");
        }
    }
}
