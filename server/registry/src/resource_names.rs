//! Lookup of resources by the names that users type (upstream's RESTMapper and shortcut expander), for clients without discovery.

use portico_kinds::KindInfo;
use portico_machinery::GroupVersionKind;
use portico_machinery::version_order::preferred_first;

use crate::custom::{DefinitionFacts, DefinitionVersion};
use crate::objects::Objects;

/// Names of one resource in one version, as in discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedResource {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// Plural name, used in paths.
    pub resource: String,
    /// Singular name.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// True if objects have namespaces.
    pub namespaced: bool,
    /// Verbs, sorted.
    pub verbs: Vec<String>,
    /// Names of subresources, sorted.
    pub subresources: Vec<String>,
}

impl Objects {
    /// Served resources with this name: plural, singular, short name, kind or category, in any letter case, alone or followed by
    /// the group or by version and group (`deployments.v1.apps`). An empty name selects all resources. Built-in resources come
    /// first, then by group and name; versions of one resource are in the order of preference.
    #[must_use]
    pub fn resources_named(&self, name: &str) -> Vec<NamedResource> {
        let name = name.to_lowercase();
        let matches_name = |resource: &NamedResource| name.is_empty() || resource.has_name(&name);
        let mut builtin: Vec<_> = self.builtin.kinds().map(of_kind).filter(matches_name).collect();
        let facts = self.definitions.reachable(&*self.store);
        let custom = facts.iter().flat_map(|facts| {
            let verbs = self.definitions.verbs();
            facts
                .versions()
                .iter()
                .filter(|version| version.served)
                .map(|version| of_version(facts, version, verbs))
        });
        let mut custom: Vec<_> = custom.filter(matches_name).collect();
        sort(&mut builtin);
        sort(&mut custom);
        builtin.append(&mut custom);
        builtin
    }
}

impl NamedResource {
    /// True if the resource has this lower-case name.
    fn has_name(&self, name: &str) -> bool {
        let (word, rest) = name.split_once('.').unwrap_or((name, ""));
        let is_word = self.resource == word
            || self.singular == word
            || self.gvk.kind.to_lowercase() == word
            || self.short_names.iter().chain(&self.categories).any(|short| short == word);
        let group = &self.gvk.group;
        let versioned = rest.strip_prefix(&self.gvk.version).and_then(|rest| rest.strip_prefix('.'));
        is_word && (rest.is_empty() || rest == group || versioned == Some(group))
    }
}

fn sort(resources: &mut [NamedResource]) {
    resources.sort_by(|a, b| {
        let order = (&a.gvk.group, &a.resource).cmp(&(&b.gvk.group, &b.resource));
        order.then_with(|| preferred_first(&a.gvk.version, &b.gvk.version))
    });
}

fn of_kind(info: &KindInfo) -> NamedResource {
    NamedResource {
        gvk: info.gvk.clone(),
        resource: info.resource.clone(),
        singular: info.singular.clone(),
        short_names: info.short_names.clone(),
        categories: info.categories.clone(),
        namespaced: info.namespaced,
        verbs: info.verbs.to_vec(),
        subresources: info.subresources.iter().map(|subresource| subresource.name.clone()).collect(),
    }
}

/// Names of a version of a definition. Does not compile the schema.
fn of_version(facts: &DefinitionFacts, version: &DefinitionVersion, verbs: &[String]) -> NamedResource {
    let names = facts.names();
    let (scale, status) = (version.subresources.scale.is_some(), version.subresources.status.is_some());
    let subresources = [("scale", scale), ("status", status)];
    NamedResource {
        gvk: GroupVersionKind {
            group: facts.group().to_owned(),
            version: version.name.clone(),
            kind: names.kind.clone(),
        },
        resource: names.plural.clone(),
        singular: names.singular.clone(),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
        namespaced: facts.is_namespaced(),
        verbs: verbs.to_vec(),
        subresources: subresources
            .iter()
            .filter(|(_, has)| *has)
            .map(|(name, _)| (*name).to_owned())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use portico_kinds::Kinds;

    use super::{NamedResource, of_kind};

    fn named(resource: &str) -> NamedResource {
        let kinds = Kinds::builtin().unwrap();
        of_kind(kinds.iter().find(|info| info.resource == resource).unwrap())
    }

    #[test]
    fn a_kind_is_found_by_each_name_with_and_without_its_group() {
        let deployments = named("deployments");
        let names = ["deployments", "deployment", "deploy", "all", "deployments.apps", "deployments.v1.apps"];
        for name in names {
            assert!(deployments.has_name(name), "{name}");
        }
        for name in ["deployment.extensions", "deployments.v2.apps", "deployments.v1", "depl", "pods"] {
            assert!(!deployments.has_name(name), "{name}");
        }
        let pods = named("pods");
        assert!(pods.has_name("pods.v1.") && pods.has_name("po") && !pods.has_name("pods.apps"));
    }
}
