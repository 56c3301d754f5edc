//! Control services of both builds on one PostgreSQL database, and on one etcd.

use std::path::Path;
use std::time::Duration;

use portico_kit::lifecycle::Signal;
use portico_tests::http::Http;
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{EtcdServer, Launch, Portico, PostgresServer, report_measurement, wait_until};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::shared_engine_checks;

use super::Builds;
use super::api_use::{
    Watch, check_deletions, config_map, created, created_objects, define, make, thing, things,
    things_are_served, version,
};
use super::log_check::assert_quiet;

/// A store that several control services can share.
struct Store {
    flag: String,
    value: String,
    /// Stops etcd when the test ends.
    _etcd: Option<EtcdServer>,
}

impl Store {
    fn postgres() -> Option<(Self, Builds)> {
        let builds = Builds::with("server", "--database-url")?;
        let server = PostgresServer::shared()?;
        let value = server.url(&server.create_database());
        Some((Self { flag: "--database-url".to_owned(), value, _etcd: None }, builds))
    }

    fn etcd() -> Option<(Self, Builds)> {
        let builds = Builds::with("server", "--etcd-servers")?;
        let etcd = EtcdServer::start_with(&["--unsafe-no-fsync"])?;
        Some((Self { flag: "--etcd-servers".to_owned(), value: etcd.url(), _etcd: Some(etcd) }, builds))
    }

    fn launch(&self, program: &Path) -> Launch {
        Launch::new().program_path(program).arg(&self.flag).arg(&self.value)
    }
}

/// Checks that two control services behave as one API; `about` is part of the names of created objects.
async fn check_one_api(pair: &[&Portico; 2], about: &str) {
    let [one, other] = pair.map(Portico::admin);
    let name = format!("shared-{about}");
    let path = format!("{CONFIG_MAPS}/{name}");
    let mut current = created(&one, CONFIG_MAPS, &config_map(&name)).await;
    let mut watches = [
        Watch::from_version(CONFIG_MAPS, &version(&current)),
        Watch::from_version(CONFIG_MAPS, &version(&current)),
    ];
    for round in 1..20 {
        let (writer, reader) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let stale = current.clone();
        current["data"]["round"] = json!(round.to_string());
        let answer = writer.put(&path, &current).await;
        assert_eq!(answer.status.as_u16(), 200, "{}", answer.text());
        current = answer.json();
        assert_eq!(reader.get(&path).await.json(), current);
        assert_eq!(reader.put(&path, &stale).await.status.as_u16(), 409);
    }
    let last = format!("last-{about}");
    created(&other, CONFIG_MAPS, &config_map(&last)).await;
    for (watch, http) in watches.iter_mut().zip([&one, &other]) {
        let mut seen = Vec::new();
        while seen.last() != Some(&last) {
            seen.push(watch.next(http).await);
        }
        seen.retain(|seen| *seen == name);
        assert_eq!(seen.len(), 19);
    }
    shared_engine_checks::addresses_are_distinct([&one, &other], about, 20).await;
    quotas_are_exact(&[&one, &other], about).await;
    for (definer, user) in [(&one, &other), (&other, &one)] {
        let group = format!("g{}.{about}.example.com", if std::ptr::eq(definer, &one) { 1 } else { 2 });
        define(definer, &group).await;
        things_are_served(user, &group).await;
        created(user, &things(&group), &thing(&group, "t")).await;
        things_are_served(definer, &group).await;
        let found = definer.get(&format!("{}/t", things(&group))).await.json();
        assert_eq!(found["spec"], json!({"n": 1, "text": "d"}), "{found}");
    }
}

async fn quotas_are_exact(clients: &[&Http; 2], about: &str) {
    let namespace = format!("quota-{about}");
    let object = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": namespace}});
    created(clients[0], "/api/v1/namespaces", &object).await;
    shared_engine_checks::quotas_are_exact(*clients, &namespace, 10, 40).await;
}

/// Writes until it is stopped; returns the acknowledged names and the time of the slowest write.
async fn write(http: &Http, stop: &Signal) -> (Vec<String>, Duration) {
    let (mut acknowledged, mut slowest) = (Vec::new(), Duration::ZERO);
    while !stop.is_signaled() {
        let (name, begin) = (format!("during-{}", acknowledged.len()), Instant::now());
        let answer = http.post(CONFIG_MAPS, &config_map(&name)).await;
        assert_eq!(answer.status.as_u16(), 201, "{}", answer.text());
        acknowledged.push(name);
        slowest = slowest.max(begin.elapsed());
    }
    (acknowledged, slowest)
}

async fn check_exist(http: &Http, names: &[String]) {
    let list = http.get(CONFIG_MAPS).await.json();
    let found: Vec<&Value> =
        list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert!(names.iter().all(|name| found.iter().any(|found| *found == name)), "{names:?} {found:?}");
}

/// Checks that one of the servers runs the controllers.
async fn check_controllers(http: &Http, about: &str) {
    let object = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": about}});
    created(http, "/api/v1/namespaces", &object).await;
    let account = format!("/api/v1/namespaces/{about}/serviceaccounts/default");
    wait_until("a controller creates the service account", async || http.get(&account).await.status == 200)
        .await;
    let namespace = format!("/api/v1/namespaces/{about}");
    assert_eq!(http.delete(&namespace).await.status.as_u16(), 200);
    wait_until("a controller deletes the namespace", async || http.get(&namespace).await.status == 404).await;
}

/// Checks that a newer control service can join an older one in operation, and that each continues without the other.
async fn check_newer_joins((store, builds): (Store, Builds)) {
    let mut older = store.launch(builds.older).start().await;
    make(&older.admin()).await;
    let before = created_objects(&older.admin()).await;
    let (stop, mut newer) = (Signal::new("stop"), store.launch(builds.newer).spawn());
    let joins = async {
        newer.wait_ready().await;
        stop.signal();
    };
    let writer = older.admin();
    let ((acknowledged, slowest), ()) = tokio::join!(write(&writer, &stop), joins);
    report_measurement(&format!(
        "{} writes while a newer one joins, the slowest {slowest:?}",
        acknowledged.len()
    ));
    check_exist(&newer.admin(), &acknowledged).await;
    let mut found = created_objects(&newer.admin()).await;
    found.retain(|name, _| before.contains_key(name));
    assert_eq!(found, before);
    check_one_api(&[&older, &newer], "joined").await;
    check_deletions(&newer.admin(), &older.admin()).await;

    check_controllers(&newer.admin(), "older-leads").await;
    assert!(older.stop().await.success());
    check_controllers(&newer.admin(), "newer-leads").await;
    // The older one can use the store after the changes of the newer one.
    older.restart().await;
    check_exist(&older.admin(), &acknowledged).await;
    assert!(newer.stop().await.success());
    check_controllers(&older.admin(), "older-leads-again").await;
    newer.restart().await;
    check_one_api(&[&newer, &older], "again").await;
    check_exist(&newer.admin(), &acknowledged).await;
    assert_quiet(&[&older, &newer]).await;
}

/// Checks the start of an older control service on the store of a newer one.
async fn check_older_joins((store, builds): (Store, Builds)) {
    let mut newer = store.launch(builds.newer).start().await;
    make(&newer.admin()).await;
    let before = created_objects(&newer.admin()).await;
    let older = store.launch(builds.older).start().await;
    assert_eq!(created_objects(&older.admin()).await, before);
    check_one_api(&[&newer, &older], "joined").await;
    newer.kill();
    check_controllers(&older.admin(), "newer-was-killed").await;
    newer.restart().await;
    check_deletions(&newer.admin(), &older.admin()).await;
    assert_quiet(&[&older, &newer]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_control_service_joins_an_older_one_on_postgresql() {
    let Some(shared) = Store::postgres() else { return };
    check_newer_joins(shared).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_control_service_joins_an_older_one_on_etcd() {
    let Some(shared) = Store::etcd() else { return };
    check_newer_joins(shared).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_control_service_joins_a_newer_one_on_postgresql() {
    let Some(shared) = Store::postgres() else { return };
    check_older_joins(shared).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_control_service_joins_a_newer_one_on_etcd() {
    let Some(shared) = Store::etcd() else { return };
    check_older_joins(shared).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_control_service_reports_a_newer_database() {
    let Some(builds) = Builds::with("server", "--database-url") else { return };
    let Some(server) = PostgresServer::shared() else { return };
    let name = server.create_database();
    let url = server.url(&name);
    let launch = |program: &Path| Launch::new().program_path(program).arg("--database-url").arg(&url);
    let mut newer = launch(builds.newer).start().await;
    created(&newer.admin(), CONFIG_MAPS, &config_map("kept")).await;
    assert!(newer.stop().await.success());
    server.psql(
        &name,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         SELECT max(version) + 2, 'much later', true, '', 0 FROM _sqlx_migrations",
    );
    for program in [builds.older, builds.newer] {
        let (code, _, error) = launch(program).run().await;
        assert!(code != Some(0) && error.contains("use a newer portico"), "{error}");
    }
    server.psql(&name, "DELETE FROM _sqlx_migrations WHERE description = 'much later'");
    newer.restart().await;
    assert_eq!(newer.admin().get(&format!("{CONFIG_MAPS}/kept")).await.status, 200);
}
