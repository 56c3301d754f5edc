//! Admission webhooks: the requests they receive, the effects of their responses, and of broken ones.

mod addresses;
mod explain;
mod faults;
mod latencies;
mod load;
mod order;
mod reviews;
pub mod setup;

use http::Request;
use http_body_util::Full;
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Behavior, wait_until};
use serde_json::{Value, json};

use setup::{CONFIGURATIONS, MUTATING, Setup, VALIDATING, map};

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_changed_by_one_webhook_after_another() {
    let setup = Setup::start().await;
    let hook = |name: &str, path: &str| setup.webhook(name, path, &json!({}));
    setup.configure(MUTATING, "b", vec![hook("third", "label/third")]).await;
    let first = vec![hook("first", "label/first"), hook("second", "label/second")];
    setup.configure(MUTATING, "a", first).await;
    let labels = json!({"first": "after", "second": "after-first", "third": "after-first-second"});
    let created = setup.create("m").await;
    assert_eq!(created.json()["metadata"]["labels"], labels, "{}", created.text());
    let stored = setup.admin.get(&format!("{CONFIG_MAPS}/m")).await.json();
    assert_eq!(stored["metadata"]["labels"], labels);
    assert!(stored["metadata"]["uid"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_a_webhook_sets_is_not_stored() {
    let setup = Setup::start().await;
    setup.configure_one(MUTATING, "link", json!({})).await;
    let created = setup.create("m").await;
    assert_eq!(created.status, 201, "{}", created.text());
    assert_eq!(created.json()["metadata"].get("selfLink"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_reinvoked_after_later_changes() {
    let setup = Setup::start().await;
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let hooks =
        vec![setup.webhook("counts", "count", &again), setup.webhook("labels", "label/x", &json!({}))];
    setup.configure(MUTATING, "a", hooks).await;
    let created = setup.create("m").await.json();
    assert_eq!(created["metadata"]["labels"]["count"], "2", "{created}");
    // Controllers write ConfigMaps as well.
    let of_map = setup.reviews().into_iter().filter(|request| request["name"] == "m").count();
    assert_eq!(of_map, 3, "the second webhook is never reinvoked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_reinvokes_webhooks_of_other_configurations() {
    let setup = Setup::start().await;
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let hooks = |first: &str, last: &str, path: &str| {
        vec![setup.webhook(first, &format!("label/{first}"), &again), setup.webhook(last, path, &json!({}))]
    };
    setup.configure(MUTATING, "a", hooks("a1", "a2", "allow")).await;
    setup.configure(MUTATING, "b", hooks("b1", "b0", "label/b0")).await;
    setup.create("m").await;
    let called = setup.hooks.requests().into_iter().filter(|seen| {
        let review: Value = serde_json::from_slice(&seen.body).unwrap();
        review["request"]["name"] == "m"
    });
    let called: Vec<String> =
        called.map(|seen| seen.target.split('?').next().unwrap_or_default().to_owned()).collect();
    let expected = ["label/a1", "allow", "label/b1", "label/b0", "label/a1", "label/b1"];
    assert_eq!(called, expected.map(|path| format!("/admission/{path}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_has_the_webhooks_status() {
    let setup = Setup::start().await;
    setup.configure_one(VALIDATING, "deny", json!({})).await;
    let denied = setup.create("m").await;
    let status = denied.status_body(418, "Teapot");
    assert_eq!(status["message"], r#"admission webhook "hook.example.com" denied the request: not today"#);
    assert_eq!(status["details"]["causes"][0]["message"], "too short");
    let metadata = json!({"selfLink": "/pot", "resourceVersion": "7", "continue": "on", "remainingItemCount": 3,
        "shardInfo": {"selector": "s"}});
    assert_eq!(status["metadata"], metadata);
    assert_eq!(setup.admin.get(&format!("{CONFIG_MAPS}/m")).await.status, 404, "the object is not stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn warnings_and_metrics_report_a_webhook() {
    let setup = Setup::start().await;
    // Controllers write ConfigMaps as well, which would be counted.
    let labelled = json!({"objectSelector": {"matchLabels": {"of": "test"}}});
    setup.configure_one(VALIDATING, "warn", labelled.clone()).await;
    setup.configure(MUTATING, "m", vec![setup.webhook("mutates", "warn", &labelled)]).await;
    let mut own = map("m");
    own["metadata"]["labels"] = json!({"of": "test"});
    let created = setup.admin.post(CONFIG_MAPS, &own).await;
    assert_eq!(created.status, 201);
    let warnings: Vec<_> = created.headers.get_all("warning").iter().collect();
    assert_eq!(warnings.len(), 1, "equal warnings are sent once: {warnings:?}");
    let metrics = setup.admin.get("/metrics").await.text();
    for counted in [
        r#"apiserver_admission_webhook_request_total{name="hook.example.com",type="validating",operation="CREATE",code="200",rejected="false"} 1"#,
        r#"apiserver_admission_webhook_admission_duration_seconds_count{name="mutates.example.com",type="admit",operation="CREATE",rejected="false"} 1"#,
        r#"apiserver_admission_controller_admission_duration_seconds_count{name="ValidatingAdmissionWebhook",type="validate",operation="CREATE",rejected="false"} "#,
        r#"apiserver_admission_step_admission_duration_seconds_count{type="admit",operation="CREATE",rejected="false"} "#,
        r#"apiserver_admission_step_admission_duration_seconds_summary{type="admit",operation="CREATE",rejected="false",quantile="0.99"} "#,
    ] {
        assert!(metrics.contains(counted), "{counted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_that_breaks_the_object_is_refused() {
    let setup = Setup::start().await;
    let table = [
        ("break", 500, "Internal error occurred: json: cannot unmarshal number into Go struct field"),
        ("become/Bogus", 500, "Internal error occurred: no kind \"Bogus\" is registered for version \"v1\""),
        ("misplace", 500, ""),
        ("rename", 400, ""),
    ];
    for (path, code, words) in table {
        setup.configure_one(MUTATING, path, json!({})).await;
        let refused = setup.create("m").await;
        assert_eq!(refused.status, code, "{path}: {}", refused.text());
        assert!(refused.json()["message"].as_str().unwrap().starts_with(words), "{}", refused.text());
        setup.admin.delete(&format!("{CONFIGURATIONS}/{}/hooks", MUTATING.1)).await;
    }
    for namespace in ["default", "kube-system"] {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/m");
        assert_eq!(setup.admin.get(&path).await.status, 404);
    }
    setup.configure_one(VALIDATING, "patch", json!({})).await;
    let refused = setup.create("m").await.json();
    let words = "validating webhook may not return response.patch";
    assert!(refused["message"].as_str().unwrap().ends_with(words), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_is_usable_while_a_webhook_is_called() {
    let setup = Setup::start().await;
    let selected = json!({"objectSelector": {"matchLabels": {"ask": "yes"}}, "timeoutSeconds": 30});
    setup.configure_one(VALIDATING, "allow", selected).await;
    setup.hooks.set_behavior(Behavior::Paused);
    let mut matched = map("asked");
    matched["metadata"]["labels"] = json!({"ask": "yes"});
    let admin = setup.portico.admin();
    let meanwhile = async {
        wait_until("the webhook has received the review", || async { setup.reviews().len() == 1 }).await;
        assert_eq!(setup.create("other").await.status, 201);
        assert_eq!(setup.admin.get(&format!("{CONFIG_MAPS}/other")).await.status, 200);
        assert_eq!(setup.admin.get(&format!("{CONFIG_MAPS}/asked")).await.status, 404);
        setup.hooks.set_behavior(Behavior::Normal);
    };
    let (created, ()) = tokio::join!(admin.post(CONFIG_MAPS, &matched), meanwhile);
    assert_eq!(created.status, 201, "{}", created.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_killed_during_a_webhook_call_is_not_stored() {
    let mut setup = Setup::start().await;
    setup.configure_one(MUTATING, "label/x", json!({"timeoutSeconds": 30})).await;
    setup.hooks.set_behavior(Behavior::Paused);
    let admin = setup.portico.admin();
    let request = Request::post(CONFIG_MAPS).header("content-type", "application/json");
    let request = request.body(Full::from(map("m").to_string())).unwrap();
    let hooks = &setup.hooks;
    let is_called = || async { !hooks.requests().is_empty() };
    let killed = async {
        wait_until("the webhook has received the review", is_called).await;
        setup.portico.kill();
    };
    let (response, ()) = tokio::join!(admin.fetch(request), killed);
    assert!(response.is_err(), "no client got a response that the object is stored");
    setup.hooks.set_behavior(Behavior::Normal);
    setup.portico.restart().await;
    let admin = setup.portico.admin();
    assert_eq!(admin.get(&format!("{CONFIG_MAPS}/m")).await.status, 404);
    let created = admin.post(CONFIG_MAPS, &map("m")).await;
    assert_eq!(created.json()["metadata"]["labels"]["x"], "after", "the configuration is unchanged");
}

#[tokio::test(flavor = "multi_thread")]
async fn match_conditions_select_requests() {
    let setup = Setup::start().await;
    let condition = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let conditions = [
        ("object.metadata.name == 'm'", 418),
        ("object.metadata.name == 'n'", 201),
        ("request.userInfo.username == 'admin' || 'system:masters' in request.userInfo.groups", 418),
        ("authorizer.group('').resource('configmaps').namespace('default').check('delete').allowed()", 418),
        ("authorizer.serviceAccount('default', 'nobody').requestResource == null", 422),
        (
            "!authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').check('get').allowed()",
            418,
        ),
        ("authorizer.requestResource.check('frobnicate').allowed() && request.operation == 'CREATE'", 418),
        ("object.spec.missing == 1", 403),
        ("object.data.k", 422),
        ("'text'", 422),
    ];
    let configurations = format!("{CONFIGURATIONS}/{}", VALIDATING.1);
    for (expression, code) in conditions {
        let webhook = setup.webhook("hook", "deny", &condition(expression));
        let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": VALIDATING.0,
            "metadata": {"name": "hooks"}, "webhooks": [webhook]});
        let created = setup.admin.post(&configurations, &configuration).await;
        if code == 422 {
            assert_eq!(created.status, 422, "{expression}");
            continue;
        }
        assert_eq!(created.status, 201, "{expression}: {}", created.text());
        let answer = setup.admin.post(&format!("{CONFIG_MAPS}?dryRun=All"), &map("m")).await;
        assert_eq!(answer.status, code, "{expression}: {}", answer.text());
        setup.admin.delete(&format!("{configurations}/hooks")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_connections_scales_and_other_versions_are_reviewed() {
    let setup = Setup::start().await;
    let everything =
        json!([{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}]);
    setup.create("m").await;
    let more = json!({"rules": everything, "failurePolicy": "Ignore"});
    setup.configure_one(VALIDATING, "allow", more).await;
    assert_eq!(setup.admin.delete(&format!("{CONFIG_MAPS}/m")).await.status, 200);
    let of_map = |request: &Value| request["name"] == "m" && request["resource"]["resource"] == "configmaps";
    let deleted = setup.reviews().into_iter().find(of_map).unwrap();
    assert_eq!((&deleted["operation"], &deleted["object"]), (&json!("DELETE"), &Value::Null));
    assert_eq!(deleted["oldObject"]["data"], json!({"k": "v"}));
    assert_eq!(deleted["options"]["kind"], "DeleteOptions");
    setup.admin.get("/api/v1/namespaces/default/pods/p/exec?command=sh&command=x&stdout=true").await;
    let connects = |request: &Value| request["operation"] == "CONNECT";
    let connected = setup.reviews().into_iter().find(connects).unwrap();
    let options =
        json!({"kind": "PodExecOptions", "apiVersion": "v1", "command": ["sh", "x"], "stdout": true});
    assert_eq!((&connected["object"], &connected["subResource"]), (&options, &json!("exec")));
    setup.admin.delete(&format!("{CONFIGURATIONS}/{}/hooks", VALIDATING.1)).await;

    let of_v2 = json!({"rules": [{"apiGroups": ["autoscaling"], "apiVersions": ["v2"],
        "resources": ["horizontalpodautoscalers"], "operations": ["CREATE"]}]});
    setup.configure_one(VALIDATING, "deny", of_v2).await;
    let scaler = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}});
    let denied =
        setup.admin.post("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", &scaler).await;
    assert_eq!(denied.status, 418, "{}", denied.text());
    let review = setup.reviews().pop().unwrap();
    assert_eq!((&review["kind"]["version"], &review["requestKind"]["version"]), (&json!("v2"), &json!("v1")));
    assert_eq!(review["object"]["spec"]["metrics"][0]["type"], "Resource", "the object is sent as v2");
}
