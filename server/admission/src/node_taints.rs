//! TaintNodesByCondition: a new node has a taint that keeps pods away until the node is ready.

use portico_machinery::Object;

use crate::plugin::{MutationFuture, MutationRequest, Plugin, ResourcePattern};
use portico_registry::Objects;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub(super) struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn targets(&self) -> &'static [ResourcePattern] {
        &[("", "nodes", "")]
    }

    fn mutate<'a>(&'a self, _objects: &'a Objects, change: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move {
            let path = ["spec", "taints"];
            let exists = change.new.at(&path).items().any(|taint| {
                taint.field("key").str() == NOT_READY && taint.field("effect").str() == "NoSchedule"
            });
            if change.old.is_none() && !exists {
                let mut taint = Object::default();
                taint.set(&["key"], NOT_READY);
                taint.set(&["effect"], "NoSchedule");
                change.new.push_node(&path, taint.into_node());
            }
            Ok(())
        })
    }
}
