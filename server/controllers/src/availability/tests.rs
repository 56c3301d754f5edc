//! Shared fixture of the controllers' tests: facts, a sink that replaces the registry, and a prober that replaces backends.

mod probes;
mod remote;
mod table;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use portico_kit::metrics::Registry as MetricsRegistry;
use portico_kit::tasks::TaskSet;
use portico_machinery::resolve::{FactSource, ResolveMode};
use portico_machinery::route::Target;
use portico_machinery::{GroupResource, Object, Status};

use super::*;
use portico_routes::informers::Informers;

pub(crate) fn plan() -> ProbePlan {
    ProbePlan {
        name: "v1.g".into(),
        fingerprint: 1,
        targets: vec![Target { host: "10.0.0.1".into(), port: 443 }],
        path: "/apis/g/v1".into(),
        server_name: "svc.ns.svc".into(),
        bundle: None,
        insecure: false,
        http2: false,
        as_masters: true,
        display_address: "10.0.0.1:443".into(),
    }
}

pub(super) fn object(json: &str) -> Object {
    Object::from_json(json.as_bytes()).unwrap()
}

/// Returns the APIService `v1.<group>`; `service` as JSON, empty for a local one.
pub(super) fn api_service(group: &str, service: &str) -> Object {
    let service = if service.is_empty() { String::new() } else { format!(r#","service":{service}"#) };
    object(&format!(
        r#"{{"metadata":{{"name":"v1.{group}","uid":"uid-{group}"}},"spec":{{"group":"{group}","version":"v1","groupPriorityMinimum":1,"versionPriority":1{service}}}}}"#
    ))
}

pub(super) const SERVICE: &str = r#"{"namespace":"ns","name":"svc","port":443}"#;

pub(super) fn service(spec: &str) -> Object {
    object(&format!(r#"{{"metadata":{{"namespace":"ns","name":"svc"}},"spec":{{{spec}}}}}"#))
}

pub(super) fn slice(fields: &str) -> Object {
    object(&format!(
        r#"{{"metadata":{{"namespace":"ns","name":"svc-1","labels":{{"kubernetes.io/service-name":"svc"}}}},"addressType":"IPv4",{fields}}}"#
    ))
}

/// Fake registry: stores each write under a new revision, sends it to the informers, and records status writes.
#[derive(Clone)]
pub(super) struct FakeRegistry {
    pub(super) informers: Informers,
    objects: Arc<Mutex<HashMap<String, Object>>>,
    writes: Arc<Mutex<Vec<(String, String)>>>,
    conflicts: Arc<Mutex<usize>>,
    revision: Arc<Mutex<i64>>,
}

impl FakeRegistry {
    pub(super) fn new() -> Self {
        Self {
            informers: Informers::default(),
            objects: Arc::default(),
            writes: Arc::default(),
            conflicts: Arc::default(),
            revision: Arc::default(),
        }
    }

    pub(super) fn put(&self, watched: FactSource, mut object: Object) {
        let mut revision = self.revision.lock();
        *revision += 1;
        object.set(&["metadata", "resourceVersion"], revision.to_string());
        if watched == FactSource::ApiServices {
            self.objects.lock().insert(object.name().to_owned(), object.clone());
        }
        self.informers.change(|facts, touched| {
            facts.put(watched, &object, touched);
            0
        });
    }

    pub(super) fn remove(&self, watched: FactSource, namespace: &str, name: &str) {
        self.objects.lock().remove(name);
        let key = portico_machinery::resolve::ServiceKey::new(namespace, name);
        self.informers.change(|facts, touched| {
            facts.remove(watched, key, touched);
            0
        });
    }

    /// Makes this number of status writes fail with a conflict.
    pub(super) fn conflict(&self, times: usize) {
        *self.conflicts.lock() = times;
    }

    /// Returns the written conditions of an APIService as `status reason`.
    pub(super) fn writes(&self, name: &str) -> Vec<String> {
        self.writes.lock().iter().filter(|(n, _)| n == name).map(|(_, w)| w.clone()).collect()
    }

    pub(super) fn available(&self, name: &str) -> (bool, String, String) {
        let facts = self.informers.index();
        let available = facts.api_service(name).and_then(|f| f.available.clone()).unwrap_or_default();
        (available.ok, available.reason, available.message)
    }
}

impl StatusSink for FakeRegistry {
    async fn get(&self, name: &str) -> Result<Object, Box<Status>> {
        let missing = || Box::new(Status::not_found(&GroupResource::new("g", "apiservices"), name));
        self.objects.lock().get(name).cloned().ok_or_else(missing)
    }

    async fn update_status(&self, object: Object) -> Result<(), Box<Status>> {
        let name = object.name().to_owned();
        {
            let mut conflicts = self.conflicts.lock();
            if *conflicts > 0 {
                *conflicts -= 1;
                return Err(Box::new(Status::conflict(
                    &GroupResource::new("g", "apiservices"),
                    &name,
                    "modified",
                )));
            }
        }
        let condition = object.at(&["status", "conditions"]).items().next().unwrap();
        let summary = format!("{} {}", condition.field("status").str(), condition.field("reason").str());
        assert!(!condition.field("lastTransitionTime").str().is_empty());
        drop(condition);
        self.writes.lock().push((name, summary));
        self.put(FactSource::ApiServices, object);
        Ok(())
    }
}
