//! DefaultTolerationSeconds: pods tolerate a node that is not ready or unreachable for five minutes, unless they
//! set another time.

use portico_machinery::Object;

use crate::plugin::{MutationFuture, MutationRequest, PODS, Plugin, ResourcePattern};
use portico_registry::Objects;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// DefaultTolerationSeconds plugin, with the times in seconds.
pub(super) struct DefaultTolerationSeconds {
    not_ready_seconds: i64,
    unreachable_seconds: i64,
}

impl DefaultTolerationSeconds {
    pub(super) fn new(not_ready_seconds: i64, unreachable_seconds: i64) -> Self {
        Self { not_ready_seconds, unreachable_seconds }
    }
}

impl Plugin for DefaultTolerationSeconds {
    fn targets(&self) -> &'static [ResourcePattern] {
        PODS
    }

    fn mutate<'a>(&'a self, _objects: &'a Objects, change: MutationRequest<'a>) -> MutationFuture<'a> {
        Box::pin(async move {
            for (key, seconds) in
                [(NOT_READY, self.not_ready_seconds), (UNREACHABLE, self.unreachable_seconds)]
            {
                add_toleration(change.new, key, seconds);
            }
            Ok(())
        })
    }
}

fn add_toleration(pod: &mut Object, key: &str, seconds: i64) {
    let path = ["spec", "tolerations"];
    let tolerated = pod.at(&path).items().any(|toleration| {
        let (tolerated_key, effect) = (toleration.field("key").str(), toleration.field("effect").str());
        (tolerated_key == key || tolerated_key.is_empty()) && matches!(effect, "NoExecute" | "")
    });
    if tolerated {
        return;
    }
    let mut toleration = Object::default();
    toleration.set(&["key"], key);
    toleration.set(&["operator"], "Exists");
    toleration.set(&["effect"], "NoExecute");
    toleration.set(&["tolerationSeconds"], seconds);
    pod.push_node(&path, toleration.into_node());
}
