//! Decides if a claim or a volume is in use, and the change to its finalizer. Pure.

use portico_machinery::Object;
use portico_machinery::object::Cursor;

const FINALIZERS: &[&str] = &["metadata", "finalizers"];

/// Change to the finalizer of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProtectionStep {
    /// Add the missing finalizer: the object was written without the admission plugin that sets it.
    Protect,
    /// Remove the finalizer if the object is unused: it is being deleted.
    Release,
}

impl ProtectionStep {
    /// Returns the step for an object; `None` if its finalizer needs no change.
    pub(super) fn for_object(object: &Object, finalizer: &str) -> Option<Self> {
        match (object.deletion_timestamp().is_some(), object.finalizers().contains(&finalizer)) {
            (false, false) => Some(Self::Protect),
            (true, true) => Some(Self::Release),
            _ => None,
        }
    }

    /// Returns the object after this step.
    pub(super) fn applied_to(self, object: &Object, finalizer: &str) -> Object {
        let mut changed = object.clone();
        changed.remove(FINALIZERS);
        let remaining = object.finalizers().into_iter().filter(|name| *name != finalizer);
        let added = (self == Self::Protect).then_some(finalizer);
        remaining.chain(added).for_each(|finalizer| changed.push(FINALIZERS, finalizer));
        changed
    }
}

/// Returns true if a volume is bound to a claim.
pub(super) fn is_bound(volume: &Object) -> bool {
    volume.at(&["status", "phase"]).str() == "Bound"
}

/// Returns true if a pod uses a claim (`podUsesPVC`). A pod that is not bound to a node does not use its claims: a kubelet does
/// not start a pod whose claim is being deleted.
pub(super) fn uses(pod: &Object, claim: &Object) -> bool {
    is_scheduled(pod)
        && pod.at(&["spec", "volumes"]).items().any(|volume| {
            let claim_name = volume.field("persistentVolumeClaim").field("claimName").opt_str();
            let is_ephemeral = || volume.field("ephemeral").is_present() && !is_shut_down(pod);
            claim_name == Some(claim.name())
                || is_ephemeral()
                    && ephemeral_name(pod, volume.field("name").str()) == claim.name()
                    && is_controlled_by(claim, pod)
        })
}

/// Returns true if a pod does not use its claims yet, or no longer uses them.
pub(super) fn may_release(pod: &Object) -> bool {
    let is_terminated = matches!(pod.at(&["status", "phase"]).str(), "Succeeded" | "Failed");
    !is_scheduled(pod) || is_terminated || is_shut_down(pod)
}

/// Returns the names of the claims that a pod refers to.
pub(super) fn claims_of(pod: &Object) -> Vec<String> {
    let name = |volume: Cursor<'_>| {
        if volume.field("ephemeral").is_present() {
            return Some(ephemeral_name(pod, volume.field("name").str()));
        }
        volume.field("persistentVolumeClaim").field("claimName").opt_str().map(str::to_owned)
    };
    pod.at(&["spec", "volumes"]).items().filter_map(name).collect()
}

/// Returns the name of the claim of an ephemeral volume of a pod.
fn ephemeral_name(pod: &Object, volume: &str) -> String {
    format!("{}-{volume}", pod.name())
}

fn is_scheduled(pod: &Object) -> bool {
    !pod.at(&["spec", "nodeName"]).str().is_empty()
}

/// Returns true if the kubelet has finished a pod, or the pod was deleted by force (`podIsShutDown`).
fn is_shut_down(pod: &Object) -> bool {
    pod.deletion_timestamp().is_some() && pod.at(&["metadata", "deletionGracePeriodSeconds"]).i64() == Some(0)
}

fn is_controlled_by(claim: &Object, pod: &Object) -> bool {
    let owners = claim.at(&["metadata", "ownerReferences"]);
    owners.items().any(|owner| owner.field("controller").bool() && owner.field("uid").str() == pod.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINALIZER: &str = "kubernetes.io/pvc-protection";

    fn object(json: &str) -> Object {
        Object::from_json(json.as_bytes()).unwrap()
    }

    fn pod(metadata: &str, spec: &str) -> Object {
        object(&format!(
            r#"{{"metadata":{{"name":"p","namespace":"n","uid":"u"{metadata}}},"spec":{{{spec}}}}}"#
        ))
    }

    #[test]
    fn a_claim_that_is_deleted_loses_its_finalizer_and_another_gets_one() {
        let deleted = r#""deletionTimestamp":"2026-01-01T00:00:00Z","#;
        let of = |deleted: &str, finalizers: &str| {
            object(&format!(r#"{{"metadata":{{{deleted}"finalizers":[{finalizers}]}}}}"#))
        };
        let (ours, both) = (format!("{FINALIZER:?}"), format!("\"a\",{FINALIZER:?}"));
        for (object, step, after) in [
            (of("", "\"a\""), Some(ProtectionStep::Protect), vec!["a", FINALIZER]),
            (of("", &ours), None, vec![]),
            (of(deleted, &both), Some(ProtectionStep::Release), vec!["a"]),
            (of(deleted, &ours), Some(ProtectionStep::Release), vec![]),
            (of(deleted, "\"a\""), None, vec![]),
        ] {
            assert_eq!(ProtectionStep::for_object(&object, FINALIZER), step, "{object:?}");
            if let Some(step) = step {
                assert_eq!(step.applied_to(&object, FINALIZER).finalizers(), after);
            }
        }
    }

    #[test]
    fn a_claim_is_used_by_pods_that_are_bound_to_a_node() {
        let by_name = r#""volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}]"#;
        let ephemeral = r#""volumes":[{"name":"v","ephemeral":{}}]"#;
        let (node, going) = (r#""nodeName":"n","#, r#","deletionTimestamp":"2026-01-01T00:00:00Z""#);
        let killed = format!(r#"{going},"deletionGracePeriodSeconds":0"#);
        let claim = object(r#"{"metadata":{"name":"c"}}"#);
        let owner = |uid: &str| {
            object(&format!(
                r#"{{"metadata":{{"name":"p-v","ownerReferences":[{{"uid":"{uid}","controller":true}}]}}}}"#
            ))
        };
        for (metadata, spec, claim, used) in [
            ("", format!("{node}{by_name}"), &claim, true),
            ("", by_name.to_owned(), &claim, false),
            ("", format!("{node}{ephemeral}"), &claim, false),
            (killed.as_str(), format!("{node}{by_name}"), &claim, true),
            ("", format!("{node}{ephemeral}"), &owner("u"), true),
            ("", format!("{node}{ephemeral}"), &owner("other"), false),
            (going, format!("{node}{ephemeral}"), &owner("u"), true),
            (killed.as_str(), format!("{node}{ephemeral}"), &owner("u"), false),
        ] {
            assert_eq!(uses(&pod(metadata, &spec), claim), used, "{metadata} {spec}");
        }
    }

    #[test]
    fn claims_are_enqueued_when_a_pod_does_not_use_them() {
        let volumes = r#""volumes":[{"name":"v","ephemeral":{}},{"name":"w","persistentVolumeClaim":{"claimName":"c"}},{"name":"x"}]"#;
        let waiting = pod("", volumes);
        assert_eq!(claims_of(&waiting), ["p-v", "c"]);
        assert!(may_release(&waiting));
        let mut running = pod("", &format!(r#""nodeName":"n",{volumes}"#));
        assert!(!may_release(&running));
        running.set(&["status", "phase"], "Succeeded");
        assert!(may_release(&running));
    }
}
