//! Table row of a node.

use std::collections::BTreeSet;

use portico_machinery::Object;
use portico_machinery::table::Cell;

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE: &str = "kubernetes.io/role";

/// Returns the cell of a function that the data file names.
pub(super) fn cell(function: &str, node: &Object) -> Cell {
    Cell::text(match function {
        "node-status" => status(node),
        "node-roles" => roles(node),
        "node-internal-ip" => address(node, "InternalIP"),
        "node-external-ip" => address(node, "ExternalIP"),
        "node-os-image" => info(node, "osImage"),
        "node-kernel-version" => kernel(node),
        "node-container-runtime" => info(node, "containerRuntimeVersion"),
        _ => return Cell::Null,
    })
}

fn status(node: &Object) -> String {
    let conditions = node.at(&["status", "conditions"]);
    let ready = conditions.items().filter(|condition| condition.field("type").str() == "Ready").last();
    let ready_text = match ready.map(|condition| condition.field("status").str() == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    };
    let is_unschedulable = node.at(&["spec", "unschedulable"]).bool();
    if is_unschedulable { format!("{ready_text},SchedulingDisabled") } else { ready_text.to_owned() }
}

fn roles(node: &Object) -> String {
    let labels = node.labels();
    let roles: BTreeSet<&str> = labels
        .iter()
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role).filter(|role| !role.is_empty()),
            None => (key == ROLE && !value.is_empty()).then_some(value.as_str()),
        })
        .collect();
    if roles.is_empty() {
        return "<none>".to_owned();
    }
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn address(node: &Object, address_type: &str) -> String {
    let addresses = node.at(&["status", "addresses"]);
    let found = addresses.items().find(|address| address.field("type").str() == address_type);
    found.map_or_else(|| "<none>".to_owned(), |address| address.field("address").str().to_owned())
}

fn info(node: &Object, field: &str) -> String {
    let text = node.at(&["status", "nodeInfo", field]).str();
    if text.is_empty() { "<unknown>" } else { text }.to_owned()
}

fn kernel(node: &Object) -> String {
    let architecture = node.str_at("status.nodeInfo.architecture");
    let version = info(node, "kernelVersion");
    if architecture.is_empty() { version } else { format!("{version} ({architecture})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_the_state_of_the_node() {
        let json = br#"{"metadata":{"labels":{"node-role.kubernetes.io/b":"","kubernetes.io/role":"a"}},
            "spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"True"}],
            "nodeInfo":{"architecture":"amd64"},"addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}}"#;
        let node = Object::from_json(json).unwrap();
        for (function, text) in [
            ("node-status", "Ready,SchedulingDisabled"),
            ("node-roles", "a,b"),
            ("node-internal-ip", "10.0.0.1"),
            ("node-external-ip", "<none>"),
            ("node-os-image", "<unknown>"),
            ("node-kernel-version", "<unknown> (amd64)"),
        ] {
            assert_eq!(cell(function, &node), Cell::text(text), "{function}");
        }
    }
}
