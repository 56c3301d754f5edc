//! Tests of etcd, with a server for each test.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_machinery::GroupResource;
use portico_store::{
    Change, EtcdError, EtcdSettings, EtcdStore, Layout, Metrics, ObjectCodec, Operation, Precondition,
    Resource, Scope, Seal, Settings, Store, StoreError, Txn, TxnError, Value, WatchError,
};
use portico_tests::EtcdServer;

use crate::harness::*;
use crate::unopened::{rules, seal};

/// Temporary etcd server.
pub struct Etcd {
    pub server: EtcdServer,
    /// Timeout of this process.
    request_timeout: Duration,
}

impl Etcd {
    /// Starts a new server; `None` if etcd is not installed.
    pub fn new() -> Option<Self> {
        let server = EtcdServer::start_with(&["--unsafe-no-fsync", "--max-request-bytes=8000000"])?;
        Some(Self { server, request_timeout: Duration::from_secs(10) })
    }

    pub async fn try_open(&self, tune: &(dyn Fn(&mut Settings) + Sync)) -> Result<Process, EtcdError> {
        self.try_open_sealing(Seal::none(), tune).await
    }

    /// Returns the settings of a store in this server.
    pub fn settings(&self) -> EtcdSettings {
        let mut etcd = EtcdSettings::new(vec![self.server.url()]);
        etcd.connect_timeout = self.request_timeout;
        etcd.request_timeout = self.request_timeout;
        etcd
    }

    pub async fn try_open_sealing(
        &self,
        seal: Arc<Seal>,
        tune: &(dyn Fn(&mut Settings) + Sync),
    ) -> Result<Process, EtcdError> {
        let mut settings = Settings::new("");
        tune(&mut settings);
        open(self.settings(), settings, seal).await
    }

    /// Opens the store as one of several processes.
    pub async fn process(&self) -> Process {
        self.try_open(&|_| ()).await.unwrap()
    }
}

async fn open(etcd: EtcdSettings, settings: Settings, seal: Arc<Seal>) -> Result<Process, EtcdError> {
    let (metrics, tasks) = (Metrics::new(&Registry::new()), TaskSet::new());
    let store = EtcdStore::open(etcd, settings, codec(seal), metrics, &tasks).await?;
    Ok(Process { store: Arc::new(store), tasks })
}

/// Opens the store at these members with default settings.
pub async fn open_at(members: Vec<String>) -> Process {
    open(EtcdSettings::new(members), Settings::new(""), Seal::none()).await.unwrap()
}

/// Process that writes to the store.
pub struct Process {
    pub store: Arc<dyn Store>,
    pub tasks: TaskSet,
}

impl Backend for Etcd {
    fn open_with<'a>(&'a self, tune: &'a (dyn Fn(&mut Settings) + Sync)) -> BoxFuture<'a, Arc<dyn Store>> {
        Box::pin(async { self.try_open(tune).await.unwrap().store })
    }

    /// Counts the write of the identity record.
    fn initial_writes(&self) -> i64 {
        1
    }

    fn deletion_events_have_stored_state(&self) -> bool {
        true
    }
}

/// Returns the codec for the objects of tests.
pub fn codec(seal: Arc<Seal>) -> ObjectCodec {
    ObjectCodec { indexer: Arc::new(WithNodeName), layout: Arc::new(PlainLayout), seal }
}

/// Layout with plain JSON, and resources by group and name.
struct PlainLayout;

impl Layout for PlainLayout {
    fn path(&self, resource: &GroupResource) -> String {
        match &*resource.group {
            "" => resource.resource.clone(),
            group => format!("{group}/{}", resource.resource),
        }
    }

    fn locate<'p>(&self, path: &'p str) -> Option<(Resource, &'p str)> {
        let (first, rest) = path.split_once('/')?;
        if !first.contains('.') {
            return Some((Resource::new("", first), rest));
        }
        let (second, rest) = rest.split_once('/')?;
        Some((Resource::new(first, second), rest))
    }

    fn to_stored(&self, _: &GroupResource, json: &[u8]) -> Result<Vec<u8>, String> {
        Ok(json.to_vec())
    }

    fn to_json(&self, _: &GroupResource, stored: &[u8]) -> Result<Vec<u8>, String> {
        Ok(stored.to_vec())
    }

    fn time_to_live(&self, resource: &GroupResource) -> Option<Duration> {
        (resource.resource == "events").then_some(Duration::from_secs(1))
    }
}

fn operation(path: &str, precondition: Precondition, text: &str) -> Operation {
    Operation { key: key(path), precondition, change: Change::Put(value(&key(path), text)) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_writes_of_a_txn_have_one_revision_and_become_visible_together() {
    let Some(etcd) = Etcd::new() else { return };
    // Events outside the ring are read from etcd.
    for ring_events in [16_384, 1] {
        let store = etcd.open_with(&|settings| settings.ring_events = ring_events).await;
        let from = store.revision();
        let operations = ["a/1", "a/2", "b/1"].map(|path| operation(path, Precondition::Any, "x")).to_vec();
        let committed = commit(&*store, Txn { operations }).await.unwrap();
        let revisions = committed.records.iter().flatten().map(|record| record.revision);
        assert_eq!(revisions.collect::<Vec<_>>(), [committed.revision; 3]);
        let later = put(&*store, &key("a/1"), "y").await;
        let mut watch = store.watch(Scope::all(&config_maps()), from).unwrap();
        let events = take(&mut watch, 4).await;
        let received: Vec<_> =
            events.iter().map(|event| (event.record.key.path(), event.revision())).collect();
        let written = committed.revision;
        assert_eq!(received, [("a/1", written), ("a/2", written), ("b/1", written), ("a/1", later)]);
        assert!(watch.try_next().is_none());
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_operations_on_one_object_appear_as_the_last_one() {
    let Some(etcd) = Etcd::new() else { return };
    let store = etcd.open().await;
    let (a, from) = (key("a/1"), store.revision());
    let operations = vec![
        operation("a/1", Precondition::Absent, "1"),
        Operation {
            key: a.clone(),
            precondition: Precondition::Exists,
            change: Change::Delete(value(&a, "2")),
        },
        Operation { key: a.clone(), precondition: Precondition::Absent, change: Change::Check },
        operation("a/1", Precondition::Absent, "3"),
        operation("a/1", Precondition::Exists, "4"),
    ];
    commit(&*store, Txn { operations }).await.unwrap();
    let mut watch = store.watch(Scope::all(&config_maps()), from).unwrap();
    let events = take(&mut watch, 1).await;
    assert_eq!(text(&events[0].record), "4");
    let contradiction =
        vec![operation("a/2", Precondition::Absent, "1"), operation("a/2", Precondition::Absent, "2")];
    let refused = commit(&*store, Txn { operations: contradiction }).await;
    assert!(matches!(refused, Err(TxnError::Exists { .. })));
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn txns_beyond_the_limits_of_etcd_are_rejected_with_the_name_of_the_setting() {
    let Some(server) = EtcdServer::start() else { return };
    let etcd = Etcd { server, request_timeout: Duration::from_secs(10) };
    let store = etcd.open().await;
    let many = |count: usize| Txn {
        operations: (0..count).map(|n| operation(&format!("a/{n}"), Precondition::Absent, "x")).collect(),
    };
    commit(&*store, many(Txn::SHARED_OPERATIONS)).await.unwrap();
    let refused = commit(&*store, many(129)).await.unwrap_err();
    assert!(matches!(&refused, TxnError::TooLarge(why) if why.contains("--max-txn-ops")), "{refused}");
    let large = value(&key("b/1"), &"x".repeat(1_000_000));
    let refused = commit(&*store, Txn::create(key("b/1"), large)).await.unwrap_err();
    assert!(matches!(&refused, TxnError::TooLarge(why) if why.contains("--max-request-bytes")), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_on_one_etcd_see_each_others_writes_at_once() {
    let Some(etcd) = Etcd::new() else { return };
    let (one, other) = (etcd.process().await.store, etcd.process().await.store);
    assert_eq!(one.identity(), other.identity());
    let mut watch = other.watch(Scope::all(&config_maps()), other.revision()).unwrap();
    let mut written = Vec::new();
    for round in 0..50 {
        let (writer, reader) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let revision = put(&**writer, &key(&format!("a/{}", round % 3)), &round.to_string()).await;
        let snapshot = reader.snapshot(&config_maps()).await.unwrap();
        assert!(snapshot.revision() >= revision);
        assert_eq!(text(snapshot.get_path(&format!("a/{}", round % 3)).unwrap()), round.to_string());
        written.push(revision);
    }
    let revisions: Vec<_> = take(&mut watch, 50).await.iter().map(|event| event.revision()).collect();
    assert_eq!(revisions, written);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_etcd_fails_writes_and_loses_no_acknowledged_ones() {
    let Some(mut etcd) = Etcd::new() else { return };
    etcd.request_timeout = Duration::from_secs(2);
    let store = etcd.open().await;
    let mut watch = store.watch(Scope::all(&config_maps()), store.revision()).unwrap();
    put(&*store, &key("a/1"), "kept").await;
    etcd.server.kill();
    let lost = commit(&*store, Txn::create(key("a/2"), value(&key("a/2"), "x"))).await;
    assert!(matches!(lost, Err(TxnError::Unavailable(_) | TxnError::InDoubt(_))), "{lost:?}");
    assert!(matches!(store.snapshot(&config_maps()).await, Err(StoreError::Unavailable(_))));
    assert_eq!(lines(store.cached_snapshot(&config_maps()).unwrap().iter()).len(), 1);
    etcd.server.restart();
    let again = async {
        loop {
            let key = key("a/3");
            match commit(&*store, Txn::single(key.clone(), Precondition::Any, Change::Put(value(&key, "y"))))
                .await
            {
                Ok(committed) => break committed.revision,
                Err(TxnError::Unavailable(_) | TxnError::InDoubt(_)) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    };
    let again = tokio::time::timeout(Duration::from_secs(60), again).await.unwrap();
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    assert_eq!(text(snapshot.get_path("a/1").unwrap()), "kept");
    let received = take(&mut watch, 2).await;
    assert_eq!(received[0].record.key.path(), "a/1");
    let last = if received[1].revision() == again { again } else { take(&mut watch, 1).await[0].revision() };
    assert!(last <= again);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_that_has_lost_writes_begins_a_new_epoch() {
    let Some(etcd) = Etcd::new() else { return };
    let process = etcd.process().await;
    put(&*process.store, &key("a/1"), "kept").await;
    etcd.server.kill();
    etcd.server.save_copy("before");
    etcd.server.restart();
    let mut shown = process.store.watch(Scope::all(&config_maps()), process.store.revision()).unwrap();
    let other = etcd.process().await.store;
    put(&*other, &key("a/2"), "lost").await;
    take(&mut shown, 1).await;
    other.close().await;
    etcd.server.kill();
    etcd.server.restore_copy("before");
    etcd.server.restart();
    let failed = tokio::time::timeout(Duration::from_secs(60), process.tasks.failed()).await.unwrap();
    assert!(failed.to_string().contains("new epoch"), "{failed}");
    process.store.close().await;
    let reopened = etcd.process().await.store;
    assert_eq!(
        (reopened.identity().epoch, &reopened.identity().store_id),
        (2, &process.store.identity().store_id)
    );
    assert_eq!(reopened.snapshot(&config_maps()).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expiring_objects_are_deleted_with_events() {
    let Some(etcd) = Etcd::new() else { return };
    let store = etcd.open().await;
    let events = Resource::new("", "events");
    let mut watch = store.watch(Scope::all(&events), store.revision()).unwrap();
    let event = portico_store::Key::new(&events, "a", "e");
    put(&*store, &event, "x").await;
    put(&*store, &key("a/1"), "stays").await;
    let received = take(&mut watch, 2).await;
    assert_eq!(received[1].event_type, portico_store::EventType::Deleted);
    assert_eq!(text(&received[1].record), "x");
    assert!(store.snapshot(&events).await.unwrap().is_empty());
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_writes_of_other_processes_do_not_affect_other_objects() {
    let Some(etcd) = Etcd::new() else { return };
    let store = etcd.open().await;
    put(&*store, &key("a/1"), "1").await;
    store.snapshot(&config_maps()).await.unwrap();
    let mut watch = store.watch(Scope::all(&config_maps()), store.revision()).unwrap();
    // Key "/registry/configmaps/a/1", with a value that is not JSON.
    let broken = r#"{"key":"L3JlZ2lzdHJ5L2NvbmZpZ21hcHMvYS8x","value":"bm8="}"#;
    etcd.server.post("kv/put", broken).unwrap();
    let ended = watch.next().await;
    assert!(matches!(ended, Err(WatchError::Store(StoreError::Corrupt { .. }))), "{ended:?}");
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    assert!(snapshot.is_empty() && snapshot.unreadable("a/1").is_some());
    assert_eq!(store.condition().unreadable.len(), 1);
    let a = key("a/1");
    let put = Txn::single(a.clone(), Precondition::Exists, Change::Put(value(&a, "2")));
    assert!(matches!(commit(&*store, put).await, Err(TxnError::Unreadable { .. })));
    delete(&*store, &a).await;
    assert!(store.condition().unreadable.is_empty());
    commit(&*store, Txn::create(a.clone(), value(&a, "3"))).await.unwrap();
    // Keys that are not API objects, and other prefixes, are ignored.
    etcd.server.post("kv/put", r#"{"key":"L290aGVyL2E=","value":"bm8="}"#).unwrap();
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_etcd_is_reported_and_accepts_deletions() {
    let Some(server) = EtcdServer::start_with(&["--unsafe-no-fsync", "--quota-backend-bytes=2000000"]) else {
        return;
    };
    let etcd = Etcd { server, request_timeout: Duration::from_secs(10) };
    let store = etcd.open().await;
    let large = |n: usize| {
        let key = key(&format!("a/{n}"));
        let value: Value = value(&key, &"x".repeat(50_000));
        Txn::create(key, value)
    };
    let mut n = 0;
    let full = loop {
        n += 1;
        match commit(&*store, large(n)).await {
            Ok(_) if n < 100 => {}
            answer => break answer,
        }
    };
    assert!(matches!(&full, Err(TxnError::Full(_))), "{full:?}");
    // The write that exhausts the space is committed and acknowledged nevertheless.
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), n - 1);
    delete(&*store, &key("a/1")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_sealed_by_other_processes_become_readable_with_their_key() {
    let Some(etcd) = Etcd::new() else { return };
    let follower_seal = seal(&["b"]);
    let behind = etcd.try_open_sealing(follower_seal.clone(), &|_| ()).await.unwrap();
    let ahead = etcd.try_open_sealing(seal(&["a", "b"]), &|_| ()).await.unwrap();
    let store = &*behind.store;
    put(store, &key("x/rest"), "0").await;
    put(&*ahead.store, &key("x/new"), "1").await;
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    assert_eq!(snapshot.iter().map(|record| record.key.path()).collect::<Vec<_>>(), ["x/rest"]);
    assert!(snapshot.unreadable("x/new").unwrap().is_sealed());
    let mut watch = store.watch(Scope::all(&config_maps()), snapshot.revision()).unwrap();
    follower_seal.replace(rules(&["b", "a"]));
    let ended = tokio::time::timeout(WAIT_LIMIT, watch.next()).await.unwrap();
    assert!(matches!(ended, Err(WatchError::Compacted { .. })), "{ended:?}");
    assert_eq!(store.snapshot(&config_maps()).await.unwrap().len(), 2);
    assert!(store.condition().unreadable.is_empty());
    // Values that were not sealed with the first key are stale.
    let stale = store.stale_seals(&config_maps()).await.unwrap();
    assert_eq!((stale.objects, stale.stale.len(), stale.unreadable), (2, 1, 0));
    assert_eq!(store.sealed_resources(), [config_maps()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_queries_the_revision_again_after_a_conflicting_write() {
    let Some(etcd) = Etcd::new() else { return };
    let (first, second) = (etcd.process().await, etcd.process().await);
    check_revision_query_after_conflict(&*first.store, &*second.store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_of_unchanged_resources_resume() {
    let Some(etcd) = Etcd::new() else { return };
    let before = etcd.process().await;
    let from = put(&*before.store, &key("a/1"), "1").await;
    let last = put(&*before.store, &key("a/1"), "2").await;
    // The new process has seen none of these writes, and waits one second for etcd.
    let etcd = Etcd { request_timeout: Duration::from_secs(1), ..etcd };
    let store = etcd.process().await.store;
    let watch_without_events = async || {
        let mut watch = store.watch(Scope::all(&leases()), from).unwrap();
        let nothing = tokio::time::timeout(Duration::from_secs(3), watch.next()).await;
        assert!(nothing.is_err(), "{nothing:?}");
        assert!(watch.progress() >= last, "{} of {last}", watch.progress());
    };
    futures::future::join_all((0..100).map(|_| watch_without_events())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_with_events_in_memory_continue_after_a_compaction() {
    let Some(etcd) = Etcd::new() else { return };
    let frequent = |settings: &mut Settings| settings.compaction_interval = Duration::from_millis(20);
    let store = etcd.try_open(&frequent).await.unwrap().store;
    let first = put(&*store, &key("a/1"), "1").await;
    let last = put(&*store, &key("a/1"), "2").await;
    etcd.process().await.store.compact(last).await.unwrap();
    portico_tests::wait_until("the compaction is not detected", async || store.compacted() >= last).await;
    let mut watch = store.watch(Scope::all(&config_maps()), first).unwrap();
    assert_eq!(take(&mut watch, 1).await[0].revision(), last);
    // etcd no longer has that state.
    let past = store.get_at(&key("a/1"), first).await;
    assert!(matches!(past, Err(StoreError::Compacted { .. })), "{past:?}");
    let before = store.watch(Scope::all(&config_maps()), 1);
    assert!(matches!(before, Err(WatchError::Compacted { .. })));
}
