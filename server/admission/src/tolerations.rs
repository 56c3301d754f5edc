//! DefaultTolerationSeconds: pods stay five minutes on a node that is lost, unless they say otherwise.

use portico_machinery::Object;

use crate::plugin::{Mutating, MutationRequest, PODS, Plugin, Target};
use portico_registry::Objects;

/// Seconds that a pod stays.
const SECONDS: i64 = 300;

pub(super) struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn targets(&self) -> &'static [Target] {
        PODS
    }

    fn mutate<'a>(&'a self, _objects: &'a Objects, change: MutationRequest<'a>) -> Mutating<'a> {
        Box::pin(async move {
            for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
                tolerate(change.new, key);
            }
            Ok(())
        })
    }
}

fn tolerate(pod: &mut Object, key: &str) {
    let path = ["spec", "tolerations"];
    let tolerated = pod.at(&path).items().any(|toleration| {
        let (of, effect) = (toleration.field("key").str(), toleration.field("effect").str());
        (of == key || of.is_empty()) && matches!(effect, "NoExecute" | "")
    });
    if tolerated {
        return;
    }
    let mut toleration = Object::default();
    toleration.set(&["key"], key);
    toleration.set(&["operator"], "Exists");
    toleration.set(&["effect"], "NoExecute");
    toleration.set(&["tolerationSeconds"], SECONDS);
    pod.push_node(&path, toleration.into_node());
}
