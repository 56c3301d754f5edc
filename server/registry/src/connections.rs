//! Connections to what runs on nodes (`log`, `exec`, `attach`, `portforward`): what is wrong with a request is said before
//! anything is dialled.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, GroupKind, GroupResource, Object, Status};

use crate::Result;
use crate::answer::Answer;
use crate::registry::{Inner, Place};
use crate::served::Served;
use crate::stored;

/// A subresource that connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// What a container wrote.
    Log,
    /// A command in a container, or the container itself.
    Container,
    /// Ports of the pod.
    Ports,
}

/// The connection behind a subresource.
pub(crate) fn of(group: &str, resource: &str, subresource: &str) -> Option<Connection> {
    match (group, resource, subresource) {
        ("", "pods", "log") => Some(Connection::Log),
        ("", "pods", "exec" | "attach") => Some(Connection::Container),
        ("", "pods", "portforward") => Some(Connection::Ports),
        _ => None,
    }
}

impl Inner {
    /// Judges a connection; `parameter` finds what the query says.
    pub(crate) async fn connect(
        &self,
        connection: Connection,
        served: &Served,
        place: Place<'_>,
        parameter: impl Fn(&str) -> Option<String> + Send + Sync,
    ) -> Result<Answer> {
        if connection == Connection::Log {
            check_log_options(place.name, &parameter)?;
        }
        let pod = stored::decode(&*self.get(served, place.namespace, place.name).await?);
        if connection != Connection::Ports {
            check_container(&pod, parameter("container").as_deref().unwrap_or_default())?;
        }
        let node = pod.str_at("spec.nodeName");
        if node.is_empty() {
            return match connection {
                Connection::Log => Ok(Answer::json(204, bytes::Bytes::new(), 0)),
                _ => Err(Box::new(Status::bad_request(format!(
                    "pod {} does not have a host assigned",
                    pod.name()
                )))),
            };
        }
        let nodes = self.served(&GroupResource::new("", "nodes"))?;
        if self.read(&nodes, "", node).await?.is_none() {
            // Upstream names the node and calls it a pod.
            return Err(Box::new(Status::not_found(&served.resource, node)));
        }
        Err(Box::new(Status::unavailable(format!("the kubelet of node {node:?} cannot be reached"))))
    }
}

/// What a log request may ask for.
fn check_log_options(name: &str, parameter: &impl Fn(&str) -> Option<String>) -> Result<()> {
    let number = |key: &str| parameter(key).and_then(|text| text.parse::<i64>().ok());
    let mut errors = Vec::new();
    if let Some(lines) = number("tailLines").filter(|lines| *lines < 0) {
        errors.push(Error::invalid(&"tailLines".into(), lines, "must be greater than or equal to 0"));
    }
    for key in ["limitBytes", "sinceSeconds"] {
        if let Some(value) = number(key).filter(|value| *value < 1) {
            errors.push(Error::invalid(&key.into(), value, "must be greater than 0"));
        }
    }
    if parameter("sinceTime").is_some() && parameter("sinceSeconds").is_some() {
        let text = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        errors.push(Error::forbidden(&"".into(), text));
    }
    if parameter("stream").is_some() {
        errors.push(Error::forbidden(&"stream".into(), "may not be specified"));
    }
    if errors.is_empty() {
        return Ok(());
    }
    let kind = GroupKind { group: String::new(), kind: "PodLogOptions".to_owned() };
    Err(Box::new(Status::invalid(&kind, name, &errors)))
}

/// The container must be there; one that is not named must be the only one.
fn check_container(pod: &Object, wanted: &str) -> Result<()> {
    let spec = pod.at(&["spec"]);
    let containers = crate::pod_spec::all_containers(&spec);
    let names: Vec<&str> =
        containers.iter().map(|container: &Cursor<'_>| container.field("name").str()).collect();
    let name = pod.name();
    if wanted.is_empty() && names.len() > 1 {
        return Err(Box::new(Status::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            names.join(" ")
        ))));
    }
    if !wanted.is_empty() && !names.contains(&wanted) {
        return Err(Box::new(Status::bad_request(format!("container {wanted} is not valid for pod {name}"))));
    }
    Ok(())
}
