//! Resources that require a covering quota (`limitedResources` of a `ResourceQuotaConfiguration`).

use std::collections::BTreeSet;

use portico_machinery::{GroupResource, Object};
use portico_quota::{Evaluator, ResourceList, ScopeRequirement};

/// A resource of quotas, or scopes of objects, that a quota has to cover (upstream's `LimitedResource`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitedResource {
    /// API group of the kind.
    pub api_group: String,
    /// Resource of the kind.
    pub resource: String,
    /// Substrings of the names of quota resources: each matching resource that an object of the kind uses requires
    /// a covering quota.
    pub match_contains: Vec<String>,
    /// Scopes: an object in one of these scopes, of any kind, requires a quota that names the scope.
    pub match_scopes: Vec<MatchScope>,
}

/// Scope of objects (upstream's `ScopedResourceSelectorRequirement`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchScope {
    /// Name of the scope.
    pub scope_name: String,
    /// `Exists`, `DoesNotExist`, `In` or `NotIn`.
    pub operator: String,
    /// Values that `In` and `NotIn` compare with.
    pub values: Vec<String>,
}

impl MatchScope {
    fn requirement(&self) -> ScopeRequirement<'_> {
        let values = self.values.iter().map(String::as_str).collect();
        ScopeRequirement { scope: &self.scope_name, operator: &self.operator, values }
    }
}

/// Resources and scopes of an object that require a covering quota and do not have one.
pub(super) struct UncoveredDemand<'a> {
    names: BTreeSet<String>,
    scopes: Vec<ScopeRequirement<'a>>,
}

impl<'a> UncoveredDemand<'a> {
    /// Returns the resources and scopes that require a quota for a new object with this usage.
    pub(super) fn new(
        limited: &'a [LimitedResource],
        resource: &GroupResource,
        evaluator: &dyn Evaluator,
        object: &Object,
        usage: &ResourceList,
    ) -> Self {
        let scopes = limited.iter().flat_map(|limited| &limited.match_scopes).map(MatchScope::requirement);
        let scopes = scopes.filter(|scope| evaluator.in_scope(scope, object)).collect();
        let of_kind = |limited: &&LimitedResource| {
            limited.api_group == resource.group && limited.resource == resource.resource
        };
        let parts: Vec<&String> =
            limited.iter().filter(of_kind).flat_map(|limited| &limited.match_contains).collect();
        let used = usage.iter().filter(|(_, amount)| amount.is_positive()).map(|(name, _)| name);
        let names = used.filter(|name| parts.iter().any(|part| name.contains(part.as_str())));
        Self { names: names.cloned().collect(), scopes }
    }

    /// Removes the resources that a matching quota limits.
    pub(super) fn cover_names(&mut self, names: &[&str]) {
        self.names.retain(|name| !names.contains(&name.as_str()));
    }

    /// Removes the scopes of the object that a quota names.
    pub(super) fn cover_scopes(
        &mut self,
        quota: &[ScopeRequirement<'_>],
        evaluator: &dyn Evaluator,
        object: &Object,
    ) {
        let covers = |requirement: &ScopeRequirement<'_>| {
            quota.iter().any(|scope| scope.scope == requirement.scope && evaluator.in_scope(scope, object))
        };
        self.scopes.retain(|requirement| !covers(requirement));
    }

    /// Returns the names of uncovered resources, for an error message; `None` if all are covered.
    pub(super) fn names(&self) -> Option<String> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| names.join(","))
    }

    /// Returns the uncovered scopes as Go formats them, for an error message; `None` if all are covered.
    pub(super) fn scopes(&self) -> Option<String> {
        let scopes: Vec<String> = self.scopes.iter().map(ToString::to_string).collect();
        (!scopes.is_empty()).then(|| format!("[{}]", scopes.join(" ")))
    }
}

#[cfg(test)]
mod tests {
    use portico_quota::{DeviceContext, evaluator};

    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn limited_resource(
        resource: &str,
        match_contains: &[&str],
        match_scopes: Vec<MatchScope>,
    ) -> LimitedResource {
        let (resource, match_contains) = (resource.to_owned(), texts(match_contains));
        LimitedResource { api_group: String::new(), resource, match_contains, match_scopes }
    }

    #[test]
    fn limited_resources_match_by_substring_and_kind() {
        let limited = [
            limited_resource("persistentvolumeclaims", &[".storageclass.storage.k8s.io/"], Vec::new()),
            limited_resource("pods", &["requests.storage"], Vec::new()),
        ];
        let claim =
            br#"{"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1Gi"}}}}"#;
        let (claim, device_context) = (Object::from_json(claim).unwrap(), DeviceContext::default());
        let resource = GroupResource::new("", "persistentvolumeclaims");
        let evaluator = evaluator(&resource, &device_context);
        let usage = evaluator.usage(&claim, jiff::Timestamp::UNIX_EPOCH);
        let mut uncovered = UncoveredDemand::new(&limited, &resource, &*evaluator, &claim, &usage);
        let storage = "gold.storageclass.storage.k8s.io/requests.storage";
        uncovered.cover_names(&["gold.storageclass.storage.k8s.io/persistentvolumeclaims"]);
        assert_eq!(uncovered.names().as_deref(), Some(storage));
        uncovered.cover_names(&[storage]);
        assert_eq!((uncovered.names(), uncovered.scopes()), (None, None));
    }

    #[test]
    fn a_scope_is_covered_by_a_quota_that_names_it_for_the_same_object() {
        let (scope_name, operator) = ("PriorityClass".to_owned(), "In".to_owned());
        let scope = MatchScope { scope_name, operator, values: texts(&["high", "higher"]) };
        let limited = [limited_resource("pods", &[], vec![scope])];
        let pod = Object::from_json(br#"{"spec": {"priorityClassName": "high"}}"#).unwrap();
        let (device_context, resource) = (DeviceContext::default(), GroupResource::new("", "pods"));
        let evaluator = evaluator(&resource, &device_context);
        let mut uncovered =
            UncoveredDemand::new(&limited, &resource, &*evaluator, &pod, &ResourceList::new());
        let scope = |values| ScopeRequirement { scope: "PriorityClass", operator: "In", values };
        uncovered.cover_scopes(&[scope(vec!["low"])], &*evaluator, &pod);
        assert_eq!(uncovered.scopes().as_deref(), Some("[{PriorityClass In [high higher]}]"));
        uncovered.cover_scopes(&[scope(vec!["high"])], &*evaluator, &pod);
        assert_eq!(uncovered.scopes(), None);
    }
}
