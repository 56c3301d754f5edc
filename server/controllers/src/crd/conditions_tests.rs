//! Tests of two control services that decide about the same names at the same time.

use std::sync::Arc;

use portico_admission::{AdmissionChain, AdmissionSettings};
use portico_auth::authz::AlwaysAllow;
use portico_kinds::Kinds;
use portico_kit::metrics;
use portico_kit::workqueue::QueueMetrics;
use portico_registry::{Change, CreateOptions, Settings, condition};
use portico_routes::informers::Informers;
use portico_store::{Metrics, SqliteStore};
use tempfile::TempDir;

use super::*;
use crate::auto_register::AutoRegister;

/// A store of definitions.
struct Harness {
    registry: Registry,
    tasks: TaskSet,
    _dir: TempDir,
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

impl Harness {
    async fn open() -> Self {
        let (dir, tasks, metrics) = (TempDir::new().unwrap(), TaskSet::new(), metrics::Registry::new());
        let (kinds, table) = (Kinds::all().unwrap(), portico_resources::table());
        let settings = portico_store::Settings::new(dir.path().join("test.db"));
        let indexer = Arc::new(table.indexer(&kinds));
        let store = SqliteStore::open(settings, indexer, Metrics::new(&metrics), &tasks).await.unwrap();
        let admission = Arc::new(AdmissionChain::new(&AdmissionSettings::default(), &metrics));
        let (allow, clock) = (Arc::new(AlwaysAllow), Arc::new(Timestamp::now));
        let settings = Settings::default();
        let registry = Registry::new(Arc::new(store), &kinds, &table, admission, allow, settings, clock);
        Self { registry, tasks, _dir: dir }
    }

    /// Returns the writer of one control service.
    fn control_service(&self) -> ConditionWriter {
        let metrics = metrics::Registry::new();
        let auto_register = AutoRegister::new(&Informers::default(), [], &metrics);
        let controllers = CustomResources::new(auto_register, &QueueMetrics::new(&metrics));
        ConditionWriter { controllers, registry: self.registry.clone(), context: Arc::new(context()) }
    }

    /// Creates a definition whose kind is Bolt.
    async fn create(&self, plural: &str) -> DefinitionName {
        let json = format!(
            r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{plural}.g.example.com"}},
            "spec":{{"group":"g.example.com","scope":"Namespaced","names":{{"plural":"{plural}","kind":"Bolt"}},"versions":[{{"name":"v1",
            "served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object"}}}}}}]}}}}"#
        );
        let object = Object::from_json(json.as_bytes()).unwrap();
        let name = object.name().into();
        let options = CreateOptions::default();
        self.registry.create(&Context::system("test"), &definitions(), object, &options).await.unwrap();
        name
    }

    async fn get(&self, name: &DefinitionName) -> StoredObject {
        self.registry.get(&definitions(), "", name).await.unwrap()
    }

    /// Applies all changes up to now to a control service.
    async fn catch_up(&self, service: &ConditionWriter) {
        let feed = self.registry.follow(&definitions()).await.unwrap();
        service.controllers.apply(vec![Change::Relisted(feed.initial, feed.revision)]);
    }

    /// Returns the definitions whose names are accepted.
    async fn accepted<'n>(&self, names: &[&'n DefinitionName]) -> Vec<&'n str> {
        let mut accepted = Vec::new();
        for name in names {
            if condition::is_true(self.get(name).await.object(), "NamesAccepted") {
                accepted.push(&***name);
            }
        }
        accepted
    }
}

#[tokio::test]
async fn when_two_control_services_accept_rivals_at_the_same_time_one_decides_again() {
    let harness = Harness::open().await;
    let (one, other) = (harness.control_service(), harness.control_service());
    let (bolts, screws) = (harness.create("bolts").await, harness.create("screws").await);
    harness.catch_up(&one).await;
    harness.catch_up(&other).await;
    let of_bolts = one.decide(&bolts, &harness.get(&bolts).await).unwrap();
    let of_screws = other.decide(&screws, &harness.get(&screws).await).unwrap();
    one.write(of_bolts).await.unwrap();
    assert_eq!(other.write(of_screws).await.unwrap_err().reason(), Reason::Conflict);
    other.controllers.inner.index.lock().finish_write(&screws, None);
    harness.catch_up(&other).await;
    other.reconcile(&screws).await.unwrap();
    assert_eq!(harness.accepted(&[&bolts, &screws]).await, [&*bolts]);
}

#[tokio::test]
async fn a_rival_that_was_accepted_before_a_control_service_knew_of_it_is_noticed() {
    let harness = Harness::open().await;
    let (one, other) = (harness.control_service(), harness.control_service());
    let bolts = harness.create("bolts").await;
    harness.catch_up(&one).await;
    let of_bolts = one.decide(&bolts, &harness.get(&bolts).await).unwrap();
    let screws = harness.create("screws").await;
    harness.catch_up(&other).await;
    let of_screws = other.decide(&screws, &harness.get(&screws).await).unwrap();
    other.write(of_screws).await.unwrap();
    assert_eq!(one.write(of_bolts).await.unwrap_err().reason(), Reason::Conflict);
    one.controllers.inner.index.lock().finish_write(&bolts, None);

    // The newest state of the definition alone does not show its rivals.
    one.reconcile(&bolts).await.unwrap();
    assert_eq!(harness.accepted(&[&bolts, &screws]).await, [&*screws]);
    harness.catch_up(&one).await;
    one.reconcile(&bolts).await.unwrap();
    assert_eq!(harness.accepted(&[&bolts, &screws]).await, [&*screws]);
    let reported = condition::get(harness.get(&bolts).await.object(), "NamesAccepted");
    assert_eq!(reported.unwrap().status, "False");
}
