//! Matching of rules and requests (upstream's `ruleMatches`).

use portico_machinery::{RequestInfo, UserInfo};

use super::rules::{GroupResources, Rule};

impl Rule {
    pub(super) fn matches(&self, user: Option<&UserInfo>, request: &RequestInfo) -> bool {
        let is_listed = |user: &UserInfo| self.users.contains(&user.name);
        if !self.users.is_empty() && !user.is_some_and(is_listed) {
            return false;
        }
        let is_in_listed_group =
            |user: &UserInfo| user.groups.iter().any(|group| self.user_groups.contains(group));
        if !self.user_groups.is_empty() && !user.is_some_and(is_in_listed_group) {
            return false;
        }
        if !matches_list(&self.verbs, &request.verb) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return self.matches_resource(request);
        }
        self.non_resource_urls.is_empty() || self.matches_path(request)
    }

    fn matches_resource(&self, request: &RequestInfo) -> bool {
        // Cluster-scoped resources have the empty namespace.
        request.is_resource_request
            && matches_list(&self.namespaces, &request.namespace)
            && (self.resources.is_empty()
                || self.resources.iter().any(|resources| resources.matches(request)))
    }

    fn matches_path(&self, request: &RequestInfo) -> bool {
        let is_path = |pattern: &String| path_matches(&request.path, pattern);
        !request.is_resource_request && self.non_resource_urls.iter().any(is_path)
    }
}

impl GroupResources {
    fn matches(&self, request: &RequestInfo) -> bool {
        if self.group != request.api_group && self.group != "*" {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        matches_list(&self.resource_names, &request.name)
            && self.resources.iter().any(|resource| resource_matches(resource, request))
    }
}

fn matches_list(list: &[String], value: &str) -> bool {
    list.is_empty() || list.iter().any(|allowed| allowed == value)
}

/// Matches `*`, `pods`, `pods/log`, `*/log` or `pods/*`; the last one also matches `pods`.
fn resource_matches(pattern: &str, request: &RequestInfo) -> bool {
    let (resource, subresource) = (request.resource.as_str(), request.subresource.as_str());
    if pattern == "*" || pattern.strip_suffix("/*") == Some(resource) {
        return true;
    }
    match subresource {
        "" => pattern == resource,
        _ => {
            pattern.strip_prefix("*/") == Some(subresource)
                || pattern.split_once('/') == Some((resource, subresource))
        }
    }
}

fn path_matches(path: &str, pattern: &str) -> bool {
    pattern == "*"
        || pattern == path
        || (pattern.ends_with('*') && path.starts_with(pattern.trim_end_matches('*')))
}
