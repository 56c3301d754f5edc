//! Coordinated leader election: a Lease follows its candidates, as with a real kube-apiserver.

use std::time::Duration;

use portico_tests::http::Http;
use portico_tests::{Launch, Portico, WAIT_LIMIT, eventually};
use serde_json::{Value, json};

const GATE: [&str; 2] = ["--feature-gates", "CoordinatedLeaderElection=true"];
const SERVE: [&str; 2] = ["--runtime-config", "coordination.k8s.io/v1beta1=true"];
const CANDIDATES: &str = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/lock";
const LOCK: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/leader-election-controller";

fn now() -> String {
    format!("{:.6}", jiff::Timestamp::now())
}

fn candidate(name: &str, version: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "leaseName": "lock", "strategy": "OldestEmulationVersion", "renewTime": now(),
            "binaryVersion": version, "emulationVersion": version
        }
    })
}

async fn start() -> Portico {
    Launch::new().args(&GATE).args(&SERVE).start().await
}

/// Pings candidates as components do, until the Lease has this value.
async fn ping_until(admin: &Http, field: &str, want: &str) -> Value {
    let waiting = async {
        let mut pause = tokio::time::interval(Duration::from_millis(200));
        loop {
            pause.tick().await;
            let lease = admin.get(LEASE).await.json();
            if lease["spec"][field] == want {
                return lease;
            }
            for one in admin.get(CANDIDATES).await.json()["items"].as_array().unwrap() {
                if one["spec"]["pingTime"].as_str() > one["spec"]["renewTime"].as_str() {
                    let mut one = one.clone();
                    one["spec"]["renewTime"] = now().into();
                    let path = format!("{CANDIDATES}/{}", one["metadata"]["name"].as_str().unwrap());
                    admin.put(&path, &one).await;
                }
            }
        }
    };
    tokio::time::timeout(WAIT_LIMIT, waiting).await.unwrap_or_else(|_| panic!("{field} never was {want}"))
}

/// Returns the Lease of the server that runs elections, once one does.
async fn election_lease(admin: &Http) -> Value {
    eventually("a server leads", || async {
        let lock = admin.get(LOCK).await;
        if lock.status == 200 { Ok(lock.json()) } else { Err(lock.text()) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_candidate_leads_after_the_lease_expires() {
    let portico = start().await;
    let admin = portico.admin();
    assert_eq!(admin.post(CANDIDATES, &candidate("newer", "1.36.0")).await.status, 201);
    let lease = ping_until(&admin, "holderIdentity", "newer").await;
    let spec = &lease["spec"];
    assert_eq!(
        (&spec["strategy"], &spec["leaseDurationSeconds"]),
        (&json!("OldestEmulationVersion"), &json!(5))
    );
    assert!(spec["acquireTime"].is_null() && spec["preferredHolder"].is_null());

    // The holder has a long lease: it stays the holder, and the Lease names the preferred one.
    let mut held = admin.get(LEASE).await.json();
    held["spec"]["leaseDurationSeconds"] = json!(3600);
    held["spec"]["renewTime"] = now().into();
    assert_eq!(admin.put(LEASE, &held).await.status, 200);
    assert_eq!(admin.post(CANDIDATES, &candidate("older", "1.35.0")).await.status, 201);
    let lease = ping_until(&admin, "preferredHolder", "older").await;
    assert_eq!(lease["spec"]["holderIdentity"], "newer");

    // The holder stops: the Lease is no longer renewed.
    assert_eq!(admin.delete(&format!("{CANDIDATES}/newer")).await.status, 200);
    let mut lapsed = admin.get(LEASE).await.json();
    lapsed["spec"]["leaseDurationSeconds"] = json!(1);
    assert_eq!(admin.put(LEASE, &lapsed).await.status, 200);
    let lease = ping_until(&admin, "holderIdentity", "older").await;
    assert!(lease["spec"]["preferredHolder"].is_null(), "{lease}");
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_that_runs_elections_has_a_lease() {
    let portico = start().await;
    let admin = portico.admin();
    let lock = election_lease(&admin).await;
    assert_eq!(lock["spec"]["leaseDurationSeconds"], 15);
    assert!(lock["spec"]["holderIdentity"].as_str().is_some_and(|holder| holder.contains('_')), "{lock}");
    let hook = "/readyz/poststarthook/start-kube-apiserver-coordinated-leader-election-controller";
    assert_eq!(admin.get(hook).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_server_takes_over_and_removes_expired_candidates() {
    let mut portico = start().await;
    let mut expired = candidate("expired", "1.36.0");
    expired["spec"]["renewTime"] = json!("2026-01-01T00:00:00.000000Z");
    let mut unasked = candidate("unasked", "1.36.0");
    unasked["spec"]["leaseName"] = json!("other");
    for one in [&expired, &unasked] {
        assert_eq!(portico.admin().post(CANDIDATES, one).await.status, 201);
    }
    election_lease(&portico.admin()).await;
    portico.stop().await;
    portico.restart().await;
    let admin = portico.admin();
    // Before the lease of the first server would have expired.
    eventually("the expired candidate is removed", || async {
        let gone = admin.get(&format!("{CANDIDATES}/expired")).await;
        if gone.status == 404 { Ok(()) } else { Err(gone.text()) }
    })
    .await;
    assert_eq!(admin.get(&format!("{CANDIDATES}/unasked")).await.status, 200);
    let lock = admin.get(LOCK).await.json();
    assert!(lock["spec"]["leaseTransitions"].as_i64() >= Some(1), "{lock}");
}

#[tokio::test(flavor = "multi_thread")]
async fn validation_of_candidates_has_upstreams_messages() {
    let portico = start().await;
    let admin = portico.admin();
    let spec = |changes: Value| {
        let mut candidate = candidate("one", "1.36.0");
        for (field, value) in changes.as_object().unwrap() {
            candidate["spec"][field] = value.clone();
        }
        candidate
    };
    let rows = [
        (
            json!({"binaryVersion": "x"}),
            "[spec.binaryVersion: Invalid value: \"x\": must be a valid semantic version, spec.binaryVersion: Invalid value: \"x\": must be greater than or equal to `emulationVersion`]",
        ),
        (
            json!({"binaryVersion": "1.0.0"}),
            "spec.binaryVersion: Invalid value: \"1.0.0\": must be greater than or equal to `emulationVersion`",
        ),
        (
            json!({"strategy": "Foo"}),
            "spec.strategy.strategy: Unsupported value: \"Foo\": supported values: \"OldestEmulationVersion\"",
        ),
        (
            json!({"emulationVersion": ""}),
            "spec.emulationVersion: Required value: must be specified when `strategy` is 'OldestEmulationVersion'",
        ),
        (
            json!({"strategy": "", "leaseName": "", "binaryVersion": ""}),
            "[spec.leaseName: Required value, spec.binaryVersion: Required value, spec.strategy: Required value]",
        ),
    ];
    for (changes, want) in rows {
        let refused = admin.post(CANDIDATES, &spec(changes)).await.status_body(422, "Invalid");
        let want = format!("LeaseCandidate.coordination.k8s.io \"one\" is invalid: {want}");
        assert_eq!(refused["message"], want);
    }
    assert_eq!(admin.post(CANDIDATES, &candidate("a_.Name", "1.36.0")).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn strategies_and_elections_need_the_feature_gate() {
    let portico = Launch::new().args(&SERVE).start().await;
    let admin = portico.admin();
    let lease = json!({"metadata": {"name": "lock"}, "spec": {"strategy": "OldestEmulationVersion"}});
    let created = admin.post(LEASE.rsplit_once('/').unwrap().0, &lease).await;
    assert_eq!((created.status.as_u16(), &created.json()["spec"]["strategy"]), (201, &Value::Null));
    let hook = "/readyz/poststarthook/start-kube-apiserver-coordinated-leader-election-controller";
    assert_eq!(admin.get(hook).await.status, 404);
    assert_eq!(admin.get(LOCK).await.status, 404);
}
