//! Random operations, compared with a simple model: a list of all states.

use std::collections::BTreeMap;

use portico_store::{
    Change, ListAt, Operation, Precondition, Scope, Store, StoreError, Txn, TxnError, WatchError,
};
use proptest::prelude::*;

use crate::harness::*;

type Paths = [&'static str; 6];

/// Paths of random operations; a resource is either namespaced or cluster-scoped.
const NAMESPACED: Paths = ["a/1", "a/2", "a-b/1", "b/1", "b/1.a", "b/1-a"];
const CLUSTER_SCOPED: Paths = ["a", "a-b", "a.b", "b", "c", "d"];
const OWNERS: [&str; 3] = ["o1", "o2", "o3"];

#[derive(Clone, Debug)]
enum TestStep {
    Commit(Vec<Vec<TestOperation>>),
    Compact(u8),
    Reopen,
}

#[derive(Clone, Debug)]
struct TestOperation {
    path: usize,
    expect: TestPrecondition,
    change: TestChange,
}

#[derive(Clone, Debug)]
enum TestPrecondition {
    Absent,
    Exists,
    Any,
    /// The current revision minus this number.
    Current(i64),
}

#[derive(Clone, Debug)]
enum TestChange {
    Put(usize),
    Delete,
    Check,
}

fn op() -> impl Strategy<Value = TestOperation> {
    let expect = prop_oneof![
        1 => Just(TestPrecondition::Absent),
        1 => Just(TestPrecondition::Exists),
        4 => Just(TestPrecondition::Any),
        3 => Just(TestPrecondition::Current(0)),
        1 => Just(TestPrecondition::Current(1)),
    ];
    let change = prop_oneof![4 => (0..8usize).prop_map(TestChange::Put), 2 => Just(TestChange::Delete), 1 => Just(TestChange::Check)];
    (0..NAMESPACED.len(), expect, change).prop_map(|(path, expect, change)| TestOperation {
        path,
        expect,
        change,
    })
}

fn step() -> impl Strategy<Value = TestStep> {
    let txn = prop::collection::vec(op(), 0..4);
    prop_oneof![
        12 => prop::collection::vec(txn, 1..5).prop_map(TestStep::Commit),
        1 => any::<u8>().prop_map(TestStep::Compact),
        1 => Just(TestStep::Reopen),
    ]
}

type ModelState = BTreeMap<&'static str, (i64, String, Vec<&'static str>)>;

/// Expected content of the store: the state after every revision.
struct Model {
    paths: Paths,
    /// `states[r]` is the state at revision `r + 1`.
    states: Vec<ModelState>,
    log: Vec<String>,
    compacted: i64,
}

impl Model {
    fn revision(&self) -> i64 {
        self.states.len() as i64
    }

    fn current(&self) -> &ModelState {
        self.states.last().unwrap()
    }

    /// Returns the Txn for the store and its expected result. Applies it to the model if it should succeed.
    fn check(&mut self, ops: &[TestOperation]) -> (Txn, Result<(), &'static str>) {
        let operations = ops.iter().enumerate().map(|(n, op)| self.operation(op, n)).collect();
        let (states, log) = (self.states.len(), self.log.len());
        let outcome = ops.iter().enumerate().try_for_each(|(n, op)| self.apply(op, n, states));
        if outcome.is_err() {
            self.states.truncate(states);
            self.log.truncate(log);
        }
        (Txn { operations }, outcome)
    }

    fn content(&self, op: &TestOperation, n: usize, start: usize) -> (String, Vec<&'static str>) {
        let TestChange::Put(owners) = op.change else { return ("gone".to_owned(), Vec::new()) };
        let owners = (0..3).filter(|bit| owners >> bit & 1 == 1).map(|bit| OWNERS[bit]).collect();
        (format!("{start}.{n}"), owners)
    }

    fn operation(&self, op: &TestOperation, n: usize) -> Operation {
        let key = key(self.paths[op.path]);
        let current = self.current().get(self.paths[op.path]).map_or(999, |(revision, ..)| *revision);
        let precondition = match op.expect {
            TestPrecondition::Absent => Precondition::Absent,
            TestPrecondition::Exists => Precondition::Exists,
            TestPrecondition::Any => Precondition::Any,
            TestPrecondition::Current(less) => Precondition::Revision(current - less),
        };
        let (text, owners) = self.content(op, n, self.states.len());
        let change = match op.change {
            TestChange::Put(_) => Change::Put(value_with_owners(&key, &text, &owners)),
            TestChange::Delete => Change::Delete(value_with_owners(&key, &text, &owners)),
            TestChange::Check => Change::Check,
        };
        Operation { key, precondition, change }
    }

    fn apply(&mut self, op: &TestOperation, n: usize, start: usize) -> Result<(), &'static str> {
        let path = self.paths[op.path];
        let mut state = self.current().clone();
        let before = state.get(path).cloned();
        let expected = self.states[start - 1].get(path).map_or(999, |(revision, ..)| *revision);
        match (&op.expect, &before) {
            (TestPrecondition::Absent, Some(_)) => return Err("exists"),
            (TestPrecondition::Exists | TestPrecondition::Current(_), None) => return Err("missing"),
            (TestPrecondition::Current(less), Some((revision, ..))) if expected - less != *revision => {
                return Err("conflict");
            }
            _ => {}
        }
        let revision = self.revision() + 1;
        let (text, owners) = self.content(op, n, start);
        let before = before.map(|(revision, text, _)| format!("{text}@{revision}"));
        let kind = match (&op.change, &before) {
            (TestChange::Check, _) | (TestChange::Delete, None) => return Ok(()),
            (TestChange::Put(_), None) => "Added",
            (TestChange::Put(_), Some(_)) => "Modified",
            (TestChange::Delete, Some(_)) => "Deleted",
        };
        self.log.push(format!("{kind} {path}@{revision}={text} was {before:?}"));
        match op.change {
            TestChange::Put(_) => state.insert(path, (revision, text, owners)),
            _ => state.remove(path),
        };
        self.states.push(state);
        Ok(())
    }
}

fn outcome(result: &Result<portico_store::CommittedTxn, TxnError>) -> Result<(), &'static str> {
    match result {
        Ok(_) => Ok(()),
        Err(TxnError::Exists { .. }) => Err("exists"),
        Err(TxnError::NotFound { .. }) => Err("missing"),
        Err(TxnError::Conflict { .. }) => Err("conflict"),
        Err(error) => panic!("{error}"),
    }
}

fn state_lines(state: &ModelState) -> Vec<String> {
    let mut lines: Vec<_> =
        state.iter().map(|(path, (revision, text, _))| format!("{path}@{revision}={text}")).collect();
    lines.sort_by_key(|line| line.split('@').next().unwrap().to_owned());
    lines
}

async fn compare(store: &dyn Store, model: &Model) {
    assert_eq!(store.revision(), model.revision());
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    assert_eq!(lines(snapshot.iter()), state_lines(model.current()));
    for path in model.paths {
        let found = store.find(&key(path)).await.unwrap().object;
        let expected = model.current().get(path).map(|(revision, text, _)| (*revision, text.clone()));
        assert_eq!(found.map(Result::unwrap).map(|record| (record.revision, text(&record))), expected);
    }
    for owner in OWNERS {
        let mut expected: Vec<_> = model
            .current()
            .iter()
            .filter(|(_, (_, _, owners))| owners.contains(&owner))
            .map(|(path, _)| key(path))
            .collect();
        expected.sort();
        assert_eq!(store.dependents(owner).await.unwrap(), expected);
    }
    for revision in 1..=model.revision() {
        let query = ListAt {
            scope: Scope::all(&config_maps()),
            revision,
            after: None,
            limit: None,
            exact_count: true,
        };
        match store.list_at(query).await {
            Ok(page) => {
                assert_eq!(
                    lines(&page.records),
                    state_lines(&model.states[revision as usize - 1]),
                    "at {revision}"
                );
            }
            Err(StoreError::Compacted { oldest }) => {
                assert!(revision < oldest && oldest == model.compacted, "{revision} < {oldest}");
            }
            Err(error) => panic!("{error}"),
        }
    }
    for from in 1..=model.revision() {
        compare_watch(store, model, from).await;
    }
}

async fn compare_watch(store: &dyn Store, model: &Model, from: i64) {
    let mut watch = match store.watch(Scope::all(&config_maps()), from) {
        Ok(watch) => watch,
        Err(WatchError::Compacted { .. }) => {
            assert!(from < model.compacted);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let events = take(&mut watch, usize::try_from(model.revision() - from).unwrap()).await;
    let reported: Vec<String> = events
        .iter()
        .map(|event| {
            let before =
                event.previous.as_ref().map(|record| format!("{}@{}", text(record), record.revision));
            let record = &event.record;
            let (kind, path) = (event.event_type, record.key.path());
            format!("{kind:?} {path}@{}={} was {before:?}", record.revision, text(record))
        })
        .collect();
    assert_eq!(reported, model.log[from as usize - 1..]);
}

async fn run(steps: Vec<TestStep>, ring: usize, paths: Paths, cache: Option<u64>) {
    let backend = Sqlite::new();
    let tune = |settings: &mut portico_store::Settings| {
        (settings.ring_events, settings.cache_max_bytes) = (ring, cache);
    };
    let open = async || backend.open_with(&tune).await;
    let mut store = open().await;
    let mut model = Model { paths, states: vec![ModelState::new()], log: Vec::new(), compacted: 0 };
    for step in steps {
        match step {
            TestStep::Commit(txns) => {
                let mut sent = Vec::new();
                let mut expected = Vec::new();
                // The store validates the Txns of a call in order, like the model; preconditions refer to the
                // state before the call.
                for ops in txns {
                    let (txn, outcome) = model.check(&ops);
                    sent.push(txn);
                    expected.push(outcome);
                }
                let results = store.commit(sent).await;
                assert_eq!(results.iter().map(outcome).collect::<Vec<_>>(), expected);
            }
            TestStep::Compact(part) => {
                let revision = model.revision() * i64::from(part) / 255;
                model.compacted = model.compacted.max(revision);
                assert_eq!(store.compact(revision).await.unwrap(), model.compacted);
            }
            TestStep::Reopen => {
                store.close().await;
                drop(store);
                store = open().await;
            }
        }
    }
    compare(&*store, &model).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_behaves_as_a_list_of_states(
        steps in prop::collection::vec(step(), 1..24),
        ring in 1..40usize,
        namespaced in any::<bool>(),
        // Everything, nothing, or about two objects fit into the cache, so that the resource is evicted and reloaded.
        cache in prop_oneof![Just(None), Just(Some(1)), Just(Some(1_600))],
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let paths = if namespaced { NAMESPACED } else { CLUSTER_SCOPED };
        runtime.block_on(run(steps, ring, paths, cache));
    }
}
