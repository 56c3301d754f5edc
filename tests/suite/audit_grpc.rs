//! Audit of gRPC: calls of native clients have events like requests over HTTP, and forwarded calls have only one event.

use std::path::Path;

use portico_proto::admin::MetricsRequest;
use portico_proto::apiregistration::{ApiService, ApiServiceSpec, CreateRequest, ObjectMeta};
use portico_proto::client::{Client, Credentials};
use portico_proto::objects::{Call, DoRequest, ListRequest, Target, WatchRequest};
use portico_tests::{Launch, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use tonic::{Code, Request};

use crate::audit::{events, lines, with_audit_log};

const EVERYTHING: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n";

/// Returns a call for config maps of the default namespace.
fn config_maps(verb: &str, name: &str) -> Option<Call> {
    let target = Target {
        version: "v1".into(),
        resource: "configmaps".into(),
        namespace: "default".into(),
        name: name.into(),
        ..Target::default()
    };
    Some(Call { target: Some(target), verb: verb.into(), ..Call::default() })
}

fn named<T>(message: T, audit_id: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("audit-id", audit_id.parse().unwrap());
    request
}

async fn create(client: &Client, name: &str, audit_id: &str) {
    let mut call = config_maps("create", "").unwrap();
    call.body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).to_string().into();
    let answer = client.objects().r#do(named(DoRequest { call: Some(call) }, audit_id)).await.unwrap();
    assert_eq!(answer.metadata().get("audit-id").unwrap(), audit_id);
    assert_eq!(answer.into_inner().code, 201);
}

/// Checks the stages of a call; returns its last event.
async fn stages(log: &Path, audit_id: &str, expected: &[&str]) -> Value {
    let found = events(log, audit_id, expected.len()).await;
    let stages: Vec<&str> = found.iter().map(|event| event["stage"].as_str().unwrap()).collect();
    assert_eq!(stages, expected, "{audit_id}: {found:?}");
    found.last().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_for_objects_are_events_of_the_verb_and_object_of_their_message() {
    let (launch, log) = with_audit_log(Launch::new(), EVERYTHING);
    let portico = launch.start().await;
    let client = portico.control_as("admin");

    create(&client, "made", "create-1").await;
    // Events are written before the response.
    assert_eq!(lines(&log).iter().filter(|event| event["auditID"] == "create-1").count(), 2);
    let event = stages(&log, "create-1", &["RequestReceived", "ResponseComplete"]).await;
    assert_eq!((&event["verb"], &event["level"]), (&json!("create"), &json!("RequestResponse")));
    assert_eq!(event["requestURI"], "/portico.objects.v1.Objects/Do");
    assert_eq!(event["user"]["username"], "admin");
    assert_eq!(event["sourceIPs"], json!(["127.0.0.1"]));
    assert!(event["userAgent"].as_str().unwrap().contains("tonic"), "{event}");
    let reference =
        json!({"resource": "configmaps", "namespace": "default", "name": "made", "apiVersion": "v1"});
    assert_eq!(event["objectRef"], reference);
    assert_eq!(event["responseStatus"], json!({"metadata": {}, "code": 201}));
    assert_eq!(event["requestObject"]["metadata"]["name"], "made");
    assert!(event["responseObject"]["metadata"]["uid"].is_string(), "{event}");
    assert_eq!(event["annotations"]["authorization.k8s.io/decision"], "allow");

    let get = DoRequest { call: config_maps("get", "made") };
    client.objects().r#do(named(get, "get-1")).await.unwrap();
    let event = stages(&log, "get-1", &["RequestReceived", "ResponseComplete"]).await;
    assert_eq!((&event["verb"], &event["responseStatus"]["code"]), (&json!("get"), &json!(200)));
    assert_eq!(event["responseObject"]["metadata"]["name"], "made");

    let list = ListRequest { call: config_maps("list", "") };
    let mut parts = client.objects().list(named(list, "list-1")).await.unwrap().into_inner();
    while parts.message().await.unwrap().is_some() {}
    let event = stages(&log, "list-1", &["RequestReceived", "ResponseComplete"]).await;
    assert_eq!(event["responseObject"]["kind"], "ConfigMapList");

    let missing = DoRequest { call: config_maps("get", "missing") };
    let refused = client.objects().r#do(named(missing, "missing-1")).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let event = stages(&log, "missing-1", &["RequestReceived", "ResponseComplete"]).await;
    assert_eq!(
        (&event["responseStatus"]["code"], &event["responseStatus"]["reason"]),
        (&json!(404), &json!("NotFound"))
    );
    assert_eq!(event["responseObject"]["kind"], "Status");
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_events_are_complete_after_disconnect_and_shutdown() {
    let (launch, log) = with_audit_log(Launch::new(), EVERYTHING);
    let mut portico = launch.start().await;
    let client = portico.control();
    let watch = |name| named(WatchRequest { call: config_maps("watch", "") }, name);
    let mut steps = client.objects().watch(watch("watch-1")).await.unwrap().into_inner();
    assert!(steps.message().await.unwrap().is_some());
    let event = stages(&log, "watch-1", &["RequestReceived", "ResponseStarted"]).await;
    assert_eq!(event["responseStatus"]["code"], 200);
    drop(steps);
    stages(&log, "watch-1", &["RequestReceived", "ResponseStarted", "ResponseComplete"]).await;

    let mut steps = client.objects().watch(watch("watch-2")).await.unwrap().into_inner();
    assert!(steps.message().await.unwrap().is_some());
    portico.signal(Signal::TERM);
    eventually("the server has exited", || {
        let runs = portico.is_running();
        async move { if runs { Err(()) } else { Ok(()) } }
    })
    .await;
    stages(&log, "watch-2", &["RequestReceived", "ResponseStarted", "ResponseComplete"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_and_other_methods_are_events_of_their_paths_or_objects() {
    let (launch, log) = with_audit_log(Launch::new(), EVERYTHING);
    let portico = launch.start().await;
    let carol = portico.control_as("carol");

    let get = DoRequest { call: config_maps("get", "made") };
    let refused = carol.objects().r#do(named(get, "refused-1")).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let event = stages(&log, "refused-1", &["RequestReceived", "ResponseComplete"]).await;
    assert_eq!((&event["user"]["username"], &event["verb"]), (&json!("carol"), &json!("get")));
    assert_eq!(event["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(event["responseStatus"]["message"], refused.message());
    assert_eq!(event["responseStatus"]["code"], 403);

    let metrics = MetricsRequest::default;
    portico.control().admin().metrics(named(metrics(), "metrics-1")).await.unwrap();
    let event = stages(&log, "metrics-1", &["RequestReceived", "ResponseComplete"]).await;
    assert_eq!((&event["verb"], &event["objectRef"]), (&json!("post"), &Value::Null));
    assert_eq!(event["requestURI"], "/portico.admin.v1.Admin/Metrics");
    assert_eq!(event["responseStatus"]["code"], 200);
    carol.admin().metrics(named(metrics(), "metrics-2")).await.unwrap_err();
    let event = stages(&log, "metrics-2", &["RequestReceived", "ResponseComplete"]).await;
    assert_eq!(event["responseStatus"]["code"], 403);

    let untrusted = portico.control_with(Credentials::Token("wrong".into()));
    let untrusted = Client::connect(&untrusted).unwrap();
    untrusted.admin().metrics(named(metrics(), "stranger-1")).await.unwrap_err();
    let event = stages(&log, "stranger-1", &["ResponseStarted"]).await;
    assert_eq!((&event["responseStatus"]["code"], &event["user"]), (&json!(401), &json!({})));
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_calls_have_the_json_of_their_messages() {
    let (launch, log) = with_audit_log(Launch::new(), EVERYTHING);
    let portico = launch.start().await;
    let metadata = ObjectMeta { name: "v1.typed.example.com".into(), ..Default::default() };
    let spec = ApiServiceSpec {
        group: "typed.example.com".into(),
        version: "v1".into(),
        group_priority_minimum: 1000,
        version_priority: 10,
        ..Default::default()
    };
    let api_service = Some(ApiService { metadata: Some(metadata), spec: Some(spec), status: None });
    let request = CreateRequest { api_service, dry_run: false };
    portico.control().api_services().create(named(request, "typed-1")).await.unwrap();
    let event = stages(&log, "typed-1", &["RequestReceived", "ResponseComplete"]).await;
    assert_eq!(
        (&event["verb"], &event["responseStatus"]["code"]),
        (&json!("create"), &json!(201)),
        "{event}"
    );
    assert_eq!(event["objectRef"]["resource"], "apiservices");
    assert_eq!(event["objectRef"]["name"], "v1.typed.example.com");
    assert_eq!(event["requestObject"]["spec"]["group"], "typed.example.com");
    assert!(event["responseObject"]["metadata"]["uid"].is_string(), "{event}");
}

/// Counts the events that name this config map.
fn count_events(log: &Path, name: &str) -> usize {
    let found = lines(log).into_iter().filter(|event| event["objectRef"]["name"] == name);
    found.filter(|event| event["stage"] == "ResponseComplete").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_service_audits_only_native_calls() {
    let (launch, of_server) = with_audit_log(Launch::server(), EVERYTHING);
    let server = launch.start().await;
    let (launch, of_facade) = with_audit_log(Launch::facade(&server), EVERYTHING);
    let facade = launch.start().await;
    let object = json!({"metadata": {"name": "forwarded"}});
    let answer = facade.admin().post("/api/v1/namespaces/default/configmaps", &object).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    create(&server.control(), "native", "native-1").await;
    stages(&of_server, "native-1", &["RequestReceived", "ResponseComplete"]).await;
    assert_eq!((count_events(&of_facade, "forwarded"), count_events(&of_server, "forwarded")), (1, 0));
    assert_eq!((count_events(&of_facade, "native"), count_events(&of_server, "native")), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_in_one_has_one_log_for_both_halves() {
    let (launch, log) = with_audit_log(Launch::new(), EVERYTHING);
    let portico = launch.start().await;
    let object = json!({"metadata": {"name": "forwarded"}});
    let answer = portico.admin().post("/api/v1/namespaces/default/configmaps", &object).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    create(&portico.control(), "native", "native-1").await;
    assert_eq!((count_events(&log, "forwarded"), count_events(&log, "native")), (1, 1));
}
