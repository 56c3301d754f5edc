//! HTTP proxy to pods and nodes: target and address.

use std::net::IpAddr;

use portico_gostd::netip::is_global_unicast;
use portico_machinery::connect::{ConnectKind, DialTarget, ProxyName, Security, clean_path};
use portico_machinery::route::Target;
use portico_machinery::{Object, Status};

use super::ConnectionResolver;
use portico_registry::Result;

impl ConnectionResolver<'_> {
    pub(super) async fn pod_proxy_target(&self) -> Result<DialTarget> {
        let name = self.proxy_name()?;
        let pod = self.parent(name.name).await?;
        let port = match name.port {
            "" => first_port(&pod),
            port => Some(parse_port(port)?),
        };
        let ip = pod.at(&["status", "podIPs"]).items().next().map_or("", |ip| ip.field("ip").str());
        if !ip.parse::<IpAddr>().is_ok_and(is_global_unicast) {
            return Err(not_allowed());
        }
        let target = Target { host: ip.to_owned(), port: port.unwrap_or_else(|| name.default_port()) };
        Ok(self.proxy_target(vec![target], name.security()))
    }

    pub(super) async fn node_proxy_target(&self) -> Result<DialTarget> {
        let name = self.proxy_name()?;
        let kubelet = self.kubelet_target(name.name, &self.request.served_resource.resource).await?;
        // Host names are resolved and checked when they are dialed.
        if kubelet.host.parse::<IpAddr>().is_ok_and(|ip| !is_global_unicast(ip)) {
            return Err(not_allowed());
        }
        let (target, security) = match name.port {
            "" => (kubelet, Security::Kubelet { verify: true }),
            port => match parse_port(port)? {
                port if port == kubelet.port => (kubelet, Security::Kubelet { verify: true }),
                port => (Target { port, ..kubelet }, name.security()),
            },
        };
        Ok(DialTarget { global_unicast: true, ..self.proxy_target(vec![target], security) })
    }

    /// Parses the name in the path, or returns error 400.
    pub(super) fn proxy_name(&self) -> Result<ProxyName<'_>> {
        ProxyName::parse(self.name()).ok_or_else(|| {
            let message =
                format!("invalid {} request {:?}", self.request.served_resource.info.singular, self.name());
            Box::new(Status::bad_request(message))
        })
    }

    /// Returns a target that receives the whole request.
    pub(super) fn proxy_target(&self, targets: Vec<Target>, security: Security) -> DialTarget {
        DialTarget {
            targets,
            security,
            path: clean_path(&self.request.call.target.subpath),
            query: self.request.call.query.clone(),
            kind: ConnectKind::Proxy,
            ..DialTarget::default()
        }
    }
}

/// Parses a port number. Port names are not supported.
fn parse_port(port: &str) -> Result<u16> {
    let number = port.parse().ok().filter(|port| *port > 0);
    number.ok_or_else(|| {
        let message = format!("error trying to reach service: dial tcp: address {port}: invalid port");
        Box::new(Status::unavailable(message))
    })
}

fn not_allowed() -> Box<Status> {
    Box::new(Status::bad_request("address not allowed"))
}

/// The first port of the first container that names one.
fn first_port(pod: &Object) -> Option<u16> {
    let mut containers = pod.at(&["spec", "containers"]).items();
    let port = containers.find_map(|c| c.field("ports").items().next())?.field("containerPort").i64();
    port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)
}
