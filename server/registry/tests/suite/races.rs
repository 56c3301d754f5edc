//! Concurrent changes between the decision on a write and its commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::{BoxFuture, FutureExt, join_all};
use portico_machinery::{GroupResource, Object};
use portico_registry::{Context, CreateOptions};
use portico_store::{Resource, Store};

use crate::custom_resources::{
    CRDS, PROPERTIES, TABS, accept, definition, open_with_definition, tab, version,
};
use crate::harness::{Harness, JSON, MERGE, Reply, object};

const NAMESPACES: &str = "/api/v1/namespaces";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.stable.example.com";

/// Sends a request; `change` runs immediately before the first commit of an object with this name.
async fn request_during<F>(
    harness: &Arc<Harness>,
    name: &'static str,
    change: F,
    (method, url, body): RequestParts<'_>,
) -> Reply
where
    F: FnOnce(Arc<Harness>) -> BoxFuture<'static, ()> + Send + 'static,
{
    let (racing, mut happening) = (Arc::clone(harness), Some(change));
    harness.store.before_commits(Box::new(move |txn| {
        let about = txn.operations.first().is_some_and(|operation| operation.key.name() == name);
        about.then(|| happening.take()).flatten().map(|happening| happening(Arc::clone(&racing)))
    }));
    let media = if method == "PATCH" { MERGE } else { JSON };
    let reply = harness.request(method, url, JSON, media, body).await;
    harness.store.before_commits(Box::new(|_| None));
    reply
}

type RequestParts<'a> = (&'a str, &'a str, &'a str);

/// Stored JSON of a custom resource.
fn stored_text(harness: &Harness, name: &str) -> Option<String> {
    let snapshot = harness.store.cached_snapshot(&Resource::new("stable.example.com", "crontabs"))?;
    let record = snapshot.get_path(&format!("default/{name}"))?;
    Some(String::from_utf8(record.value.json().to_vec()).unwrap())
}

async fn change_definition(harness: &Harness, versions: &str) {
    let patch = format!(r#"{{"spec":{{"versions":[{versions}]}}}}"#);
    let changed = harness.patch(CRD, MERGE, &patch).await;
    assert_eq!(changed.code, 200, "{}", changed.text);
}

#[tokio::test]
async fn a_create_fails_if_its_empty_namespace_is_removed_concurrently() {
    let harness = Arc::new(Harness::open().await);
    assert_eq!(harness.post(NAMESPACES, &object("Namespace", "n", "")).await.code, 201);
    let url = format!("{NAMESPACES}/n/configmaps");
    let leaves = |harness: Arc<Harness>| {
        async move {
            assert_eq!(harness.delete(&format!("{NAMESPACES}/n")).await.code, 200);
            let finalized =
                r#"{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n"},"spec":{"finalizers":[]}}"#;
            assert_eq!(harness.put(&format!("{NAMESPACES}/n/finalize"), finalized).await.code, 200);
        }
        .boxed()
    };
    let late =
        request_during(&harness, "late", leaves, ("POST", &url, &object("ConfigMap", "late", ""))).await;
    assert_eq!((late.code, late.at("message").as_str()), (404, "namespaces \"n\" not found"));
    assert_eq!(harness.get("/api/v1/configmaps?fieldSelector=metadata.name%3Dlate").await.names(), [""; 0]);
}

#[tokio::test]
async fn a_create_fails_if_its_namespace_is_deleted_concurrently() {
    let harness = Arc::new(Harness::open().await);
    assert_eq!(harness.post(NAMESPACES, &object("Namespace", "n", "")).await.code, 201);
    let url = format!("{NAMESPACES}/n/configmaps");
    let goes =
        |harness: Arc<Harness>| async move { drop(harness.delete(&format!("{NAMESPACES}/n")).await) }.boxed();
    let late = request_during(&harness, "late", goes, ("POST", &url, &object("ConfigMap", "late", ""))).await;
    assert_eq!((late.code, late.at("details.causes.0.reason").as_str()), (403, "NamespaceTerminating"));
    assert_eq!(harness.get(&url).await.names(), [""; 0]);
}

#[tokio::test]
async fn a_create_succeeds_if_its_namespace_is_labeled_concurrently() {
    let harness = Arc::new(Harness::open().await);
    let labelled = |harness: Arc<Harness>| {
        async move {
            let label = r#"{"metadata":{"labels":{"a":"b"}}}"#;
            assert_eq!(harness.patch(&format!("{NAMESPACES}/default"), MERGE, label).await.code, 200);
        }
        .boxed()
    };
    let made = request_during(&harness, "m", labelled, ("POST", MAPS, &object("ConfigMap", "m", ""))).await;
    assert_eq!(made.code, 201, "{}", made.text);
}

#[tokio::test]
async fn a_create_fails_if_its_definition_is_deleted_concurrently() {
    let harness = Arc::new(open_with_definition(&version("v1", true, "")).await);
    let goes = |harness: Arc<Harness>| async move { assert_eq!(harness.delete(CRD).await.code, 200) }.boxed();
    let late = request_during(&harness, "t", goes, ("POST", TABS, &tab("v1", ""))).await;
    assert!([403, 404].contains(&late.code), "{}", late.text);
    assert_eq!(stored_text(&harness, "t"), None);
}

#[tokio::test]
async fn a_definition_that_is_recreated_concurrently_counts_as_another_one() {
    let harness = Arc::new(open_with_definition(&version("v1", true, r#""a":{"type":"string"}"#)).await);
    let comes_again = |harness: Arc<Harness>| {
        async move {
            assert_eq!(harness.delete(CRD).await.code, 200);
            if harness.get(CRD).await.code == 200 {
                let patch = r#"{"metadata":{"finalizers":null}}"#;
                assert_eq!(harness.patch(CRD, MERGE, patch).await.code, 200);
            }
            assert_eq!(harness.post(CRDS, &definition(&version("v1", true, ""))).await.code, 201);
            accept(&harness).await;
        }
        .boxed()
    };
    let made = request_during(&harness, "t", comes_again, ("POST", TABS, &tab("v1", r#""a":"x""#))).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert!(
        !stored_text(&harness, "t").unwrap().contains(r#""a":"x""#),
        "the object is pruned by the new schema"
    );
}

#[tokio::test]
async fn every_write_is_validated_and_stored_by_the_definition_at_its_commit() {
    let before = version("v1", true, r#""a":{"type":"string"}"#);
    let after = format!("{},{}", version("v1", false, ""), version("v2", true, ""));
    let with_finalizer = r#"{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"t","finalizers":["example.com/f"]},"spec":{}}"#;
    let one = format!("{TABS}/t");
    let rows: [RequestParts<'_>; 4] = [
        ("POST", TABS, &tab("v1", r#""a":"x""#)),
        ("PUT", &one, &tab("v1", r#""a":"x""#)),
        ("PATCH", &one, r#"{"spec":{"a":"x"},"metadata":{"labels":{"l":"m"}}}"#),
        ("DELETE", &one, ""),
    ];
    for path in rows {
        let harness = Arc::new(open_with_definition(&before).await);
        let (method, url, mut body) = (path.0, path.1, path.2.to_owned());
        if method != "POST" {
            let created = harness.post(TABS, with_finalizer).await;
            assert_eq!(created.code, 201);
            let version =
                format!(r#""name":"t","resourceVersion":"{}""#, created.at("metadata.resourceVersion"));
            body = body.replace(r#""name":"t""#, &version);
        }
        let versions = after.clone();
        let changes =
            |harness: Arc<Harness>| async move { change_definition(&harness, &versions).await }.boxed();
        let reply = request_during(&harness, "t", changes, (method, url, &body)).await;
        assert!(reply.code < 300, "{path:?}: {}", reply.text);
        let stored = stored_text(&harness, "t").unwrap();
        assert!(stored.starts_with(r#"{"apiVersion":"stable.example.com/v2""#), "{path:?}: {stored}");
        assert!(!stored.contains(r#""a":"x""#), "{path:?}: {stored}");
    }
}

#[tokio::test]
async fn a_create_succeeds_if_metadata_of_its_definition_change_concurrently() {
    let harness = Arc::new(open_with_definition(&version("v1", true, "")).await);
    let labelled = |harness: Arc<Harness>| {
        async move {
            let label = r#"{"metadata":{"labels":{"a":"b"}}}"#;
            assert_eq!(harness.patch(CRD, MERGE, label).await.code, 200);
        }
        .boxed()
    };
    let made = request_during(&harness, "t", labelled, ("POST", TABS, &tab("v1", ""))).await;
    assert_eq!(made.code, 201, "{}", made.text);
}

#[tokio::test]
async fn a_write_fails_with_a_conflict_if_every_attempt_conflicts() {
    let harness = Arc::new(Harness::open().await);
    assert_eq!(harness.post(MAPS, &object("ConfigMap", "m", "")).await.code, 201);
    let rows: [RequestParts<'_>; 4] = [
        (
            "PUT",
            "/api/v1/namespaces/default/configmaps/m",
            &object("ConfigMap", "m", r#","data":{"k":"mine"}"#),
        ),
        ("PATCH", "/api/v1/namespaces/default/configmaps/m", r#"{"data":{"k":"mine"}}"#),
        ("DELETE", "/api/v1/namespaces/default/configmaps/m", ""),
        (
            "PUT",
            "/api/v1/namespaces/default/configmaps/m",
            &object("ConfigMap", "m", r#","data":{"k":"my"}"#),
        ),
    ];
    for (method, url, body) in rows {
        let (racing, lost) = (Arc::clone(&harness), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&lost);
        harness.store.before_commits(Box::new(move |txn| {
            (txn.operations.first()?.key.name() == "m").then(|| {
                let (harness, n) = (Arc::clone(&racing), counted.fetch_add(1, Ordering::Relaxed));
                async move {
                    let patch = format!(r#"{{"data":{{"n":"{n}-{}"}}}}"#, harness.store.revision());
                    assert_eq!(harness.patch(&format!("{MAPS}/m"), MERGE, &patch).await.code, 200);
                }
                .boxed()
            })
        }));
        let media = if method == "PATCH" { MERGE } else { JSON };
        let reply = harness.request(method, url, JSON, media, body).await;
        harness.store.before_commits(Box::new(|_| None));
        assert_eq!((reply.code, lost.load(Ordering::Relaxed)), (409, 256), "{method}: {}", reply.text);
        assert!(reply.at("message").contains("was modified 256 times"), "{}", reply.text);
    }
}

#[tokio::test]
async fn a_retry_continues_from_the_conflicting_state() {
    let harness = Arc::new(Harness::open().await);
    assert_eq!(harness.post(MAPS, &object("ConfigMap", "m", "")).await.code, 201);
    let other = |harness: Arc<Harness>| {
        async move {
            let patch = r#"{"data":{"theirs":"1"}}"#;
            assert_eq!(harness.patch(&format!("{MAPS}/m"), MERGE, patch).await.code, 200);
        }
        .boxed()
    };
    let url = format!("{MAPS}/m");
    let reply = request_during(&harness, "m", other, ("PATCH", &url, r#"{"data":{"mine":"2"}}"#)).await;
    assert_eq!((reply.code, reply.at("data").as_str()), (200, r#"{"mine":"2","theirs":"1"}"#));
}

#[tokio::test]
async fn an_address_that_was_reassigned_concurrently_is_not_freed() {
    let harness = Arc::new(Harness::open().await);
    let services = "/api/v1/namespaces/default/services";
    let (address, body) = (
        "/apis/networking.k8s.io/v1/ipaddresses",
        r#","spec":{"clusterIP":"10.0.0.7","ports":[{"port":80}]}"#,
    );
    assert_eq!(harness.post(services, &object("Service", "s", body)).await.code, 201);
    let regiven = move |harness: Arc<Harness>| {
        async move {
            assert_eq!(harness.delete(&format!("{address}/10.0.0.7")).await.code, 200);
            let taken = r#"{"apiVersion":"networking.k8s.io/v1","kind":"IPAddress","metadata":{"name":"10.0.0.7"},
                "spec":{"parentRef":{"resource":"services","namespace":"default","name":"other"}}}"#;
            let taken = harness.post(address, taken).await;
            assert_eq!(taken.code, 201, "{}", taken.text);
        }
        .boxed()
    };
    let url = format!("{services}/s");
    assert_eq!(request_during(&harness, "s", regiven, ("DELETE", &url, "")).await.code, 200);
    let kept = harness.get(&format!("{address}/10.0.0.7")).await;
    assert_eq!((kept.code, kept.at("spec.parentRef.name").as_str()), (200, "other"));
}

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

async fn quota(harness: &Harness, hard: usize) {
    let spec = format!(r#","spec":{{"hard":{{"configmaps":"{hard}"}}}}"#);
    assert_eq!(harness.post(QUOTAS, &object("ResourceQuota", "q", &spec)).await.code, 201);
    let status = format!(r#"{{"status":{{"hard":{{"configmaps":"{hard}"}},"used":{{"configmaps":"0"}}}}}}"#);
    assert_eq!(harness.patch(&format!("{QUOTAS}/q/status"), MERGE, &status).await.code, 200);
}

async fn used(harness: &Harness) -> String {
    harness.get(&format!("{QUOTAS}/q")).await.at("status.used.configmaps")
}

#[tokio::test]
async fn concurrent_creates_share_updates_of_their_quota() {
    let harness = Arc::new(Harness::open().await);
    quota(&harness, 1_000).await;
    let commits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&commits);
    harness.store.before_commits(Box::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        None
    }));
    let names: Vec<String> = (0..100).map(|n| object("ConfigMap", &format!("m{n}"), "")).collect();
    let made = join_all(names.iter().map(|body| harness.post(MAPS, body))).await;
    assert!(made.iter().all(|reply| reply.code == 201));
    assert_eq!(used(&harness).await, "100");
    let commits = commits.load(Ordering::Relaxed);
    assert!(commits <= 10, "{commits} transactions for 100 creations");
}

#[tokio::test]
async fn failed_and_cancelled_creates_do_not_affect_others() {
    let harness = Arc::new(Harness::open().await);
    quota(&harness, 1_000).await;
    let bodies: Vec<String> = (0..60).map(|n| object("ConfigMap", &format!("m{}", n % 20), "")).collect();
    let made = join_all(bodies.iter().enumerate().map(|(n, body)| {
        let harness = Arc::clone(&harness);
        async move {
            let creation = harness.post(MAPS, body);
            if n % 5 == 4 {
                // Polled only once, then dropped.
                futures::pin_mut!(creation);
                futures::poll!(creation).is_ready().then_some(0)
            } else {
                Some(creation.await.code)
            }
        }
    }))
    .await;
    assert!(made.iter().flatten().all(|code| [201, 409].contains(code)), "{made:?}");
    let there = harness.get(MAPS).await.names().len();
    assert_eq!(used(&harness).await, there.to_string(), "the quota counts each created object once");
    assert!(made.iter().flatten().filter(|code| **code == 201).count() <= there);
}

#[tokio::test]
async fn a_quota_that_conflicts_in_every_attempt_is_a_temporary_failure() {
    let harness = Arc::new(Harness::open().await);
    quota(&harness, 10).await;
    let racing = Arc::clone(&harness);
    let mut n = 0;
    harness.store.before_commits(Box::new(move |txn| {
        n += 1;
        (txn.operations.first()?.key.name() == "m").then(|| {
            let (harness, n) = (Arc::clone(&racing), n);
            async move {
                let patch = format!(r#"{{"metadata":{{"annotations":{{"n":"{n}"}}}}}}"#);
                assert_eq!(harness.patch(&format!("{QUOTAS}/q"), MERGE, &patch).await.code, 200);
            }
            .boxed()
        })
    }));
    let reply = harness.post(MAPS, &object("ConfigMap", "m", "")).await;
    harness.store.before_commits(Box::new(|_| None));
    assert_eq!((reply.code, reply.at("details.retryAfterSeconds").as_str()), (503, "1"), "{}", reply.text);
    assert_eq!((used(&harness).await.as_str(), harness.get(MAPS).await.names().len()), ("0", 0));
}

#[tokio::test]
async fn a_quota_that_changes_concurrently_counts_by_its_new_state() {
    let harness = Arc::new(Harness::open().await);
    quota(&harness, 10).await;
    let full = |harness: Arc<Harness>| {
        async move {
            let status = r#"{"status":{"used":{"configmaps":"10"}}}"#;
            assert_eq!(harness.patch(&format!("{QUOTAS}/q/status"), MERGE, status).await.code, 200);
        }
        .boxed()
    };
    let reply = request_during(&harness, "m", full, ("POST", MAPS, &object("ConfigMap", "m", ""))).await;
    assert_eq!(reply.code, 403, "{}", reply.text);
}

#[tokio::test]
async fn a_resource_that_another_process_defined_is_served_immediately() {
    let harness = Harness::open().await;
    let before = harness
        .store
        .cached_snapshot(&Resource::new("apiextensions.k8s.io", "customresourcedefinitions"))
        .unwrap();
    assert_eq!(harness.post(CRDS, &definition(&version("v1", true, PROPERTIES))).await.code, 201);
    accept(&harness).await;
    for (method, body) in [("POST", tab("v1", "")), ("GET", String::new())] {
        harness.store.serve_stale(before.clone());
        let reply = harness.request(method, TABS, JSON, JSON, &body).await;
        assert!(reply.code < 300, "{method}: {reply:?}");
    }
}

#[tokio::test]
async fn a_policy_that_another_process_wrote_applies_immediately() {
    let harness = Harness::open().await;
    let registration = "/apis/admissionregistration.k8s.io/v1";
    let policy = r#"{"metadata":{"name":"p"},"spec":{"validations":[{"expression":"false","message":"no"}],
        "matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]}}}"#;
    let binding = r#"{"metadata":{"name":"b"},"spec":{"policyName":"p","validationActions":["Deny"]}}"#;
    let made = harness.post(&format!("{registration}/validatingadmissionpolicies"), policy).await;
    assert_eq!(made.code, 201, "{made:?}");
    // Loads the policies into the cache.
    assert_eq!(harness.post(MAPS, &object("ConfigMap", "before", "")).await.code, 201);
    let bindings = Resource::new("admissionregistration.k8s.io", "validatingadmissionpolicybindings");
    let before = harness.store.cached_snapshot(&bindings).unwrap();
    let made = harness.post(&format!("{registration}/validatingadmissionpolicybindings"), binding).await;
    assert_eq!(made.code, 201, "{made:?}");
    harness.store.serve_stale(before.clone());
    let reply = harness.post(MAPS, &object("ConfigMap", "m", "")).await;
    assert_eq!(reply.code, 422, "{reply:?}");
    harness.store.serve_stale(before);
    let mut map = Object::from_json(object("ConfigMap", "m", "").as_bytes()).unwrap();
    map.set(&["metadata", "namespace"], "default");
    let (context, options) = (Context::system("controller"), CreateOptions::default());
    let created =
        harness.registry.create(&context, &GroupResource::new("", "configmaps"), map, &options).await;
    assert_eq!(created.unwrap_err().code, 422, "a write that is no request");
}

#[tokio::test]
async fn reviews_and_unknown_resources_do_not_need_the_store() {
    let harness = Harness::open().await;
    let definitions = harness
        .store
        .cached_snapshot(&Resource::new("apiextensions.k8s.io", "customresourcedefinitions"))
        .unwrap();
    let without_store = || {
        harness.store.serve_stale(definitions.clone());
        harness.store.fail_snapshots(1);
    };
    without_store();
    assert_eq!(harness.get(TABS).await.code, 404);
    without_store();
    let review = r#"{"spec":{"user":"u","nonResourceAttributes":{"path":"/","verb":"get"}}}"#;
    let reply = harness.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review).await;
    assert_eq!(reply.code, 201, "{reply:?}");
    assert_eq!(harness.store.failures_left(), 1, "the store is not read for a review");
}
