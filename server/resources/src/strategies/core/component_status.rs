//! ComponentStatus: health of the components of a control plane. Objects are not stored; each read computes them.

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, GroupVersionKind, Object};

use portico_registry::{ComputedStrategy, Strategy, TableStrategy};

/// Components that this server does not include, with the ports that upstream probes. They are not probed: the response is that
/// of upstream on a machine without them.
const ABSENT_COMPONENTS: [(&str, u16); 2] = [("controller-manager", 10_257), ("scheduler", 10_259)];
/// Name of the store in upstream. The store is part of this server.
const STORE: &str = "etcd-0";

pub(crate) struct ComponentStatus;

impl Strategy for ComponentStatus {}

impl TableStrategy for ComponentStatus {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        let conditions = object.at(&["conditions"]);
        let healthy = conditions.items().find(|condition| condition.field("type").str() == "Healthy");
        let text =
            |field: &'static str| healthy.as_ref().map_or("", |condition| condition.field(field).str());
        match function {
            "componentstatus-status" => Cell::text(health(healthy.as_ref())),
            "componentstatus-message" => Cell::text(text("message")),
            "componentstatus-error" => Cell::text(text("error")),
            _ => Cell::Null,
        }
    }
}

impl ComputedStrategy for ComponentStatus {
    fn computed(&self, kind: &GroupVersionKind) -> Vec<Object> {
        let absent = ABSENT_COMPONENTS.iter().map(|(name, port)| {
            let address = format!("127.0.0.1:{port}");
            let message =
                format!("Get \"https://{address}/healthz\": dial tcp {address}: connect: connection refused");
            component(kind, name, "False", &message)
        });
        absent.chain([component(kind, STORE, "True", "ok")]).collect()
    }
}

fn component(kind: &GroupVersionKind, name: &str, healthy: &str, message: &str) -> Object {
    let mut component = Object::new(kind);
    component.set(&["metadata", "name"], name);
    let mut condition = Object::default();
    for (field, text) in [("type", "Healthy"), ("status", healthy), ("message", message)] {
        condition.set(&[field], text);
    }
    component.push_node(&["conditions"], condition.into_node());
    component
}

fn health(condition: Option<&Cursor<'_>>) -> &'static str {
    match condition.map(|condition| condition.field("status").str()) {
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use portico_machinery::GroupVersion;

    use super::*;

    #[test]
    fn the_store_is_healthy_and_absent_components_are_not() {
        let kind = GroupVersion::new("", "v1").kind("ComponentStatus");
        let components = ComponentStatus.computed(&kind);
        let cells: Vec<(&str, Cell)> = components
            .iter()
            .map(|component| (component.name(), ComponentStatus.cell("componentstatus-status", component)))
            .collect();
        let [well, unwell] = ["Healthy", "Unhealthy"].map(Cell::text);
        assert_eq!(cells, [("controller-manager", unwell.clone()), ("scheduler", unwell), ("etcd-0", well)]);
    }
}
