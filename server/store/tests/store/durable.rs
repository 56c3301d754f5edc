//! PostgreSQL with settings of its owner: acknowledged writes stay, and history is forgotten nevertheless.

use std::time::Duration;

use portico_tests::until;

use crate::harness::*;
use crate::postgres::Postgres;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_acknowledges_before_it_is_durable_is_told_otherwise() {
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

/// Comes before PostgreSQL's own function in the search path, and fails in a transaction that others may end.
const STRICT: &str = "CREATE FUNCTION shadow.octet_length(bytea) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN \
    IF current_setting('transaction_isolation') <> 'read committed' THEN RAISE EXCEPTION 'it is strict'; END IF; \
    RETURN pg_catalog.octet_length($1); END $$";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_isolates_strictly_ends_no_read_in_favour_of_others() {
    for database in [Postgres::direct(), Postgres::pooled().await] {
        let Some(database) = database else { continue };
        database.psql("CREATE SCHEMA shadow");
        database.psql(STRICT);
        database.set("search_path", "shadow, public, pg_catalog");
        database.set("default_transaction_isolation", "serializable");
        database.cut();
        let store = database.process(&|settings| settings.ring_events = 0).await.store;
        let first = put(&*store, &key("a/1"), "1").await;
        let second = put(&*store, &key("a/1"), "2").await;
        let mut watch = store.watch(portico_store::Scope::all(&config_maps()), first).unwrap();
        assert_eq!(take(&mut watch, 1).await[0].revision(), second);
    }
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
    // Written by an older version, which knows no checksums.
    database.psql(&format!("{CHANGE}, checksum = NULL WHERE name = '2'"));
    let other = database.process(&|_| ()).await.store;
    let snapshot = other.snapshot(&config_maps()).await.unwrap();
    assert_eq!(snapshot.unreadable("a/1").unwrap().reason(), "its checksum is wrong");
    assert_eq!(lines(snapshot.iter()), [format!("a/2@{}=wrong", first + 1)]);
    let source = other.copy_source();
    let copied = source.states(first + 1, None).await.unwrap_err().to_string();
    assert!(copied.contains("a/1: its checksum is wrong"), "{copied}");
}

/// Comes before PostgreSQL's own function in the search path, and fails in the statement that counts all bytes.
const UNCOUNTABLE: &str = "CREATE FUNCTION shadow.octet_length(bytea) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN \
    IF current_query() LIKE 'SELECT coalesce(sum(bytes)%' THEN RAISE EXCEPTION 'it takes too long'; END IF; \
    RETURN pg_catalog.octet_length($1); END $$";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_ages_though_its_bytes_cannot_be_counted() {
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
    until("what was before is forgotten", async || store.compacted() >= last).await;
}
