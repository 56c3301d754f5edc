//! Targets on kubelets: addresses of nodes, and the streams of pods.

use portico_machinery::connect::{ConnectKind, DialTarget, Security, Streams, WebSocketMode};
use portico_machinery::route::Target;
use portico_machinery::{Cursor, GroupResource, Object, Reason, Status};

use super::{ConnectionKind, ConnectionResolver};
use portico_registry::{Result, TranslationSettings};

/// Port of a kubelet if the node has no other.
const KUBELET_PORT: u16 = 10250;

impl ConnectionResolver<'_> {
    /// Returns the target of `exec`, `attach` and `portforward`.
    pub(super) async fn stream_target(
        &self,
        connection: ConnectionKind,
        query: String,
    ) -> Result<DialTarget> {
        let pod = self.parent(self.name()).await?;
        let (namespace, name) = (pod.namespace(), pod.name());
        let path = match connection {
            ConnectionKind::Exec => format!("/exec/{namespace}/{name}/{}", self.container(&pod)?),
            ConnectionKind::Attach => format!("/attach/{namespace}/{name}/{}", self.container(&pod)?),
            _ => format!("/portForward/{namespace}/{name}"),
        };
        let node = pod.str_at("spec.nodeName");
        if node.is_empty() {
            let message = format!("pod {name} does not have a host assigned");
            return Err(Box::new(Status::bad_request(message)));
        }
        let node = self.node(node, &self.request.served_resource.resource).await?;
        Ok(DialTarget {
            targets: vec![self.target(&node)?],
            security: Security::Kubelet { verify: true },
            path,
            query,
            kind: ConnectKind::Upgrade,
            global_unicast: false,
            web_sockets: self.web_sockets(connection, &node),
        })
    }

    /// Returns the translation of WebSockets for the kubelet of this node, which may support only SPDY.
    fn web_sockets(&self, connection: ConnectionKind, node: &Object) -> WebSocketMode {
        let TranslationSettings { commands, ports, pass_through_declared } =
            self.request.objects.settings.connections.translation;
        let translated = if connection == ConnectionKind::PortForward { ports } else { commands };
        if !translated {
            return WebSocketMode::PassThrough;
        }
        if pass_through_declared && declares_feature(node, TranslationSettings::DECLARED) {
            return WebSocketMode::SupportedByTarget;
        }
        if connection == ConnectionKind::PortForward {
            return WebSocketMode::SpdyTunnel;
        }
        let flag = |key| self.request.query.flag(key) == Some(true);
        WebSocketMode::ChannelsToStreams(Streams {
            stdin: flag("stdin"),
            stdout: flag("stdout"),
            stderr: flag("stderr"),
            tty: flag("tty"),
        })
    }

    /// Returns the container named in the query, or the only container of the pod.
    pub(super) fn container(&self, pod: &Object) -> Result<String> {
        select_container(pod, self.request.query.first("container").unwrap_or_default())
            .map_err(|message| Box::new(Status::bad_request(message)))
    }

    /// Returns the kubelet of a node. As upstream, the error for a missing node names the requested resource, `not_found_resource`.
    pub(super) async fn kubelet_target(
        &self,
        node: &str,
        not_found_resource: &GroupResource,
    ) -> Result<Target> {
        self.target(&self.node(node, not_found_resource).await?)
    }

    async fn node(&self, name: &str, not_found_resource: &GroupResource) -> Result<Object> {
        let found = self.request.objects.object_of("", "nodes", "", name).await?;
        found.ok_or_else(|| Box::new(Status::not_found(not_found_resource, name)))
    }

    fn target(&self, node: &Object) -> Result<Target> {
        let types = &self.request.objects.settings.connections.preferred_address_types;
        let host = preferred_address(node, types)
            .map_err(|message| Box::new(Status::failure(Reason::Unknown, message)))?;
        Ok(Target { host, port: kubelet_port(node) })
    }
}

/// Returns the first address of the first of `types` that the node has.
fn preferred_address(node: &Object, types: &[String]) -> Result<String, String> {
    let addresses = node.at(&["status", "addresses"]);
    let typed = |address_type: &String| addresses.items().find(|a| a.field("type").str() == address_type);
    if let Some(address) = types.iter().find_map(typed) {
        return Ok(address.field("address").str().to_owned());
    }
    let known_addresses: Vec<String> = addresses
        .items()
        .map(|a| format!("{{{} {}}}", a.field("type").str(), a.field("address").str()))
        .collect();
    Err(format!("no preferred addresses found; known addresses: [{}]", known_addresses.join(" ")))
}

/// True if the node reports that its kubelet supports this feature.
fn declares_feature(node: &Object, feature: &str) -> bool {
    node.at(&["status", "declaredFeatures"]).items().any(|declared| declared.str() == feature)
}

fn kubelet_port(node: &Object) -> u16 {
    let port = node.at(&["status", "daemonEndpoints", "kubeletEndpoint", "Port"]).i64();
    port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0).unwrap_or(KUBELET_PORT)
}

/// Returns the container named `requested`, from any container list. Without a name, the pod must have exactly one container apart
/// from init containers.
fn select_container(pod: &Object, requested: &str) -> Result<String, String> {
    let (spec, name) = (pod.at(&["spec"]), pod.name());
    let all = portico_validation::pod_spec::all_containers(&spec);
    let names: Vec<&str> = all.iter().map(|c: &Cursor<'_>| c.field("name").str()).collect();
    if !requested.is_empty() {
        return match names.contains(&requested) {
            true => Ok(requested.to_owned()),
            false => Err(format!("container {requested} is not valid for pod {name}")),
        };
    }
    let main: Vec<Cursor<'_>> = spec.field("containers").items().take(2).collect();
    match main.as_slice() {
        [only] => Ok(only.field("name").str().to_owned()),
        [] => Err(format!("a container name must be specified for pod {name}")),
        _ => Err(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            names.join(" ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> Object {
        Object::from_json(json.as_bytes()).unwrap()
    }

    #[test]
    fn the_only_container_needs_no_name() {
        let pod = |spec: &str| object(&format!(r#"{{"metadata":{{"name":"p"}},"spec":{spec}}}"#));
        let single_container = pod(r#"{"initContainers":[{"name":"i"}],"containers":[{"name":"a"}]}"#);
        assert_eq!(select_container(&single_container, ""), Ok("a".to_owned()));
        assert_eq!(select_container(&single_container, "i"), Ok("i".to_owned()));
        assert_eq!(
            select_container(&single_container, "z"),
            Err("container z is not valid for pod p".to_owned())
        );
        let two = pod(
            r#"{"initContainers":[{"name":"i"}],"containers":[{"name":"a"},{"name":"b"}],"ephemeralContainers":[{"name":"e"}]}"#,
        );
        let choose = "a container name must be specified for pod p, choose one of: [i a b e]";
        assert_eq!(select_container(&two, ""), Err(choose.to_owned()));
    }

    #[test]
    fn the_preferred_address_of_a_node_is_used() {
        let node = object(
            r#"{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.5"},{"type":"ExternalIP","address":"192.0.2.1"}],
               "daemonEndpoints":{"kubeletEndpoint":{"Port":1250}}}}"#,
        );
        let types = |list: &[&str]| list.iter().map(|&t| t.to_owned()).collect::<Vec<_>>();
        let preferred = |list: &[&str]| preferred_address(&node, &types(list));
        assert_eq!(preferred(&["Hostname", "ExternalIP", "InternalIP"]), Ok("192.0.2.1".to_owned()));
        let unknown =
            "no preferred addresses found; known addresses: [{InternalIP 10.0.0.5} {ExternalIP 192.0.2.1}]";
        assert_eq!(preferred(&["Hostname"]), Err(unknown.to_owned()));
        assert_eq!((kubelet_port(&node), kubelet_port(&object("{}"))), (1250, KUBELET_PORT));
        let declaring = object(r#"{"status":{"declaredFeatures":["A","ExtendWebSocketsToKubelet"]}}"#);
        let declared = |node: &Object| declares_feature(node, TranslationSettings::DECLARED);
        assert_eq!((declared(&declaring), declared(&node)), (true, false));
    }
}
