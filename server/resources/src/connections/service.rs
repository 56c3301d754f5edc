//! HTTP proxy to one of the pods behind a Service.
//!
//! Only addresses of pods in the namespace of the Service are used, as upstream. Otherwise, permission to write Endpoints
//! would be permission to choose addresses that the facade dials. Requests for the Service of an APIService that has its own
//! addresses go to those addresses.

use portico_machinery::connect::{DialTarget, ProxyName};
use portico_machinery::resolve::SERVICE_NAME_LABEL;
use portico_machinery::route::Target;
use portico_machinery::selector::LabelSelector;
use portico_machinery::{Cursor, GroupResource, Object, Status};

use super::ConnectionResolver;
use portico_registry::Result;
use portico_registry::options::ListOptions;
use portico_registry::stored_object;

/// Address of a port of a Service, and the pod that its endpoint names.
#[derive(Debug, PartialEq, Eq)]
struct PodEndpoint {
    target: Target,
    pod: Option<(String, String)>,
}

impl ConnectionResolver<'_> {
    pub(super) async fn service_proxy_target(&self) -> Result<DialTarget> {
        let name = self.proxy_name()?;
        let number = name.port.parse::<i64>().ok();
        let port = number.and_then(|port| u16::try_from(port).ok());
        if let Some((targets, security)) =
            self.request.backends.backend_of(self.request.namespace, name.name, port)
            && (name.port.is_empty() || port.is_some())
        {
            return Ok(self.proxy_target(targets, security));
        }
        let port = match number {
            Some(number) => self.port_name(&name, number).await?,
            None => name.port.to_owned(),
        };
        let mut candidates = self.pod_endpoints(&name, &port).await?;
        let (count, first) = (candidates.len().max(1), rand::random::<u32>() as usize);
        candidates.rotate_left(first % count);
        for PodEndpoint { target, pod } in candidates {
            if self.is_pod_address(&target.host, pod).await? {
                return Ok(self.proxy_target(vec![target], name.security()));
            }
        }
        Err(no_endpoints(&name.to_string()))
    }

    /// Returns the name of the port with this number.
    async fn port_name(&self, name: &ProxyName<'_>, number: i64) -> Result<String> {
        let service = self.parent(name.name).await?;
        let mut ports = service.at(&["spec", "ports"]).items();
        match ports.find(|port| port.field("port").i64() == Some(number)) {
            Some(port) => Ok(port.field("name").str().to_owned()),
            None => Err(Box::new(Status::unavailable(format!(
                "no service port {number} found for service {:?}",
                name.name
            )))),
        }
    }

    /// Returns the addresses of a port, from the Endpoints or, if they do not exist, from the EndpointSlices.
    async fn pod_endpoints(&self, name: &ProxyName<'_>, port: &str) -> Result<Vec<PodEndpoint>> {
        let found =
            match self.request.objects.object_of("", "endpoints", self.request.namespace, name.name).await? {
                Some(endpoints) => {
                    let subsets = endpoints.at(&["subsets"]);
                    (!subsets.is_empty()).then(|| endpoints_of_subsets(&subsets, port))
                }
                None => {
                    let slices = self.slices(name.name).await?;
                    if slices.is_empty() {
                        return Err(Box::new(Status::not_found(
                            &self.request.served_resource.resource,
                            name.name,
                        )));
                    }
                    Some(slices.iter().flat_map(|slice| endpoints_of_slice(slice, port)).collect())
                }
            };
        found.ok_or_else(|| no_endpoints(name.name))
    }

    async fn slices(&self, service: &str) -> Result<Vec<Object>> {
        let served = self
            .request
            .objects
            .served_resource(&GroupResource::new("discovery.k8s.io", "endpointslices"))?;
        let Ok(labels) = LabelSelector::parse(&format!("{SERVICE_NAME_LABEL}={service}")) else {
            return Ok(Vec::new());
        };
        let options = ListOptions { labels, ..ListOptions::default() };
        let page = self.request.objects.list(&served, self.request.namespace, &options).await?;
        Ok(page.records.iter().map(|record| stored_object::decode(record)).collect())
    }

    /// True if `address` is an address of `pod`, which the endpoint names.
    async fn is_pod_address(&self, address: &str, pod: Option<(String, String)>) -> Result<bool> {
        let Some((_, name)) = pod.filter(|(namespace, _)| namespace == self.request.namespace) else {
            return Ok(false);
        };
        let pod = self.request.objects.object_of("", "pods", self.request.namespace, &name).await?;
        Ok(pod.is_some_and(|pod| {
            pod.at(&["status", "podIPs"]).items().any(|ip| ip.field("ip").str() == address)
        }))
    }
}

fn no_endpoints(name: &str) -> Box<Status> {
    Box::new(Status::unavailable(format!("no endpoints available for service {name:?}")))
}

fn endpoints_of_subsets(subsets: &Cursor<'_>, port: &str) -> Vec<PodEndpoint> {
    let mut all = Vec::new();
    for subset in subsets.items() {
        let Some(port) = port_number(&subset, |name| name.str() == port) else { continue };
        all.extend(
            subset
                .field("addresses")
                .items()
                .map(|address| pod_endpoint(address.field("ip").str(), port, &address)),
        );
    }
    all
}

fn endpoints_of_slice(slice: &Object, port: &str) -> Vec<PodEndpoint> {
    let Some(port) = port_number(&slice.cursor(), |name| name.opt_str() == Some(port)) else {
        return Vec::new();
    };
    let endpoints = slice.at(&["endpoints"]);
    let ready = |e: &Cursor<'_>| e.field("conditions").field("ready").opt_bool().unwrap_or(true);
    let first = |e: Cursor<'_>| Some(pod_endpoint(e.field("addresses").items().next()?.str(), port, &e));
    endpoints.items().filter(ready).filter_map(first).collect()
}

/// Returns the number of the port whose name satisfies `matches`.
fn port_number(holder: &Cursor<'_>, matches: impl Fn(&Cursor<'_>) -> bool) -> Option<u16> {
    let port = holder.field("ports").items().find(|port| matches(&port.field("name")))?;
    port.field("port").i64().and_then(|port| u16::try_from(port).ok())
}

fn pod_endpoint(address: &str, port: u16, holder: &Cursor<'_>) -> PodEndpoint {
    let reference = holder.field("targetRef");
    let pod = reference
        .is_present()
        .then(|| (reference.field("namespace").str().to_owned(), reference.field("name").str().to_owned()));
    PodEndpoint { target: Target { host: address.to_owned(), port }, pod }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(candidates: &[PodEndpoint]) -> Vec<String> {
        candidates.iter().map(|c| c.target.to_string()).collect()
    }

    #[test]
    fn ready_addresses_are_found_by_port_name() {
        let endpoints = Object::from_json(
            br#"{"subsets":[
                {"addresses":[{"ip":"10.0.0.1","targetRef":{"kind":"Pod","namespace":"n","name":"p"}},{"ip":"10.0.0.2"}],
                 "notReadyAddresses":[{"ip":"10.0.0.3"}],"ports":[{"name":"web","port":8080},{"name":"tls","port":8443}]},
                {"addresses":[{"ip":"10.0.0.4"}],"ports":[{"port":9}]}]}"#,
        )
        .unwrap();
        let subsets = endpoints.at(&["subsets"]);
        assert_eq!(hosts(&endpoints_of_subsets(&subsets, "tls")), ["10.0.0.1:8443", "10.0.0.2:8443"]);
        assert_eq!(hosts(&endpoints_of_subsets(&subsets, "")), ["10.0.0.4:9"]);
        assert!(endpoints_of_subsets(&subsets, "none").is_empty());
        let pods: Vec<_> = endpoints_of_subsets(&subsets, "web").into_iter().map(|c| c.pod).collect();
        assert_eq!(pods, [Some(("n".to_owned(), "p".to_owned())), None]);
        let slice = Object::from_json(
            br#"{"ports":[{"name":"web","port":80}],"endpoints":[{"addresses":["10.0.0.5","10.0.0.6"]},
                {"addresses":["10.0.0.7"],"conditions":{"ready":false}}]}"#,
        )
        .unwrap();
        assert_eq!(hosts(&endpoints_of_slice(&slice, "web")), ["10.0.0.5:80"]);
        assert!(endpoints_of_slice(&slice, "").is_empty());
    }
}
