//! APIServices as messages for the gRPC client and as JSON for HTTPS, and their creation by concurrent clients.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use portico_kit::tasks::TaskSet;
use portico_proto::apiregistration::{
    ApiService, ApiServiceCondition, ApiServiceSpec, CreateRequest, DeleteRequest, ObjectMeta,
    ServiceReference, WatchRequest,
};
use portico_proto::client::Client;
use tokio::sync::mpsc;

use crate::certificates::BACKEND_NAME;
use crate::process::EVENT_TIMEOUT;
use crate::{Failure, statistics::Latencies};

/// Annotation with the URLs of an APIService's backends, instead of a Service.
const URLS_ANNOTATION: &str = "portico.dev/backend-urls";
/// Annotation with the server name that backends are verified against.
const SERVER_NAME_ANNOTATION: &str = "portico.dev/backend-server-name";

/// An APIService to create.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    /// `<group>`; the version is always v1.
    pub(crate) group: String,
    /// URL of the backend; `None`: `spec.service` names a Service that does not exist.
    pub(crate) url: Option<String>,
    /// Server name of the backend's certificate.
    pub(crate) server_name: String,
    /// CA of the backend's certificate.
    pub(crate) ca_pem: String,
}

impl Registration {
    /// Creates a registration of the backend with this URL.
    pub(crate) fn for_url(group: String, url: String, ca_pem: &str) -> Self {
        Self { group, url: Some(url), server_name: BACKEND_NAME.to_owned(), ca_pem: ca_pem.to_owned() }
    }

    /// Creates a registration without a backend.
    pub(crate) fn without_backend(group: String, ca_pem: &str) -> Self {
        Self { group, url: None, server_name: BACKEND_NAME.to_owned(), ca_pem: ca_pem.to_owned() }
    }

    /// Returns the name of the APIService.
    pub(crate) fn name(&self) -> String {
        format!("v1.{}", self.group)
    }

    /// Returns a path that the APIService serves.
    pub(crate) fn path(&self) -> String {
        format!("/apis/{}/v1", self.group)
    }

    fn into_request(self) -> CreateRequest {
        let metadata = ObjectMeta {
            name: self.name(),
            annotations: self.url.map_or_else(HashMap::new, |url| {
                HashMap::from([
                    (URLS_ANNOTATION.to_owned(), url),
                    (SERVER_NAME_ANNOTATION.to_owned(), self.server_name),
                ])
            }),
            ..ObjectMeta::default()
        };
        let spec = ApiServiceSpec {
            service: Some(ServiceReference {
                namespace: "default".to_owned(),
                name: "backend".to_owned(),
                port: None,
            }),
            group: self.group,
            version: "v1".to_owned(),
            ca_bundle: self.ca_pem.into_bytes(),
            group_priority_minimum: 1000,
            version_priority: 10,
            ..ApiServiceSpec::default()
        };
        let api_service = ApiService { metadata: Some(metadata), spec: Some(spec), status: None };
        CreateRequest { api_service: Some(api_service), dry_run: false }
    }
}

/// Returns the JSON of an APIService for `default/backend` at a port; `url` becomes the annotation.
pub(crate) fn json(group: &str, ca_pem: &str, port: u16, url: Option<&str>) -> String {
    let annotations =
        url.map_or_else(String::new, |url| format!(r#","annotations":{{"{URLS_ANNOTATION}":"{url}"}}"#));
    let ca = base64(ca_pem.as_bytes());
    format!(
        r#"{{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{{"name":"v1.{group}"{annotations}}},"spec":{{"group":"{group}","version":"v1","caBundle":"{ca}","groupPriorityMinimum":1000,"versionPriority":10,"service":{{"namespace":"default","name":"backend","port":{port}}}}}}}"#
    )
}

/// Returns the JSON of the Service that `json` names, which resolves to an address by name.
pub(crate) fn service_json(backend: SocketAddr) -> String {
    let port = backend.port();
    format!(
        r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"backend","namespace":"default"}},"spec":{{"type":"ExternalName","externalName":"localhost","ports":[{{"port":{port}}}]}}}}"#
    )
}

/// Encodes bytes as in `caBundle`.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for piece in bytes.chunks(3) {
        let word =
            piece.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - piece.len()));
        for at in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= piece.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Measurements of a set of creations.
pub(crate) struct CreationTimes {
    /// Time from the first request to the last acknowledgement.
    pub(crate) time: Duration,
    /// Latency of each creation.
    pub(crate) latencies: Latencies,
}

/// Creates all; each client takes the next one as soon as its last is acknowledged.
pub(crate) async fn create(
    connections: &[Client],
    clients: usize,
    all: Vec<Registration>,
) -> Result<CreationTimes, Failure> {
    let (tasks, next, all) = (TaskSet::new(), Arc::new(AtomicUsize::new(0)), Arc::new(all));
    let (send, mut receive) = mpsc::channel(clients);
    let start = Instant::now();
    for connection in (0..clients).filter_map(|at| connections.get(at % connections.len())) {
        let (connection, next, all, send) = (connection.clone(), next.clone(), all.clone(), send.clone());
        tasks.spawn_until_cancelled("creator", async move {
            let outcome = client(&connection, &next, &all).await;
            // The receiver is dropped if another client failed.
            let _ = send.send(outcome).await;
        });
    }
    drop(send);
    let mut nanos = Vec::with_capacity(all.len());
    while let Some(outcome) = receive.recv().await {
        nanos.extend(outcome?);
    }
    Ok(CreationTimes { time: start.elapsed(), latencies: Latencies::new(nanos) })
}

async fn client(connection: &Client, next: &AtomicUsize, all: &[Registration]) -> Result<Vec<u64>, Failure> {
    let mut services = connection.api_services();
    let mut nanos = Vec::new();
    while let Some(registration) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
        let (request, sent) = (registration.clone().into_request(), Instant::now());
        services.create(request).await?;
        nanos.push(u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(nanos)
}

/// Deletes APIServices by name.
pub(crate) async fn delete(connection: &Client, names: impl Iterator<Item = String>) -> Result<(), Failure> {
    for name in names {
        connection.api_services().delete(DeleteRequest { name, ..DeleteRequest::default() }).await?;
    }
    Ok(())
}

/// Waits until this many APIServices have a condition of any status.
pub(crate) async fn wait_checked(connection: &Client, wanted: usize) -> Result<(), Failure> {
    wait_conditions(connection, wanted, |_| true).await
}

/// Waits until this many APIServices are available.
pub(crate) async fn wait_available(connection: &Client, wanted: usize) -> Result<(), Failure> {
    wait_conditions(connection, wanted, |condition| condition.status == "True").await
}

/// Watches until this many APIServices of backends have an Available condition that `like` accepts (polling would add load).
async fn wait_conditions(
    connection: &Client,
    wanted: usize,
    is_wanted: impl Fn(&ApiServiceCondition) -> bool,
) -> Result<(), Failure> {
    let mut events = connection.api_services().watch(WatchRequest::default()).await?.into_inner();
    let mut seen = HashSet::new();
    let all = async {
        while seen.len() < wanted {
            let event = events.try_next().await?.ok_or("the watch ended")?;
            let Some(ApiService { metadata, spec, status }) = event.object else {
                return Err(format!("the watch failed: {}", event.error).into());
            };
            let remote = spec.is_some_and(|spec| spec.service.is_some());
            let conditions = status.map(|status| status.conditions).unwrap_or_default();
            if remote && conditions.iter().any(|c| c.r#type == "Available" && is_wanted(c)) {
                seen.extend(metadata.map(|metadata| metadata.name));
            }
        }
        Ok(())
    };
    tokio::time::timeout(EVENT_TIMEOUT, all).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads_the_last_bytes() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
