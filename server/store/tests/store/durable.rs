//! Tests of PostgreSQL with custom settings: acknowledged writes persist, and history is compacted nevertheless.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portico_store::{
    Migration, PostgresError, PostgresSource, PostgresSwitch, PostgresTarget, Scope, Seal, Store, WatchError,
    migrate,
};
use portico_tests::wait_until;

use crate::harness::*;
use crate::postgres::Postgres;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_with_asynchronous_commits_is_set_to_synchronous_ones() {
    const NOTE: &str = "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        INSERT INTO noted VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$";
    for (setting, expected) in [("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")] {
        let Some(database) = Postgres::direct() else { return };
        database.set("synchronous_commit", setting);
        let process = database.process(&|_| ()).await;
        database.psql("CREATE TABLE noted (setting text)");
        database.psql(NOTE);
        database.psql("CREATE TRIGGER note AFTER INSERT ON log FOR EACH ROW EXECUTE FUNCTION note()");
        put(&*process.store, &key("a/1"), "0").await;
        assert_eq!(database.psql("SELECT setting FROM noted"), expected, "{setting}");
    }
}

/// Function that precedes PostgreSQL's own in the search path, and fails in a transaction with strict isolation.
const STRICT: &str = "CREATE FUNCTION shadow.octet_length(bytea) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN \
    IF current_setting('transaction_isolation') <> 'read committed' THEN RAISE EXCEPTION 'strict isolation'; END IF; \
    RETURN pg_catalog.octet_length($1); END $$";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_are_not_cancelled_in_a_database_with_strict_isolation() {
    for database in [Postgres::direct(), Postgres::pooled().await] {
        let Some(database) = database else { continue };
        database.psql("CREATE SCHEMA shadow");
        database.psql(STRICT);
        database.set("search_path", "shadow, public, pg_catalog");
        database.set("default_transaction_isolation", "serializable");
        database.terminate_connections();
        let store = database.process(&|settings| settings.ring_events = 0).await.store;
        let first = put(&*store, &key("a/1"), "1").await;
        let second = put(&*store, &key("a/1"), "2").await;
        let mut watch = store.watch(portico_store::Scope::all(&config_maps()), first).unwrap();
        assert_eq!(take(&mut watch, 1).await[0].revision(), second);
    }
}

/// Changes to a database as after a failover to a standby that was behind: the last write is missing or replaced by another one.
const FAILOVERS: [&str; 2] = [
    "WITH gone AS (DELETE FROM log WHERE revision = (SELECT revision FROM meta) RETURNING revision) \
     UPDATE meta SET revision = gone.revision - 1, commit_id = (SELECT l.commit_id FROM log l WHERE l.revision = gone.revision - 1) FROM gone",
    "WITH other AS (UPDATE log SET commit_id = commit_id + 1 WHERE revision = (SELECT revision FROM meta) RETURNING commit_id) \
     UPDATE meta SET commit_id = other.commit_id FROM other",
];

/// Opens a database in a process with a data folder.
async fn open_in(database: &Postgres<'_>, folder: &Path) -> Arc<dyn Store> {
    let path = folder.join("portico.db");
    database.process(&move |settings| settings.path.clone_from(&path)).await.store
}

/// Writes three times in a process and stops it. Returns the last revision.
async fn write_and_stop(database: &Postgres<'_>, folder: &Path) -> i64 {
    let store = open_in(database, folder).await;
    let mut last = 0;
    for n in 0..3 {
        last = put(&*store, &key("a/1"), &n.to_string()).await;
    }
    store.close().await;
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_lost_writes_while_no_process_ran_begins_one_new_epoch() {
    for failover in FAILOVERS {
        let Some(database) = Postgres::direct() else { return };
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let follower = open_in(&database, folders[1].path()).await;
        let last = write_and_stop(&database, folders[0].path()).await;
        follower.wait_for_revision(last).await.unwrap();
        follower.close().await;
        database.psql(failover);
        let [store, other] = [0, 1].map(|at| open_in(&database, folders[at].path()));
        let (store, other) = tokio::join!(store, other);
        assert_eq!((store.identity().epoch, other.identity()), (2, store.identity()));
        assert!(store.revision() > last + 1_000_000);
        let watch = store.watch(Scope::all(&config_maps()), last);
        assert!(matches!(watch, Err(WatchError::Compacted { .. })));
        let written = put(&*store, &key("a/1"), "new").await;
        other.wait_for_revision(written).await.unwrap();
        for store in [store, other] {
            store.close().await;
        }
        assert_eq!(open_in(&database, folders[0].path()).await.identity().epoch, 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_record_of_the_last_revision_begins_a_new_epoch_and_an_unreadable_one_is_reported() {
    let Some(database) = Postgres::direct() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("postgres.mark");
    write_and_stop(&database, folder.path()).await;
    std::fs::write(&mark, "{").unwrap();
    for _ in 0..2 {
        let store = open_in(&database, folder.path()).await;
        assert_eq!(store.identity().epoch, 2);
        store.close().await;
    }
    std::fs::remove_file(&mark).unwrap();
    std::fs::create_dir(&mark).unwrap();
    let settings = settings_at(folder.path().join("portico.db"));
    let error = database.try_open(database.settings(), settings, Seal::none()).await.err().unwrap();
    assert!(matches!(&error, PostgresError::File { path, .. } if *path == mark), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_process_records_its_revision() {
    let Some(database) = Postgres::direct() else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = open_in(&database, folder.path()).await;
    let last = put(&*store, &key("a/1"), "1").await;
    let mark = || std::fs::read_to_string(folder.path().join("postgres.mark")).unwrap_or_default();
    wait_until("the revision is not recorded", async || mark().contains(&format!(r#""revision":{last},"#)))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_moved_to_another_database_stays_in_its_epoch() {
    let (Some(from), Some(to)) = (Postgres::direct(), Postgres::direct()) else { return };
    let folder = tempfile::tempdir().unwrap();
    write_and_stop(&from, folder.path()).await;
    let source = PostgresSource::open(from.settings(), Seal::none()).await.unwrap();
    let switch = PostgresSwitch(from.settings());
    let migration = Migration { source: &source, switch: &switch, reason: "migrated", history: false };
    let target = Box::new(PostgresTarget::open(to.settings(), false).await.unwrap());
    assert!(!migrate(&migration, target, &mut |_| ()).await.unwrap().is_new_epoch);
    let store = open_in(&to, folder.path()).await;
    assert_eq!(store.identity().epoch, 1);
    put(&*store, &key("a/1"), "new").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_that_differs_from_its_checksum_is_unreadable_in_postgres() {
    const CHANGE: &str = "UPDATE log SET value = convert_to(replace(convert_from(value, 'SQL_ASCII'), \
        '\"text\":\"right\"', '\"text\":\"wrong\"'), 'SQL_ASCII')";
    let Some(database) = Postgres::direct() else { return };
    let process = database.process(&|_| ()).await;
    let first = put(&*process.store, &key("a/1"), "right").await;
    put(&*process.store, &key("a/2"), "right").await;
    database.psql(&format!("{CHANGE} WHERE name = '1'"));
    // Simulates an older version without checksums.
    database.psql(&format!("{CHANGE}, checksum = NULL WHERE name = '2'"));
    let other = database.process(&|_| ()).await.store;
    let snapshot = other.snapshot(&config_maps()).await.unwrap();
    assert_eq!(snapshot.unreadable("a/1").unwrap().reason(), "checksum mismatch");
    assert_eq!(lines(snapshot.iter()), [format!("a/2@{}=wrong", first + 1)]);
    let source = other.copy_source();
    let copied = source.states(first + 1, None).await.unwrap_err().to_string();
    assert!(copied.contains("a/1: checksum mismatch"), "{copied}");
}

/// Function that precedes PostgreSQL's own in the search path, and fails in the statement that computes the total size.
const UNCOUNTABLE: &str = "CREATE FUNCTION shadow.octet_length(bytea) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN \
    IF current_query() LIKE 'SELECT coalesce(sum(bytes)%' THEN RAISE EXCEPTION 'timeout'; END IF; \
    RETURN pg_catalog.octet_length($1); END $$";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_is_compacted_by_age_if_its_size_cannot_be_computed() {
    let Some(database) = Postgres::direct() else { return };
    database.psql("CREATE SCHEMA shadow");
    database.psql(UNCOUNTABLE);
    database.set("search_path", "shadow, public, pg_catalog");
    let tune = |settings: &mut portico_store::Settings| {
        settings.history_retention = Duration::ZERO;
        settings.compaction_interval = Duration::from_millis(100);
    };
    let store = database.process(&tune).await.store;
    let last = put(&*store, &key("a/1"), "0").await;
    wait_until("history is not compacted", async || store.compacted() >= last).await;
}
