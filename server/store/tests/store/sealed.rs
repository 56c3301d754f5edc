//! Tests of values that are sealed in the database: content of the files, and readability with different keys.

use std::path::Path;
use std::sync::Arc;

use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_store::{
    Backup, BackupFile, BackupPart, CipherKey, CipherKind, CopyError, Doctor, ListAt, MetadataIndexer,
    Metrics, Provider, Scope, Seal, SealMetrics, SealRules, SqliteSource, SqliteStore, SqliteTarget, Store,
    Txn, back_up, restore_from,
};

use crate::copies::restore_options;
use crate::harness::*;

/// Text in every value of these tests.
const SECRET: &str = "the-plain-text-of-a-secret";

pub fn keys(name: &str) -> Arc<Provider> {
    let key = CipherKey::aes_gcm(&[name.as_bytes()[0]; 32]).unwrap();
    Arc::new(Provider::Keys(CipherKind::AesGcm, vec![(name.to_owned(), key)]))
}

fn identity() -> Arc<Provider> {
    Arc::new(Provider::Identity)
}

pub fn seal(providers: &[Arc<Provider>]) -> Arc<Seal> {
    let mut rules = SealRules::default();
    rules.add("configmaps", providers).unwrap();
    Seal::new(rules, SealMetrics::new(&Registry::new(), "server"))
}

pub async fn open(backend: &Sqlite, seal: Arc<Seal>) -> SqliteStore {
    let (settings, metrics) = (settings_at(backend.path()), Metrics::new(&Registry::new()));
    let indexer = Arc::new(MetadataIndexer);
    SqliteStore::open_sealed(settings, indexer, seal, metrics, &TaskSet::new()).await.unwrap()
}

/// Returns the files under a folder that contain the plain text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
            continue;
        }
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            // SQLite removes its journals during the scan; removed files contain nothing.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Returns the names of readable objects, and the number of unreadable ones.
async fn readable_objects(store: &SqliteStore) -> (Vec<String>, usize) {
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    let names = snapshot.iter().map(|record| record.key.path().to_owned()).collect();
    (names, snapshot.unreadable_in(None).count())
}

async fn files_and_backups_contain_no_plain_text_of_sealed_values() {
    let backend = Sqlite::new();
    let folder = backend.path().parent().unwrap().to_owned();
    let store = open(&backend, seal(&[keys("a")])).await;
    for name in ["x/1", "x/2"] {
        put(&store, &key(name), SECRET).await;
        put(&store, &key(name), &format!("{SECRET}-again")).await;
    }
    let deleted = store.snapshot(&config_maps()).await.unwrap().get(&key("x/1")).unwrap().clone();
    commit(&store, Txn::delete(key("x/1"), deleted.revision, deleted.value.clone())).await.unwrap();
    let copy = folder.join("copy.db");
    copy_database(&backend.path(), &copy).await;
    assert_eq!(files_with(&folder, SECRET), Vec::<String>::new(), "while the store is open");
    let compacted = store.revision();
    store.compact(compacted).await.unwrap();
    store.close().await;
    assert_eq!(files_with(&folder, SECRET), Vec::<String>::new(), "after the store is closed");
    let plain = Sqlite::new();
    let store = plain.open().await;
    put(&*store, &key("x/1"), SECRET).await;
    store.close().await;
    assert!(!files_with(plain.path().parent().unwrap(), SECRET).is_empty(), "the search finds plain text");
}

async fn sealed_values_are_read_back_with_all_their_states() {
    let backend = Sqlite::new();
    let store = open(&backend, seal(&[keys("a")])).await;
    let created = put(&store, &key("x/1"), "one").await;
    put(&store, &key("x/1"), "two").await;
    put(&store, &key("x/2"), "other").await;
    store.close().await;
    let store = open(&backend, seal(&[keys("a")])).await;
    assert_eq!(readable_objects(&store).await, (vec!["x/1".to_owned(), "x/2".to_owned()], 0));
    let past = store.get_at(&key("x/1"), created).await.unwrap().unwrap();
    assert_eq!(text(&past), "one");
    let query = ListAt {
        scope: Scope::all(&config_maps()),
        revision: created,
        after: None,
        limit: None,
        exact_count: true,
    };
    assert_eq!(lines(&store.list_at(query).await.unwrap().records), [format!("x/1@{created}=one")]);
    let mut watch = store.watch(Scope::all(&config_maps()), created).unwrap();
    let events = take(&mut watch, 2).await;
    assert_eq!(text(events[0].previous.as_ref().unwrap()), "one");
}

async fn plain_values_stay_readable_until_they_are_sealed() {
    let backend = Sqlite::new();
    let store = backend.open().await;
    put(&*store, &key("x/1"), SECRET).await;
    put(&*store, &key("x/2"), SECRET).await;
    store.close().await;
    let store = open(&backend, seal(&[keys("a"), identity()])).await;
    assert_eq!(readable_objects(&store).await.0.len(), 2);
    assert_eq!(store.sealed_resources(), [config_maps()]);
    let found = store.stale_seals(&config_maps()).await.unwrap();
    assert_eq!((found.objects, found.stale.len(), found.unreadable), (2, 2, 0));
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    for (key, revision) in found.stale {
        let value = snapshot.get(&key).unwrap().value.clone();
        commit(&store, Txn::update(key, revision, value)).await.unwrap();
    }
    assert!(store.stale_seals(&config_maps()).await.unwrap().stale.is_empty());
    store.compact(store.revision()).await.unwrap();
    store.close().await;
    assert_eq!(files_with(backend.path().parent().unwrap(), SECRET), Vec::<String>::new());
}

async fn sealed_objects_without_a_key_do_not_affect_others_and_become_readable_with_the_key() {
    let backend = Sqlite::new();
    let store = open(&backend, seal(&[keys("a")])).await;
    put(&store, &key("x/old"), "one").await;
    store.close().await;
    let store = open(&backend, seal(&[keys("b")])).await;
    assert_eq!(readable_objects(&store).await, (Vec::new(), 1));
    put(&store, &key("x/new"), "two").await;
    assert_eq!(readable_objects(&store).await, (vec!["x/new".to_owned()], 1));
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    let unreadable = snapshot.unreadable("x/old").unwrap();
    assert!(unreadable.is_sealed());
    assert_eq!(unreadable.reason(), "no matching key was found for the provided AES transformer");
    store.close().await;
    let store = open(&backend, seal(&[keys("b"), keys("a")])).await;
    assert_eq!(readable_objects(&store).await, (vec!["x/new".to_owned(), "x/old".to_owned()], 0));
}

async fn a_doctor_without_keys_removes_no_sealed_objects() {
    let backend = Sqlite::new();
    let store = open(&backend, seal(&[keys("a")])).await;
    let owned = value_with_owners(&key("x/1"), "one", &["uid-owner"]);
    commit(&store, Txn::create(key("x/1"), owned)).await.unwrap();
    store.close().await;
    let doctor = || Doctor::new(backend.path(), &MetadataIndexer);
    let examined = doctor().examine().await.unwrap();
    assert!(examined.is_sound(), "{:?}", examined.findings);
    assert_eq!((examined.objects, examined.sealed), (1, 1));
    assert!(doctor().remove_unreadable().await.unwrap().is_empty());
    let with_keys = doctor().with_seal(seal(&[keys("a")])).examine().await.unwrap();
    assert!(with_keys.is_sound(), "{:?}", with_keys.findings);
    assert_eq!((with_keys.objects, with_keys.sealed), (1, 0));
    assert!(!doctor().with_seal(seal(&[keys("b")])).examine().await.unwrap().is_sound());
}

async fn sealed_terminating_objects_are_found() {
    let backend = Sqlite::new();
    let store = open(&backend, seal(&[keys("a")])).await;
    put(&store, &key("x/1"), "one").await;
    let value = value(&key("x/2"), "two");
    let json = String::from_utf8(value.json().to_vec()).unwrap();
    let marked = json.replacen(r#""labels""#, r#""deletionTimestamp":"2026-01-01T00:00:00Z","labels""#, 1);
    let indexed = portico_store::Indexer::index(&MetadataIndexer, &config_maps(), marked.as_bytes()).unwrap();
    let marked = portico_store::Value::new(marked.into_bytes(), indexed);
    commit(&store, Txn::create(key("x/2"), marked)).await.unwrap();
    store.close().await;
    let store = open(&backend, seal(&[keys("a")])).await;
    assert_eq!(store.terminating_keys().await.unwrap(), [key("x/2")]);
}

async fn a_portable_backup_contains_sealed_values_and_needs_no_key() {
    let (backend, key) = (Sqlite::new(), key("a/1"));
    let store = open(&backend, seal(&[keys("a")])).await;
    commit(&store, Txn::create(key.clone(), value_with_owners(&key, SECRET, &["uid-owner"]))).await.unwrap();
    let (revision, store_id) = (store.revision(), store.identity().store_id.clone());
    let file = backend.path().with_file_name("backup");
    let backup = Backup { file: &file, revision: Some(revision), history: true, now: 1, portico: "test" };
    let without_key = SqliteSource::open(&backend.path(), Seal::none()).await.unwrap();
    back_up(&without_key, &backup).await.unwrap();
    let part = BackupFile::open(&file).unwrap().next_part().unwrap();
    let Some(BackupPart::States(states)) = part else { panic!("{part:?}") };
    assert_eq!(states.len(), 1);
    assert!(!states[0].value.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()));
    assert_eq!(states[0].owners.as_deref(), Some(&["uid-owner".to_owned()][..]));

    let target_backend = Sqlite::new();
    let target = SqliteTarget::open(&target_backend.path(), &store_id, false).await.unwrap();
    restore_from(&file, Box::new(target), restore_options(1)).await.unwrap();
    assert_eq!(files_with(target_backend.path().parent().unwrap(), SECRET), Vec::<String>::new());
    let restored = open(&target_backend, seal(&[keys("a")])).await;
    assert_eq!(restored.dependents("uid-owner").await.unwrap(), std::slice::from_ref(&key));
    assert_eq!(text(restored.snapshot(key.resource()).await.unwrap().get(&key).unwrap()), SECRET);

    // The owners of a superseded state are only in its value.
    std::fs::remove_file(&file).unwrap();
    commit(&store, Txn::update(key.clone(), revision, value(&key, SECRET))).await.unwrap();
    let unknown = back_up(&without_key, &backup).await;
    assert!(matches!(&unknown, Err(CopyError::Owners(found)) if *found == key), "{unknown:?}");
    let with_key = SqliteSource::open(&backend.path(), seal(&[keys("a")])).await.unwrap();
    back_up(&with_key, &backup).await.unwrap();
    let second_backup = BackupFile::open(&file).unwrap().next_part().unwrap();
    assert_eq!(second_backup, Some(BackupPart::States(states)));
}

async fn past_states_stay_sealed_in_backups_and_are_read_with_their_key_after_a_restore() {
    let (backend, key) = (Sqlite::new(), key("a/1"));
    let store = open(&backend, seal(&[keys("a")])).await;
    put(&store, &key, SECRET).await;
    let last = put(&store, &key, "later").await;
    let store_id = store.identity().store_id.clone();
    store.close().await;
    // Effect of `--history-retention`.
    crate::unreadable::execute(&backend, "INSERT INTO archived SELECT id, 0 FROM resource").await;
    let file = backend.path().with_file_name("backup");
    let without_key = SqliteSource::open(&backend.path(), Seal::none()).await.unwrap();
    let backup = Backup { file: &file, revision: None, history: true, now: 1, portico: "test" };
    assert_eq!(back_up(&without_key, &backup).await.unwrap().counts.past_states, Some(1));
    let target_backend = Sqlite::new();
    let target = SqliteTarget::open(&target_backend.path(), &store_id, false).await.unwrap();
    restore_from(&file, Box::new(target), restore_options(1)).await.unwrap();
    assert_eq!(files_with(target_backend.path().parent().unwrap(), SECRET), Vec::<String>::new());
    let restored = open(&target_backend, seal(&[keys("a")])).await;
    let query = portico_store::PastQuery { key, before: Some(last), limit: 5 };
    let states = restored.past_states(query).await.unwrap().states;
    assert_eq!(states.iter().map(|state| text(state.state.as_ref().unwrap())).collect::<Vec<_>>(), [SECRET]);
}

crate::cached_and_uncached! {
    files_and_backups_contain_no_plain_text_of_sealed_values,
    past_states_stay_sealed_in_backups_and_are_read_with_their_key_after_a_restore,
    sealed_values_are_read_back_with_all_their_states,
    plain_values_stay_readable_until_they_are_sealed,
    sealed_objects_without_a_key_do_not_affect_others_and_become_readable_with_the_key,
    a_doctor_without_keys_removes_no_sealed_objects,
    sealed_terminating_objects_are_found,
    a_portable_backup_contains_sealed_values_and_needs_no_key,
}
