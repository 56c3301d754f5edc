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
        let named = |known: &(Box<str>, Box<str>)| {
            is_any_or(&known.0, &info.resource) && is_any_or(&known.1, subresource)
        };
        // The resource is compared first, because most requests are for another resource.
        self.resources.iter().any(named)
            && has(&self.operations, attributes.operation_name())
            && has(&self.groups, &info.gvk.group)
            && has(&self.versions, &info.gvk.version)
            && self.is_in_scope(target)
            && (self.names.is_empty() || self.names.iter().any(|name| **name == *attributes.name))
    }

    /// True if the scope matches. Namespaces are cluster-scoped, although requests for them have a namespace.
    fn is_in_scope(&self, target: &MatchTarget<'_>) -> bool {
        let namespaced = !target.is_of_namespaces() && !target.namespace.is_empty();
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

fn is_any_or(known: &str, wanted: &str) -> bool {
    known == ANY || known == wanted
}

fn has(known: &[Box<str>], wanted: &str) -> bool {
    known.iter().any(|item| is_any_or(item, wanted))
}
