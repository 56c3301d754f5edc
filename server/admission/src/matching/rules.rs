//! Rules: operations on resources (upstream's `rules.Matcher`).

use portico_machinery::Cursor;
use portico_registry::ServedResource;

use super::target::MatchTarget;

const ANY: &str = "*";

/// Scope of the resources that a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    All,
    Cluster,
    Namespaced,
}

/// Operations on resources that match.
#[derive(Debug)]
pub(super) struct Rule {
    operations: Box<[Box<str>]>,
    groups: Box<[Box<str>]>,
    versions: Box<[Box<str>]>,
    /// Resource and subresource.
    resources: Box<[(Box<str>, Box<str>)]>,
    scope: Scope,
    /// Names of objects; empty for all names.
    names: Box<[Box<str>]>,
}

impl Rule {
    pub(super) fn read(rule: &Cursor<'_>) -> Self {
        let resource = |text: &str| {
            let (resource, subresource) = text.split_once('/').unwrap_or((text, ""));
            (resource.into(), subresource.into())
        };
        Self {
            operations: texts(&rule.field("operations")),
            groups: texts(&rule.field("apiGroups")),
            versions: texts(&rule.field("apiVersions")),
            resources: rule.field("resources").items().map(|item| resource(item.str())).collect(),
            scope: match rule.field("scope").str() {
                "Cluster" => Scope::Cluster,
                "Namespaced" => Scope::Namespaced,
                _ => Scope::All,
            },
            names: texts(&rule.field("resourceNames")),
        }
    }

    /// True if a request matches, regarded as a request for this version of its resource.
    pub(super) fn matches(&self, target: &MatchTarget<'_>, served: &ServedResource) -> bool {
        let (attributes, info) = (&target.attributes, &served.info);
        let subresource = attributes.subresource();
        let names_resource = |pattern: &(Box<str>, Box<str>)| {
            matches_or_any(&pattern.0, &info.resource) && matches_or_any(&pattern.1, subresource)
        };
        // The resource is compared first, because most requests are for another resource.
        self.resources.iter().any(names_resource)
            && contains_or_any(&self.operations, attributes.operation_name())
            && contains_or_any(&self.groups, &info.gvk.group)
            && contains_or_any(&self.versions, &info.gvk.version)
            && self.is_in_scope(target)
            && (self.names.is_empty() || self.names.iter().any(|name| **name == *attributes.name))
    }

    /// True if the scope matches. Namespaces are cluster-scoped, although requests for them have a namespace.
    fn is_in_scope(&self, target: &MatchTarget<'_>) -> bool {
        let namespaced = !target.targets_namespaces() && !target.namespace.is_empty();
        match self.scope {
            Scope::All => true,
            Scope::Cluster => !namespaced,
            Scope::Namespaced => namespaced,
        }
    }
}

fn texts(list: &Cursor<'_>) -> Box<[Box<str>]> {
    list.items().map(|item| item.str().into()).collect()
}

fn matches_or_any(pattern: &str, value: &str) -> bool {
    pattern == ANY || pattern == value
}

fn contains_or_any(patterns: &[Box<str>], value: &str) -> bool {
    patterns.iter().any(|item| matches_or_any(item, value))
}
