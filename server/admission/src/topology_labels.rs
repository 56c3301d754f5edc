//! PodTopologyLabels: copies the zone and region of the assigned node to a pod.

use crate::plugin::{MutationFuture, MutationRequest, Plugin, ResourcePattern};
use portico_registry::{ObjectPart, Objects};

/// Labels that are copied from the node and overwrite those of the pod.
const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

pub(super) struct PodTopologyLabels;

impl Plugin for PodTopologyLabels {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("", "pods", ""), ("", "pods", "binding")]
    }

    fn mutate<'a>(&'a self, objects: &'a Objects, change: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move {
            let node = match change.attributes.part {
                ObjectPart::Main => change.new.str_at("spec.nodeName"),
                // The labels of a binding are copied to its pod.
                ObjectPart::Subresource(_) if change.new.str_at("target.kind") == "Node" => {
                    change.new.str_at("target.name")
                }
                ObjectPart::Subresource(_) => "",
            };
            if change.old.is_some() || node.is_empty() {
                return Ok(());
            }
            let Some(node) = objects.object_of("", "nodes", "", node).await? else { return Ok(()) };
            for key in LABELS {
                if let Some(value) = node.label(key) {
                    change.new.set(&["metadata", "labels", key], value);
                }
            }
            Ok(())
        })
    }
}
