//! A control service with its store in PostgreSQL, alone and with others, over HTTP and gRPC.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use portico_tests::objects::CONFIG_MAPS;
use portico_tests::pki::Authority;
use portico_tests::{Launch, Portico, PostgresServer, own_address, wait_until};
use rustix::process::Signal;
use serde_json::json;

use crate::shared_engine_checks::{
    addresses_are_distinct, config_map, quotas_are_exact, version, watch, writes_survive,
};

fn launch_on(url: &str) -> Launch {
    Launch::new().arg("--database-url").arg(url)
}

/// Starts two control services with facades on one database.
async fn pair() -> Option<[Portico; 2]> {
    let server = PostgresServer::shared()?;
    let url = server.url(&server.create_database());
    let (first, second) = tokio::join!(launch_on(&url).start(), launch_on(&url).start());
    Some([first, second])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_services_that_share_a_database_are_one_api() {
    let Some(pair) = pair().await else { return };
    let [one, other] = [pair[0].admin(), pair[1].admin()];
    let mut events = watch(&other, "labelSelector=shared").await;
    let mut object = config_map("a", "0");
    object["metadata"]["labels"] = json!({"shared": ""});
    let mut current = one.post(CONFIG_MAPS, &object).await.json();
    for round in 1..20 {
        let (writer, reader) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let stale = current.clone();
        current["data"]["text"] = json!(round.to_string());
        let answer = writer.put(&format!("{CONFIG_MAPS}/a"), &current).await;
        assert_eq!(answer.status.as_u16(), 200, "{}", answer.text());
        current = answer.json();
        // A write that one has acknowledged is visible at the other at once, as the latest version.
        assert_eq!(reader.get(&format!("{CONFIG_MAPS}/a")).await.json(), current);
        assert_eq!(reader.put(&format!("{CONFIG_MAPS}/a"), &stale).await.status.as_u16(), 409);
    }
    let mut seen = Vec::new();
    while seen.len() < 20 {
        let event = events.next().await.unwrap();
        seen.push(event["object"]["data"]["text"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, (0..20).map(|round| round.to_string()).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_is_served_by_all_control_services() {
    let Some(pair) = pair().await else { return };
    let [one, other] = [pair[0].admin(), pair[1].admin()];
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(one.post(path, &definition).await.status.as_u16(), 201);
    let things = "/apis/example.com/v1/namespaces/default/things";
    let thing =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"a": 1}});
    wait_until("the other control service serves the definition", async || {
        other.post(things, &thing).await.status.as_u16() == 201
    })
    .await;
    wait_until("the first control service serves the object", async || {
        one.get(&format!("{things}/t")).await.status.as_u16() == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotas_and_addresses_are_exact_over_control_services() {
    let Some(pair) = pair().await else { return };
    let clients = [pair[0].admin(), pair[1].admin()];
    quotas_are_exact(clients.each_ref(), "default", 30, 60).await;
    addresses_are_distinct(clients.each_ref(), "s", 40).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_the_database_loses_no_acknowledged_write() {
    let Some(server) = PostgresServer::start() else { return };
    let portico = launch_on(&server.url(&server.create_database())).start().await;
    let admin = portico.admin();
    let created = admin.post(CONFIG_MAPS, &config_map("before", "1")).await.json();
    let mut events = watch(&admin, &format!("resourceVersion={}", version(&created))).await;
    server.kill();
    let refused = admin.post(CONFIG_MAPS, &config_map("during", "1")).await;
    assert_eq!(refused.status.as_u16(), 503, "{}", refused.text());
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(admin.get(CONFIG_MAPS).await.status.as_u16(), 503);
    // Lists that may be stale are served from memory.
    let list = admin.get(&format!("{CONFIG_MAPS}?resourceVersion=0")).await;
    assert_eq!(list.status.as_u16(), 200, "{}", list.text());
    server.restart();
    wait_until("writes are accepted again", async || {
        admin.post(CONFIG_MAPS, &config_map("after", "1")).await.status.as_u16() == 201
    })
    .await;
    assert_eq!(admin.get(&format!("{CONFIG_MAPS}/before")).await.json(), created);
    loop {
        let event = events.next().await.unwrap();
        if event["object"]["metadata"]["name"] == "after" {
            break;
        }
    }
    // The log reports the start and the end of the outage, and not each attempt.
    let log = portico.log();
    let reports = log.matches("database unavailable, retrying").count();
    assert!((1..=8).contains(&reports) && log.contains("database available again"), "{reports} times: {log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_a_power_loss_of_the_database() {
    let Some(server) = PostgresServer::start() else { return };
    let portico = launch_on(&server.url(&server.create_database())).start().await;
    writes_survive(&portico.admin(), 60, || {
        server.kill();
        server.restart();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unusable_database_is_reported_at_the_start() {
    let Some(server) = PostgresServer::shared() else { return };
    let name = server.create_database();
    for (url, error) in [
        (server.url("nowhere"), "the database does not exist"),
        ("postgres://u@127.0.0.1:1/d".to_owned(), "postgres://127.0.0.1:1/d: connection lost"),
        ("mysql://a/b".to_owned(), "the URL must start with postgres://"),
    ] {
        let launch = launch_on(&url).arg("--database-connect-timeout").arg("1s");
        let (code, _, text) = launch.run().await;
        assert!(code != Some(0) && text.contains(error), "{url}: {text}");
    }
    server.psql(&name, "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY); INSERT INTO _sqlx_migrations VALUES (99)");
    let (_, _, text) = launch_on(&server.url(&name)).run().await;
    assert!(text.contains("has schema version 99"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_database_is_used_unless_marked_incompatible() {
    let Some(server) = PostgresServer::shared() else { return };
    let name = server.create_database();
    let url = server.url(&name);
    let mut portico = launch_on(&url).start().await;
    portico.stop().await;
    let next = |description: &str| {
        server.psql(
            &name,
            &format!(
                "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 SELECT max(version) + 1, '{description}', true, '', 0 FROM _sqlx_migrations"
            ),
        )
    };
    server.psql(&name, "ALTER TABLE log ADD COLUMN more TEXT; CREATE TABLE more (id INT)");
    next("more columns");
    portico.restart().await;
    let admin = portico.admin();
    assert_eq!(admin.post(CONFIG_MAPS, &config_map("a", "1")).await.status.as_u16(), 201);
    assert_eq!(admin.get(&format!("{CONFIG_MAPS}/a")).await.json()["data"]["text"], "1");
    portico.stop().await;
    server.psql(
        &name,
        "UPDATE _sqlx_migrations SET description = 'incompatible: other rows' \
        WHERE version = (SELECT max(version) FROM _sqlx_migrations)",
    );
    let (code, _, error) = launch_on(&url).with_data_of(&portico).run().await;
    assert!(
        code != Some(0) && error.contains("(incompatible: other rows), which this portico does not support"),
        "{error}"
    );
    next("much later");
    let (code, _, error) = launch_on(&url).with_data_of(&portico).run().await;
    assert!(
        code != Some(0) && error.contains("use a newer portico") && !error.contains("incompatible"),
        "{error}"
    );
}

/// Total time to build the slowed index, and time for which it waits for locks before.
const INDEX_TIME: Duration = Duration::from_secs(4);
const LOCK_TIME: Duration = Duration::from_secs(3);

/// Reverts a database to the state before its second migration, which is slow from then on: a function
/// that its index uses sleeps.
fn make_older(server: &PostgresServer, name: &str) {
    let rows: u64 = server.psql(name, "SELECT count(*) FROM log").trim().parse().unwrap();
    let each = INDEX_TIME.as_secs_f64() / rows as f64;
    server.psql(
        name,
        &format!(
            "DROP INDEX log_deleting; DROP TABLE archive, archived, lost; DROP INDEX mark_at; \
             DELETE FROM _sqlx_migrations WHERE version > 1; \
             CREATE FUNCTION public.get_byte(value bytea, at int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \
             $$ BEGIN PERFORM pg_sleep({each}); RETURN pg_catalog.get_byte(value, at); END $$; \
             ALTER DATABASE {name} SET search_path = public, pg_catalog"
        ),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_migration_runs_while_others_write() {
    let Some(server) = PostgresServer::shared() else { return };
    let name = server.create_database();
    let url = server.url(&name);
    let running = launch_on(&url).start().await;
    let admin = running.admin();
    make_older(server, &name);
    let locked = std::thread::spawn({
        let (name, held) = (name.clone(), LOCK_TIME.as_secs());
        move || {
            let lock = format!(
                "BEGIN; LOCK TABLE log IN ROW EXCLUSIVE MODE; SELECT 'locked', pg_sleep({held}); COMMIT"
            );
            PostgresServer::shared().unwrap().psql(&name, &lock);
        }
    });
    wait_until("the table is locked", async || {
        let locks = "SELECT count(*) FROM pg_locks WHERE relation = 'log'::regclass AND mode = 'RowExclusiveLock' \
            AND pid IN (SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND application_name = 'psql')";
        server.psql(&name, locks).trim() != "0"
    })
    .await;
    let begin = Instant::now();
    let joins = async {
        let joined =
            launch_on(&url).args(&["--database-statement-timeout=2s", "--database-connect-timeout=60s"]);
        let joined = joined.start().await;
        // Removes the slow function.
        // Locks the table before the index, in the order of all readers, to prevent a deadlock.
        let drop = "BEGIN; LOCK TABLE log IN ACCESS EXCLUSIVE MODE; DROP FUNCTION public.get_byte(bytea, int) CASCADE; COMMIT";
        server.psql(&name, drop);
        joined
    };
    let is_done = AtomicBool::new(false);
    let writes = async {
        let mut written = Vec::new();
        while !is_done.load(Ordering::Relaxed) {
            let name = format!("w-{}", written.len());
            let answer = admin.post(CONFIG_MAPS, &config_map(&name, "1")).await;
            assert_eq!(answer.status.as_u16(), 201, "{}", answer.text());
            written.push(name);
        }
        written
    };
    let joins = async {
        let joined = joins.await;
        is_done.store(true, Ordering::Relaxed);
        joined
    };
    let (written, joined) = tokio::join!(writes, joins);
    assert!(begin.elapsed() > INDEX_TIME, "the migration was slow: {:?}", begin.elapsed());
    locked.join().unwrap();
    let stored = joined.admin().get(CONFIG_MAPS).await.json();
    let stored: HashSet<&str> = stored["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    assert!(written.iter().all(|name| stored.contains(name.as_str())), "{written:?} {stored:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_services_of_a_database_share_certificates_and_keys() {
    let Some(pair) = pair().await else { return };
    assert_eq!(pair[0].ca(), pair[1].ca());
    for file in ["internal-ca.key", "front-proxy-ca.key", "signing-ca.key", "service-account.key"] {
        let read_file = |portico: &Portico| std::fs::read(portico.data().join("certs").join(file)).unwrap();
        assert_eq!(read_file(&pair[0]), read_file(&pair[1]), "{file}");
    }
    let request = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}});
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    wait_until("the default service account exists", async || {
        pair[0].admin().get(&path[..path.len() - 6]).await.status == 200
    })
    .await;
    let token = pair[0].admin().post(path, &request).await.json();
    let caller = pair[1].anonymous().with_token(token["status"]["token"].as_str().unwrap());
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let review_response = caller.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await;
    assert_eq!(
        review_response.json()["status"]["userInfo"]["username"],
        "system:serviceaccount:default:default",
        "{}",
        review_response.text()
    );
    // The keys are not readable through the API.
    let found = pair[0].admin().get("/apis/portico.dev/v1/sharedfiles").await;
    assert_eq!(found.status.as_u16(), 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_with_other_keys_is_refused() {
    let Some(server) = PostgresServer::shared() else { return };
    let url = server.url(&server.create_database());
    let _first = launch_on(&url).start().await;
    let mut alone = Portico::start().await;
    alone.stop().await;
    let (code, _, error) = launch_on(&url).with_data_of(&alone).run().await;
    assert!(
        code != Some(0)
            && error.contains("internal-ca.crt: the control services of the database use a different file"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_control_service_runs_the_controllers() {
    let Some(server) = PostgresServer::shared() else { return };
    let url = server.url(&server.create_database());
    let quick = [
        "--leader-elect-lease-duration=3s",
        "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=200ms",
    ];
    let mut running = Vec::new();
    for _ in 0..3 {
        running.push(launch_on(&url).args(&quick).start().await);
    }
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager";
    let runs = |portico: &Portico| {
        let log = portico.log();
        let ended = log.matches("controllers lease lost").count();
        log.matches("controllers lease acquired").count() > ended
    };
    // The first one is stopped gracefully, the second one killed: the last one continues.
    for stopped in 0..3 {
        let last = running.last().unwrap().admin();
        let name = format!("made-{stopped}");
        let namespace = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}});
        assert_eq!(last.post("/api/v1/namespaces", &namespace).await.status.as_u16(), 201);
        wait_until("a controller creates the service account", async || {
            let account = last.get(&format!("/api/v1/namespaces/{name}/serviceaccounts/default")).await;
            account.status.as_u16() == 200
        })
        .await;
        let holder = last.get(lease).await.json()["spec"]["holderIdentity"].as_str().unwrap().to_owned();
        assert!(!holder.is_empty());
        assert_eq!(running.iter().filter(|portico| runs(portico)).count(), 1, "{holder}");
        let leader = running.iter().position(&runs).unwrap();
        let mut leader = running.remove(leader);
        match stopped {
            0 => drop(leader.stop().await),
            _ => leader.kill(),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_and_keys_are_encrypted_in_the_database() {
    let Some(server) = PostgresServer::shared() else { return };
    let name = server.create_database();
    let (launch, folder) = launch_on(&server.url(&name)).prepare_folder();
    let configuration = json!({"kind": "EncryptionConfiguration", "apiVersion": "apiserver.config.k8s.io/v1",
        "resources": [{"resources": ["secrets"], "providers": [
            {"secretbox": {"keys": [{"name": "k", "secret": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}]}}]}]});
    std::fs::write(folder.join("encryption.json"), configuration.to_string()).unwrap();
    let portico = launch.arg("--encryption-provider-config").arg("encryption.json").start().await;
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "stringData": {"a": "plain-text"}});
    let created = portico.admin().post("/api/v1/namespaces/default/secrets", &secret).await;
    assert_eq!(created.status.as_u16(), 201, "{}", created.text());
    portico.admin().post(CONFIG_MAPS, &config_map("c", "public-text")).await;
    let stored = server.psql(&name, "SELECT encode(value, 'escape') FROM log");
    assert!(stored.contains("public-text") && stored.contains("k8s:enc:secretbox:v1:k:"));
    assert!(!stored.contains("plain-text") && !stored.contains("PRIVATE KEY"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kubernetes_service_lists_every_control_service() {
    if own_address().is_none() {
        return;
    }
    let Some([one, mut other]) = pair().await else { return };
    let admin = one.admin();
    let ports = async || {
        let endpoints = admin.get("/api/v1/namespaces/default/endpoints/kubernetes").await.json();
        let subsets = endpoints["subsets"].as_array().cloned().unwrap_or_default();
        let mut ports: Vec<u64> =
            subsets.iter().map(|subset| subset["ports"][0]["port"].as_u64().unwrap()).collect();
        ports.sort_unstable();
        ports
    };
    let mut both = [u64::from(one.https().port()), u64::from(other.https().port())];
    both.sort_unstable();
    wait_until("the Endpoints list both control services", async || ports().await == both).await;
    for (path, port) in [
        ("/api/v1/namespaces/default/services/kubernetes", "/spec/ports/0/targetPort"),
        ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes", "/ports/0/port"),
    ] {
        wait_until(&format!("{path} has the port of the first control service"), async || {
            admin.get(path).await.json().pointer(port) == Some(&json!(both[0]))
        })
        .await;
    }
    // They agree: neither overwrites the other's endpoints.
    let written = async || {
        let mut versions = Vec::new();
        for path in [
            "/api/v1/namespaces/default/endpoints/kubernetes",
            "/api/v1/namespaces/default/services/kubernetes",
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
        ] {
            versions.push(version(&admin.get(path).await.json()));
        }
        versions
    };
    let before = written().await;
    for n in 0..50 {
        assert_eq!(
            admin.post(CONFIG_MAPS, &config_map(&format!("later-{n}"), "")).await.status.as_u16(),
            201
        );
    }
    assert_eq!(written().await, before);
    other.stop().await;
    wait_until("the stopped control service is no longer listed", async || {
        ports().await == [u64::from(one.https().port())]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_control_service_blocks_writes_only_for_a_time() {
    let Some(server) = PostgresServer::shared() else { return };
    let url = server.url(&server.create_database());
    let limited = || launch_on(&url).arg("--database-statement-timeout=2s");
    let (still, other) = tokio::join!(limited().start(), limited().start());
    let clients = [still.admin(), other.admin()];
    let written = |answer: &portico_tests::http::FullResponse| answer.status.as_u16() == 201;
    let writing = AtomicBool::new(true);
    // Several writers, so that both servers conflict and lock first.
    let load = async |writer: usize| {
        let mut acknowledged = Vec::new();
        for n in 0.. {
            if !writing.load(Ordering::Relaxed) {
                break;
            }
            let name = format!("w-{writer}-{n}");
            let answer = clients[writer % 2].post(CONFIG_MAPS, &config_map(&name, "1")).await;
            if written(&answer) {
                acknowledged.push((name, version(&answer.json())));
            }
        }
        acknowledged
    };
    let generated = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"generateName": "p-"}});
    let pausing = async {
        for _ in 0..6 {
            still.signal(Signal::STOP);
            wait_until("the other control service accepts a write", async || {
                written(&clients[1].post(CONFIG_MAPS, &generated).await)
            })
            .await;
            still.signal(Signal::CONT);
            wait_until("the resumed control service accepts a write", async || {
                written(&clients[0].post(CONFIG_MAPS, &generated).await)
            })
            .await;
        }
        writing.store(false, Ordering::Relaxed);
    };
    let (acknowledged, ()) = tokio::join!(futures::future::join_all((0..6).map(load)), pausing);
    let list = clients[1].get(CONFIG_MAPS).await.json();
    let listed: Vec<(&str, i64)> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["metadata"]["name"].as_str().unwrap(), version(item)))
        .collect();
    for (name, revision) in acknowledged.iter().flatten() {
        assert!(listed.contains(&(name.as_str(), *revision)), "{name}@{revision} is lost");
    }
    let names: HashSet<&str> = listed.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), listed.len());
    // The paused one shows the same objects afterwards.
    let other_list = clients[0].get(CONFIG_MAPS).await.json();
    assert_eq!(other_list["items"], list["items"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_to_the_database_verifies_its_certificate() {
    let authority = Authority::new("databases");
    let Some(server) = PostgresServer::start_with_tls(&authority.server(&["localhost"]), "pass-word") else {
        return;
    };
    let (name, port) = (server.create_database(), server.address().port());
    let launch = |host: &str, ca: &str, password: &str| {
        let url = format!("postgres://portico@{host}:{port}/{name}?sslmode=verify-full&sslrootcert=ca.pem");
        let (launch, folder) = launch_on(&url).prepare_folder();
        std::fs::write(folder.join("ca.pem"), ca).unwrap();
        std::fs::write(folder.join("password"), format!("{password}\n")).unwrap();
        launch.args(&["--database-password-file", "password", "--database-connect-timeout", "1s"])
    };
    let portico = launch("localhost", &authority.pem, "pass-word").start().await;
    assert_eq!(portico.admin().post(CONFIG_MAPS, &config_map("a", "1")).await.status.as_u16(), 201);
    let plain = "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
        WHERE a.application_name = 'portico' AND s.ssl IS NOT TRUE";
    assert_eq!(server.psql(&name, plain).trim(), "0");
    for (host, ca, password, error) in [
        (
            "127.0.0.1",
            authority.pem.clone(),
            "pass-word",
            "TLS: invalid peer certificate: certificate not valid for name",
        ),
        ("localhost", Authority::new("databases").pem, "pass-word", "TLS: invalid peer certificate"),
        ("localhost", authority.pem.clone(), "wrong", "authentication failed"),
    ] {
        let (code, _, text) = launch(host, &ca, password).run().await;
        assert!(code != Some(0) && text.contains(error), "{host} {password}: {text}");
        assert!(!text.contains("pass-word"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_folder_belongs_to_one_database() {
    let Some(server) = PostgresServer::shared() else { return };
    let urls = [server.url(&server.create_database()), server.url(&server.create_database())];
    let halves = |url: &str| Launch::server().arg("--database-url").arg(url);
    let mut one = halves(&urls[0]).start().await;
    let same = halves(&urls[0]).start().await;
    let mut other = halves(&urls[1]).start().await;
    let store_of = |portico: &Portico| {
        let text = std::fs::read_to_string(portico.data().join("facade.kubeconfig")).unwrap();
        let line = text.lines().find(|line| line.contains("store-id")).map(str::trim).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{text}"))
    };
    assert_eq!(store_of(&one), store_of(&same));
    assert_ne!(store_of(&one), store_of(&other));
    // A facade stores the configuration of the first store; with the other store it does not serve that configuration.
    let mut facade = Launch::facade(&one).start().await;
    wait_until("the facade has saved its state", async || facade.data().join("facade-state/state").exists())
        .await;
    facade.stop().await;
    one.stop().await;
    other.stop().await;
    let mut behind_other = Launch::facade(&other).with_data_of(&facade).spawn();
    wait_until("the facade logs that its state belongs to another store", async || {
        behind_other.log().contains("the file belongs to another store")
    })
    .await;
    behind_other.kill();
    // A control service refuses the folder of another database.
    let (code, _, error) = halves(&urls[1]).with_data_of(&one).run().await;
    assert!(
        code != Some(0) && error.contains("the control services of the database use a different file"),
        "{error}"
    );
}
