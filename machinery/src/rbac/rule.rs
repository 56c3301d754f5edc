//! RBAC rule and its matching.

use serde::Serialize;

use super::ALL;
use crate::object::Cursor;
use crate::request_info::RequestInfo;

/// PolicyRule: verbs on resources, or on non-resource paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Verbs; `*` matches all.
    pub verbs: Vec<String>,
    /// Groups; `*` matches all, the empty string is core.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// Resources: `resource`, `resource/subresource`, `*/subresource`, or `*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Names of objects; empty for any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths, exact or as a prefix before a trailing `*`.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

impl Rule {
    /// Parses a rule of a role.
    #[must_use]
    pub fn read(cursor: &Cursor<'_>) -> Self {
        Self {
            verbs: strings(&cursor.field("verbs")),
            api_groups: strings(&cursor.field("apiGroups")),
            resources: strings(&cursor.field("resources")),
            resource_names: strings(&cursor.field("resourceNames")),
            non_resource_urls: strings(&cursor.field("nonResourceURLs")),
        }
    }

    /// Parses a list of rules.
    #[must_use]
    pub fn read_all(list: &Cursor<'_>) -> Vec<Self> {
        list.items().map(|cursor| Self::read(&cursor)).collect()
    }

    /// True if the rule allows a request.
    #[must_use]
    pub fn allows(&self, request: &RequestInfo) -> bool {
        if !has_or_all(&self.verbs, &request.verb) {
            return false;
        }
        if !request.is_resource_request {
            return self.non_resource_urls.iter().any(|pattern| path_matches(pattern, &request.path));
        }
        has_or_all(&self.api_groups, &request.api_group)
            && self.resources.iter().any(|r| resource_matches(r, &request.resource, &request.subresource))
            && (self.resource_names.is_empty() || self.resource_names.contains(&request.name))
    }
}

/// Returns the strings of a list; empty if there is no list.
fn strings(list: &Cursor<'_>) -> Vec<String> {
    list.items().map(|item| item.str().to_owned()).collect()
}

fn has_or_all(list: &[String], value: &str) -> bool {
    list.iter().any(|one| one == ALL || one == value)
}

/// Matches `*`, `pods`, `pods/log` and `*/log`; a resource does not cover its subresources.
fn resource_matches(pattern: &str, resource: &str, subresource: &str) -> bool {
    if pattern == ALL {
        return true;
    }
    match (pattern.split_once('/'), subresource) {
        (None, "") => pattern == resource,
        (Some((owner, sub)), subresource) => {
            !subresource.is_empty() && sub == subresource && (owner == ALL || owner == resource)
        }
        (None, _) => false,
    }
}

/// Matches a path as upstream does: exact, or the text before trailing `*`s is a prefix.
pub(super) fn path_matches(pattern: &str, path: &str) -> bool {
    pattern == path || (pattern.ends_with('*') && path.starts_with(pattern.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &str) -> Vec<String> {
        words.split_whitespace().map(|w| if w == "core" { String::new() } else { w.to_owned() }).collect()
    }

    fn request(verb: &str, group: &str, resource: &str, name: &str) -> RequestInfo {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        RequestInfo {
            is_resource_request: true,
            verb: verb.to_owned(),
            api_group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: name.to_owned(),
            ..RequestInfo::default()
        }
    }

    #[test]
    fn rules_match_verbs_groups_resources_and_names() {
        // Verbs, groups, resources, names of the rule; verb, group, resource, name of the request; expected result.
        #[rustfmt::skip]
        let cases = [
            ("get list", "core", "pods", "", "get", "", "pods", "a", true),
            ("get list", "core", "pods", "", "watch", "", "pods", "a", false),
            ("*", "core", "pods", "", "anything", "", "pods", "", true),
            ("get", "apps", "pods", "", "get", "", "pods", "", false),
            ("get", "*", "pods", "", "get", "x.y", "pods", "", true),
            ("get", "core", "pods", "", "get", "", "pods/log", "", false),
            ("get", "core", "pods/log", "", "get", "", "pods/log", "", true),
            ("get", "core", "pods/log", "", "get", "", "pods", "", false),
            ("get", "core", "*/log", "", "get", "", "pods/log", "", true),
            ("get", "core", "*/log", "", "get", "", "pods/exec", "", false),
            ("get", "core", "*/*", "", "get", "", "pods/exec", "", false),
            ("get", "core", "*", "", "get", "", "pods/exec", "", true),
            ("get", "core", "pods", "a b", "get", "", "pods", "b", true),
            ("get", "core", "pods", "a b", "get", "", "pods", "c", false),
            ("create", "core", "pods", "a", "create", "", "pods", "", false),
        ];
        for (verbs, groups, resources, names, verb, group, resource, name, passes) in cases {
            let rule = Rule {
                verbs: list(verbs),
                api_groups: list(groups),
                resources: list(resources),
                resource_names: list(names),
                non_resource_urls: Vec::new(),
            };
            let attributes = request(verb, group, resource, name);
            assert_eq!(rule.allows(&attributes), passes, "{rule:?} {verb} {group} {resource} {name}");
        }
    }

    #[test]
    fn paths_match_exactly_or_by_a_prefix_that_ends_in_a_star() {
        for (pattern, path, passes) in [
            ("/apis", "/apis", true),
            ("/apis", "/apis/", false),
            ("/apis/*", "/apis/", true),
            ("/apis/*", "/apis", false),
            ("*", "/metrics", true),
            ("/api**", "/apis", true),
            ("/*/x", "/a/x", false),
        ] {
            let rule =
                Rule { verbs: list("get"), non_resource_urls: vec![pattern.to_owned()], ..Rule::default() };
            let attributes =
                RequestInfo { verb: "get".to_owned(), path: path.to_owned(), ..RequestInfo::default() };
            assert_eq!(rule.allows(&attributes), passes, "{pattern} {path}");
        }
    }
}
