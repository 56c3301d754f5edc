//! Facts about nodes for endpoints, and the share of the CPU capacity of each zone (`topologycache.SetNodes`).

use std::collections::BTreeMap;

use portico_machinery::Object;

/// Label with the zone of a node.
const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
/// Labels of nodes that run no pods of users.
const EXCLUDED_LABELS: [&str; 2] =
    ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// Returns the zone of a node, if it has one.
#[must_use]
pub fn zone(node: &Object) -> Option<&str> {
    node.label(ZONE_LABEL).filter(|zone| !zone.is_empty())
}

/// Returns true if a node is ready.
#[must_use]
pub fn is_ready(node: &Object) -> bool {
    portico_registry::condition::is_true(node, "Ready")
}

/// Returns the zone and CPU capacity of a node that counts towards shares; `None` if it is not ready or runs no pods of users.
#[must_use]
pub fn zone_and_cpu(node: &Object) -> Option<(Option<&str>, &str)> {
    let serves = is_ready(node) && !EXCLUDED_LABELS.iter().any(|label| node.label(label).is_some());
    serves.then(|| (zone(node), node.str_at("status.allocatable.cpu")))
}

/// Returns the share of each zone in the CPU capacity of all ready nodes; `None` if a node lacks its zone or capacity, or if all
/// nodes are in one zone.
#[must_use]
pub fn zone_shares<'a>(nodes: impl Iterator<Item = &'a Object>) -> Option<BTreeMap<String, f64>> {
    let mut milli: BTreeMap<String, i64> = BTreeMap::new();
    for node in nodes {
        if zone_and_cpu(node).is_none() {
            continue;
        }
        let cpu = node.at(&["status", "allocatable", "cpu"]).quantity().filter(|cpu| !cpu.is_zero())?;
        *milli.entry(zone(node)?.to_owned()).or_default() += cpu.milli_value();
    }
    let total: i64 = milli.values().sum();
    if total == 0 || milli.len() < 2 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "upstream divides floats, too")]
    let share = |(zone, milli): (String, i64)| (zone, milli as f64 / total as f64);
    Some(milli.into_iter().map(share).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(zone: &str, cpu: &str, more: &str) -> Object {
        let json = format!(
            r#"{{"metadata":{{"labels":{{"topology.kubernetes.io/zone":"{zone}"{more}}}}},
            "status":{{"allocatable":{{"cpu":"{cpu}"}},"conditions":[{{"type":"Ready","status":"True"}}]}}}}"#
        );
        Object::from_json(json.as_bytes()).unwrap()
    }

    #[test]
    fn shares_require_ready_workers_in_at_least_two_zones() {
        let (a, b) = (node("a", "3", ""), node("b", "1000m", ""));
        let plane = node("c", "8", r#","node-role.kubernetes.io/control-plane":"""#);
        let found = zone_shares([&a, &b, &plane].into_iter()).unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [("a".to_owned(), 0.75), ("b".to_owned(), 0.25)]);
        assert_eq!(zone_shares([&a].into_iter()), None);
        let silent = node("", "1", "");
        assert_eq!(zone_shares([&a, &b, &silent].into_iter()), None);
    }
}
