//! Merge of the discovery of several servers behind one address into one aggregated document.
//!
//! Mirrors upstream's `aggregated.peerAggregatedDiscoveryHandler` and `sort.MergePreservingRelativeOrder`. Free of IO.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use super::{GroupDiscovery, ResourceDiscovery, VersionDiscovery};

/// Merges the groups of all servers. If servers differ in properties that cannot be merged (kinds, scope, freshness), the server
/// whose name sorts first wins. The order follows the order of each server as far as the orders agree with each other.
#[must_use]
pub fn merge_servers(servers: &BTreeMap<&str, &[GroupDiscovery]>) -> Vec<GroupDiscovery> {
    let all: Vec<Vec<GroupDiscovery>> = servers.values().map(|groups| groups.to_vec()).collect();
    merge_lists(all, |group| &group.metadata.name, merge_groups)
}

fn merge_groups(target: &mut GroupDiscovery, other: GroupDiscovery) {
    let versions = vec![std::mem::take(&mut target.versions), other.versions];
    target.versions = merge_lists(versions, |version| &version.version, merge_versions);
}

fn merge_versions(target: &mut VersionDiscovery, other: VersionDiscovery) {
    let resources = vec![std::mem::take(&mut target.resources), other.resources];
    target.resources = merge_lists(resources, |resource| &resource.resource, merge_resources);
}

/// Merges verbs and subresources. The result is sorted if they differ.
fn merge_resources(target: &mut ResourceDiscovery, other: ResourceDiscovery) {
    if *target == other {
        return;
    }
    let verbs: BTreeSet<String> = target.verbs.drain(..).chain(other.verbs).collect();
    target.verbs = verbs.into_iter().collect();
    let both = target.subresources.drain(..).chain(other.subresources);
    let by_name: BTreeMap<String, _> = both.map(|s| (s.subresource.clone(), s)).collect();
    target.subresources = by_name.into_values().collect();
}

/// Merges lists. Each item occurs once, in an order that preserves the order of each list.
fn merge_lists<T>(lists: Vec<Vec<T>>, name: impl Fn(&T) -> &String, merge: impl Fn(&mut T, T)) -> Vec<T> {
    let names: Vec<Vec<String>> =
        lists.iter().map(|list| list.iter().map(|item| name(item).clone()).collect()).collect();
    let order = merge_orders(&names);
    let mut items: HashMap<String, T> = HashMap::new();
    for item in lists.into_iter().flatten() {
        match items.get_mut(name(&item)) {
            Some(existing) => merge(existing, item),
            None => drop(items.insert(name(&item).clone(), item)),
        }
    }
    order.iter().filter_map(|name| items.remove(name)).collect()
}

/// Returns each item once, in an order that preserves the relative order of each list; sorted if the lists contradict each other.
/// A list that contains all items determines the order; pairs that no list orders are sorted.
#[must_use]
pub fn merge_orders<T: Clone + Ord + Hash>(lists: &[Vec<T>]) -> Vec<T> {
    let all: BTreeSet<&T> = lists.iter().flatten().collect();
    let is_whole =
        |list: &&Vec<T>| list.len() == all.len() && list.iter().collect::<BTreeSet<_>>().len() == all.len();
    if let Some(complete) = lists.iter().find(is_whole) {
        return complete.clone();
    }
    let mut successors: BTreeMap<&T, BTreeSet<&T>> =
        all.iter().map(|item| (*item, BTreeSet::new())).collect();
    let mut waits_for: HashMap<&T, usize> = HashMap::new();
    for pair in lists.iter().flat_map(|list| list.windows(2)) {
        if successors.entry(&pair[0]).or_default().insert(&pair[1]) {
            *waits_for.entry(&pair[1]).or_default() += 1;
        }
    }
    let mut free: BTreeSet<&T> = all.iter().copied().filter(|item| !waits_for.contains_key(item)).collect();
    let mut sorted = Vec::with_capacity(all.len());
    while let Some(next) = free.pop_first() {
        sorted.push(next.clone());
        for successor in &successors[next] {
            let pending = waits_for.entry(successor).or_default();
            *pending = pending.saturating_sub(1);
            if *pending == 0 {
                free.insert(successor);
            }
        }
    }
    if sorted.len() == all.len() { sorted } else { all.into_iter().cloned().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(lists: &[&str]) -> Vec<Vec<String>> {
        lists.iter().map(|list| list.split_whitespace().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn orders_of_all_lists_are_preserved_if_they_agree() {
        for (lists, want) in [
            (&["a b c"][..], "a b c"),
            (&["c a", "c a b"], "c a b"),
            (&["a c", "b c"], "a b c"),
            (&["z a", "z b a"], "z b a"),
            (&["x a", "x c"], "x a c"),
            (&["b a", "a b", "c"], "a b c"),
            (&["apps batch", "batch new.io", "apps other.io"], "apps batch new.io other.io"),
            (&[], ""),
        ] {
            assert_eq!(merge_orders(&words(lists)).join(" "), want, "{lists:?}");
        }
    }

    fn resource(name: &str, verbs: &[&str]) -> ResourceDiscovery {
        ResourceDiscovery {
            resource: name.to_owned(),
            verbs: verbs.iter().map(ToString::to_string).collect(),
            ..ResourceDiscovery::default()
        }
    }

    fn version(name: &str, resources: Vec<ResourceDiscovery>) -> VersionDiscovery {
        VersionDiscovery { version: name.to_owned(), resources, freshness: "Current".to_owned() }
    }

    #[test]
    fn groups_versions_resources_and_verbs_of_all_servers_are_merged() {
        let gets = || vec![resource("x", &["get"])];
        let deployments = |verbs| resource("deployments", verbs);
        let own = [
            GroupDiscovery::new("apps", vec![version("v1", vec![deployments(&["list", "get"])])]),
            GroupDiscovery::new("b", vec![version("v1", gets())]),
        ];
        let of_apps = vec![deployments(&["get", "delete"]), resource("things", &["get"])];
        let other = [
            GroupDiscovery::new("apps", vec![version("v2", gets()), version("v1", of_apps)]),
            GroupDiscovery::new("new", vec![version("v1", gets())]),
        ];
        let merged = merge_servers(&BTreeMap::from([("own", &own[..]), ("zother", &other[..])]));
        let names: Vec<_> = merged.iter().map(|g| g.metadata.name.as_str()).collect();
        assert_eq!(names, ["apps", "b", "new"]);
        let versions: Vec<_> = merged[0].versions.iter().map(|v| v.version.as_str()).collect();
        assert_eq!(versions, ["v2", "v1"]);
        let [deployments, things] = &merged[0].versions[1].resources[..] else { panic!("{merged:?}") };
        assert_eq!(deployments.verbs, ["delete", "get", "list"]);
        assert_eq!(things.resource, "things");
    }

    #[test]
    fn servers_that_serve_the_same_change_nothing() {
        let own = [GroupDiscovery::new("apps", vec![version("v1", vec![resource("x", &["list", "get"])])])];
        assert_eq!(merge_servers(&BTreeMap::from([("a", &own[..]), ("b", &own[..])])), own);
    }
}
