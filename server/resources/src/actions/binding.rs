//! Bindings: assign a pod to a node, through the `binding` subresource of the pod or the `bindings` resource.

use portico_machinery::field::Error;
use portico_machinery::status::Reason;
use portico_machinery::{GroupResource, Object, Status, time};

use portico_registry::Result;
use portico_registry::{Action, ActionFuture, ActionOutcome, ActionRequest, ResultFuture};

/// Action of `POST pods/NAME/binding` and `POST bindings`.
pub(crate) struct Binding;

impl Action for Binding {
    fn prepare<'a>(&'a self, request: &'a mut ActionRequest<'_>) -> ResultFuture<'a, ()> {
        Box::pin(async { check(request) })
    }

    fn create<'a>(&'a self, request: ActionRequest<'a>) -> ActionFuture<'a> {
        Box::pin(bind(request))
    }
}

fn check(request: &ActionRequest<'_>) -> Result<()> {
    let path = request.path;
    let collection = path.name.is_empty();
    let binding = &request.body;
    if !collection && binding.name() != path.name {
        return Err(Box::new(Status::bad_request("name in URL does not match name in Binding object")));
    }
    let namespace = binding.namespace();
    if !namespace.is_empty() && namespace != path.namespace {
        return Err(Box::new(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )));
    }
    check_target(binding)
}

async fn bind(request: ActionRequest<'_>) -> Result<ActionOutcome> {
    let (path, binding) = (request.path, &request.body);
    let pods = request.verbs.objects.served_resource(&GroupResource::new("", "pods"))?;
    let now = time::rfc3339(request.verbs.objects.request_time().now);
    request
        .verbs
        .modify(&pods, path.namespace, binding.name(), request.options.dry_run, |pod| {
            check_pod(pod, binding)?;
            assign(pod, binding, &now);
            Ok(())
        })
        .await?;
    Ok(created_status())
}

/// Returns status 201 without an object.
pub(super) fn created_status() -> ActionOutcome {
    let mut status = Status::success(None);
    status.code = 201;
    ActionOutcome::Status(Box::new(status))
}

/// Checks that the target is a node with a name. The error has code 500, as upstream's does.
fn check_target(binding: &Object) -> Result<()> {
    let (kind, name) = (binding.at(&["target", "kind"]), binding.at(&["target", "name"]));
    let error = if !matches!(kind.str(), "" | "Node") {
        Error::not_supported(&kind.path(), kind.str(), &["Node", "<empty>"])
    } else if name.str().is_empty() {
        name.required("")
    } else {
        return Ok(());
    };
    let mut status = Status::failure(Reason::Unknown, error.to_string());
    status.code = 500;
    Err(Box::new(status))
}

fn check_pod(pod: &Object, binding: &Object) -> Result<()> {
    let name = pod.name();
    let resource = GroupResource::new("", "pods/binding");
    let conflict = |message: String| Err(Box::new(Status::conflict(&resource, name, &message)));
    for (expected, actual, field) in [
        (binding.uid(), pod.uid(), "UID"),
        (binding.resource_version(), pod.resource_version(), "ResourceVersion"),
    ] {
        if !expected.is_empty() && expected != actual {
            let message = format!(
                "Precondition failed: {field} in precondition: {expected}, {field} in object meta: {actual}"
            );
            return Err(Box::new(Status::conflict(&GroupResource::new("", "pods"), name, &message)));
        }
    }
    let node = pod.str_at("spec.nodeName");
    if pod.deletion_timestamp().is_some() {
        conflict(format!("pod {name} is being deleted, cannot be assigned to a host"))
    } else if !node.is_empty() {
        conflict(format!("pod {name} is already assigned to node {node:?}"))
    } else if !pod.at(&["spec", "schedulingGates"]).is_empty() {
        conflict(format!("pod {name} has non-empty .spec.schedulingGates"))
    } else {
        Ok(())
    }
}

fn assign(pod: &mut Object, binding: &Object, now: &str) {
    pod.set(&["spec", "nodeName"], binding.str_at("target.name"));
    for map in ["annotations", "labels"] {
        for (key, value) in binding.metadata().field(map).entries() {
            pod.set(&["metadata", map, key], value.str());
        }
    }
    pod.remove(&["status", "nominatedNodeName"]);
    set_condition(pod, "PodScheduled", None, now);
}

/// Sets a condition of a pod to `True`.
pub(super) fn set_condition(
    pod: &mut Object,
    kind: &str,
    reason_and_message: Option<(&str, &str)>,
    now: &str,
) {
    let write = |condition: &mut Object| {
        if condition.str_at("status") != "True" {
            condition.set(&["lastTransitionTime"], now);
        }
        condition.set(&["status"], "True");
        for (field, text) in
            [("reason", reason_and_message.map(|w| w.0)), ("message", reason_and_message.map(|w| w.1))]
        {
            match text {
                Some(text) => condition.set(&[field], text),
                None => drop(condition.remove(&[field])),
            }
        }
    };
    let mut found = false;
    pod.edit_each(&["status", "conditions"], |condition| {
        if condition.str_at("type") == kind {
            found = true;
            write(condition);
        }
    });
    if !found {
        let mut condition = Object::default();
        condition.set(&["type"], kind);
        write(&mut condition);
        pod.push_node(&["status", "conditions"], condition.into_node());
    }
}
