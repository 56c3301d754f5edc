//! Write pipeline: every write passes mutating admission before validation, and validating admission after it,
//! with the same attributes.

use std::sync::Arc;

use portico_auth::authz::AlwaysAllow;
use portico_machinery::{GroupResource, Object, RequestInfo, UserInfo};
use portico_registry::{
    Call, Context, CreateOptions, DeleteOptions, ListOptions, ObjectPart, ObjectPath, Patch, PatchOptions,
    Target, UpdateOptions,
};

use crate::harness::{Harness, JSON, MERGE, object};
use crate::test_doubles::{NoBackends, Recorder};

const APPLY: &str = "application/apply-patch+yaml";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

struct AdmissionTrace {
    harness: Harness,
    recorder: Arc<Recorder>,
}

impl AdmissionTrace {
    async fn open() -> Self {
        let recorder = Arc::new(Recorder::default());
        let harness = Harness::open_with_admission(recorder.clone(), Arc::new(AlwaysAllow)).await;
        recorder.take();
        Self { harness, recorder }
    }

    /// Sends a request, which must succeed, and compares the recorded calls of admission.
    async fn expect_admission_calls(&self, request: [&str; 4], expected: &[&str]) {
        let [method, url, media, body] = request;
        let reply = self.harness.request(method, url, JSON, media, body).await;
        assert!((200..300).contains(&reply.code), "{method} {url}: {reply:?}");
        self.expect_calls(&format!("{method} {url}"), expected);
    }

    fn expect_calls(&self, what: &str, expected: &[&str]) {
        assert_eq!(self.recorder.take(), expected, "{what}");
    }
}

/// Calls of mutating and validating admission, and the commit, of a write by `admin`.
fn write_calls(what: &str, old: u8) -> Vec<String> {
    ["mutate", "validate", "commit"].map(|step| format!("{step} {what} new=1 old={old} by admin")).into()
}

/// Calls of mutating and validating admission without a commit.
fn admission_calls(what: &str, new: u8) -> Vec<String> {
    ["mutate", "validate"].map(|step| format!("{step} {what} new={new} old=0 by admin")).into()
}

fn texts(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

fn pod(name: &str) -> String {
    object("Pod", name, r#","spec":{"containers":[{"name":"c","image":"i"}]}"#)
}

#[tokio::test]
async fn objects_and_subresources_pass_every_step() {
    let trace = AdmissionTrace::open().await;
    let map = object("ConfigMap", "m", "");
    let of_map = |operation: &str| format!("{operation} configmaps/ default/m");
    trace
        .expect_admission_calls(["POST", MAPS, JSON, &map], &texts(&write_calls(&of_map("Create"), 0)))
        .await;
    let url = format!("{MAPS}/m");
    let with = |value: &str| object("ConfigMap", "m", &format!(r#","data":{{"k":"{value}"}}"#));
    trace
        .expect_admission_calls(["PUT", &url, JSON, &with("put")], &texts(&write_calls(&of_map("Update"), 1)))
        .await;
    let patch = r#"{"data":{"k":"patched"}}"#;
    trace
        .expect_admission_calls(["PATCH", &url, MERGE, patch], &texts(&write_calls(&of_map("Update"), 1)))
        .await;
    let apply = format!("{url}?fieldManager=f&force=true");
    trace
        .expect_admission_calls(
            ["PATCH", &apply, APPLY, &with("applied")],
            &texts(&write_calls(&of_map("Update"), 1)),
        )
        .await;
    let made = format!("{MAPS}/n?fieldManager=f");
    let of_new = write_calls("Create configmaps/ default/n", 0);
    trace
        .expect_admission_calls(["PATCH", &made, APPLY, &object("ConfigMap", "n", "")], &texts(&of_new))
        .await;
    let namespace = object("Namespace", "other", "");
    trace
        .expect_admission_calls(
            ["POST", "/api/v1/namespaces", JSON, &namespace],
            &texts(&write_calls("Create namespaces/ /other", 0)),
        )
        .await;
    let status = r#"{"status":{"conditions":[{"type":"A","status":"True"}]}}"#;
    trace
        .expect_admission_calls(
            ["PATCH", "/api/v1/namespaces/other/status", MERGE, status],
            &texts(&write_calls("Update namespaces/status /other", 1)),
        )
        .await;
}

#[tokio::test]
async fn a_dry_run_passes_admission_as_a_dry_run_and_commits_nothing() {
    let trace = AdmissionTrace::open().await;
    let expected = ["mutate", "validate", "quota"]
        .map(|step| format!("{step} Create configmaps/ default/m new=1 old=0 by admin dry run"));
    let url = format!("{MAPS}?dryRun=All");
    trace
        .expect_admission_calls(["POST", &url, JSON, &object("ConfigMap", "m", "")], &texts(&expected))
        .await;
}

#[tokio::test]
async fn admission_of_a_delete_sees_the_current_object() {
    let trace = AdmissionTrace::open().await;
    for name in ["a", "b", "c"] {
        trace.harness.post(MAPS, &object("ConfigMap", name, "")).await;
    }
    trace.recorder.take();
    let expected = [
        "mutate Delete configmaps/ default/a new=0 old=1 by admin",
        "validate Delete configmaps/ default/a new=0 old=1 by admin",
    ];
    trace.expect_admission_calls(["DELETE", &format!("{MAPS}/a"), "", ""], &expected).await;
    let of_each =
        ["mutate", "validate"].map(|step| format!("{step} Delete configmaps/ default/ new=0 old=1 by admin"));
    trace
        .expect_admission_calls(["DELETE", MAPS, "", ""], &texts(&[of_each.clone(), of_each].concat()))
        .await;
}

#[tokio::test]
async fn admission_of_a_scale_sees_the_scale() {
    let trace = AdmissionTrace::open().await;
    let template = r#"{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    let spec = format!(r#","spec":{{"selector":{{"matchLabels":{{"a":"b"}}}},"template":{template}}}"#);
    let deployment = object("Deployment", "d", &spec).replace(r#""v1""#, r#""apps/v1""#);
    assert_eq!(trace.harness.post(DEPLOYMENTS, &deployment).await.code, 201);
    trace.recorder.take();
    let scale = format!("{DEPLOYMENTS}/d/scale");
    let expected = write_calls("Update deployments/scale default/d", 1);
    trace
        .expect_admission_calls(["PATCH", &scale, MERGE, r#"{"spec":{"replicas":3}}"#], &texts(&expected))
        .await;
    let read = trace.harness.get(&scale).await.text.replace(r#""replicas":3"#, r#""replicas":2"#);
    trace.expect_admission_calls(["PUT", &scale, JSON, &read], &texts(&expected)).await;
}

#[tokio::test]
async fn admission_of_an_action_sees_its_kind() {
    let trace = AdmissionTrace::open().await;
    for name in ["p", "q"] {
        assert_eq!(trace.harness.post(PODS, &pod(name)).await.code, 201);
    }
    trace.recorder.take();
    let bind = |name: &str| object("Binding", name, r#","target":{"kind":"Node","name":"n"}"#);
    let expected = admission_calls("Create pods/binding default/p", 1);
    trace
        .expect_admission_calls(["POST", &format!("{PODS}/p/binding"), JSON, &bind("p")], &texts(&expected))
        .await;
    let expected = admission_calls("Create bindings/ default/q", 1);
    let bindings = "/api/v1/namespaces/default/bindings";
    trace.expect_admission_calls(["POST", bindings, JSON, &bind("q")], &texts(&expected)).await;
    let eviction = object("Eviction", "p", "").replace(r#""v1""#, r#""policy/v1""#);
    let expected = admission_calls("Create pods/eviction default/p", 1);
    trace
        .expect_admission_calls(["POST", &format!("{PODS}/p/eviction"), JSON, &eviction], &texts(&expected))
        .await;
    let review = r#"{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1",
        "spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}"#;
    let expected = admission_calls("Create selfsubjectaccessreviews/ /", 1);
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    trace.expect_admission_calls(["POST", reviews, JSON, review], &texts(&expected)).await;
}

#[tokio::test]
async fn admission_skips_only_the_reviews_that_a_facade_sends_for_itself() {
    let trace = AdmissionTrace::open().await;
    let review = |kind: &str, group: &str, spec: &str| {
        format!(r#"{{"kind":"{kind}","apiVersion":"{group}/v1","spec":{spec}}}"#)
    };
    let access = r#"{"user":"x","nonResourceAttributes":{"path":"/","verb":"get"}}"#;
    let local = r#"{"user":"x","resourceAttributes":{"namespace":"default","verb":"get","resource":"pods"}}"#;
    let (authentication, authorization) = ("authentication.k8s.io", "authorization.k8s.io");
    let path = |group: &str, rest: &str| format!("/apis/{group}/v1/{rest}");
    let local_expected = admission_calls("Create localsubjectaccessreviews/ default/", 1);
    for (url, body, expected) in [
        (
            path(authentication, "tokenreviews"),
            review("TokenReview", authentication, r#"{"token":"t"}"#),
            vec![],
        ),
        (
            path(authorization, "subjectaccessreviews"),
            review("SubjectAccessReview", authorization, access),
            vec![],
        ),
        (
            path(authorization, "namespaces/default/localsubjectaccessreviews"),
            review("LocalSubjectAccessReview", authorization, local),
            local_expected,
        ),
        (MAPS.to_owned(), object("ConfigMap", "m", ""), write_calls("Create configmaps/ default/m", 0)),
    ] {
        let info = RequestInfo::parse("POST", &url, "").unwrap();
        let call = Call {
            user: UserInfo::new("admin", ["system:masters"]),
            target: Target::from_request_info(&info),
            verb: info.verb.clone(),
            body: body.into(),
            content_type: JSON.to_owned(),
            accept: JSON.to_owned(),
            own_account: true,
            ..Call::default()
        };
        assert_eq!(trace.harness.registry.serve(call).await.code, 201, "{url}");
        trace.expect_calls(&url, &texts(&expected));
    }
}

#[tokio::test]
async fn admission_of_an_approval_sees_the_subresource() {
    let trace = AdmissionTrace::open().await;
    let pem = rcgen_request();
    let body = format!(
        r#"{{"kind":"CertificateSigningRequest","apiVersion":"certificates.k8s.io/v1","metadata":{{"name":"r"}},
        "spec":{{"request":"{pem}","signerName":"example.com/s","usages":["client auth"]}}}}"#
    );
    let created = trace.harness.post(REQUESTS, &body).await;
    assert_eq!(created.code, 201, "{created:?}");
    trace.recorder.take();
    let approved = created.text.replace(
        r#""status":{}"#,
        r#""status":{"conditions":[{"type":"Approved","status":"True","reason":"r","message":"m"}]}"#,
    );
    let expected = write_calls("Update certificatesigningrequests/approval /r", 1);
    trace
        .expect_admission_calls(
            ["PUT", &format!("{REQUESTS}/r/approval"), JSON, &approved],
            &texts(&expected),
        )
        .await;
}

/// Certificate request in base64, as in an object.
fn rcgen_request() -> String {
    use base64::Engine as _;
    let key = rcgen::KeyPair::generate().unwrap();
    let request = rcgen::CertificateParams::default().serialize_request(&key).unwrap();
    base64::engine::general_purpose::STANDARD.encode(request.pem().unwrap())
}

#[tokio::test]
async fn admission_of_a_connection_runs_before_the_dial() {
    let trace = AdmissionTrace::open().await;
    assert_eq!(trace.harness.post(PODS, &pod("p")).await.code, 201);
    trace.recorder.take();
    let info = RequestInfo::parse("GET", &format!("{PODS}/p/exec"), "command=sh&stdout=true").unwrap();
    let call = Call {
        user: UserInfo::new("admin", ["system:masters"]),
        target: Target::from_request_info(&info),
        verb: "get".to_owned(),
        query: "command=sh&stdout=true".to_owned(),
        watch_prefix: false,
        body: Default::default(),
        content_type: String::new(),
        accept: String::new(),
        user_agent: "suite".to_owned(),
        audit_detail: portico_registry::AuditDetail::Nothing,
        own_account: false,
    };
    // The pod is not assigned to a node: admission runs before that check.
    drop(trace.harness.registry.connect(call, &NoBackends).await);
    trace.expect_calls("exec", &texts(&admission_calls("Connect pods/exec default/p", 1)));
}

#[tokio::test]
async fn typed_verbs_pass_the_same_steps_as_requests() {
    let trace = AdmissionTrace::open().await;
    let registry = &trace.harness.registry;
    let (context, maps) = (Context::system("controller"), GroupResource::new("", "configmaps"));
    let by = |lines: Vec<String>| {
        lines.into_iter().map(|line| line.replace("by admin", "by controller")).collect::<Vec<_>>()
    };
    let read = |value: &str| {
        let data = format!(
            r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"m","namespace":"default"}},"data":{{"k":"{value}"}}}}"#
        );
        Object::from_json(data.as_bytes()).unwrap()
    };
    let path = ObjectPath { part: ObjectPart::Main, namespace: "default", name: "m" };
    registry.create(&context, &maps, read("a"), &CreateOptions::default()).await.unwrap();
    trace.expect_calls("create", &texts(&by(write_calls("Create configmaps/ default/m", 0))));
    registry.update(&context, &maps, ObjectPart::Main, read("b"), &UpdateOptions::default()).await.unwrap();
    let updated = by(write_calls("Update configmaps/ default/m", 1));
    trace.expect_calls("update", &texts(&updated));
    let patch = Patch::Merge(br#"{"data":{"k":"c"}}"#.as_slice().into());
    registry.patch(&context, &maps, path, &patch, &PatchOptions::default()).await.unwrap();
    trace.expect_calls("patch", &texts(&updated));
    let forced = PatchOptions { force: Some(true), ..PatchOptions::default() };
    registry.apply(&context, &maps, path, &read("d").to_json(), &forced).await.unwrap();
    trace.expect_calls("apply", &texts(&updated));
    registry.delete(&context, &maps, "default", "m", &DeleteOptions::default()).await.unwrap();
    let deleted = [
        "mutate Delete configmaps/ default/m new=0 old=1 by controller",
        "validate Delete configmaps/ default/m new=0 old=1 by controller",
    ];
    trace.expect_calls("delete", &deleted);
    let all = registry.list(&maps, "default", &ListOptions::default()).await.unwrap().items;
    registry.delete_collection(&context, &maps, "default", &all, &DeleteOptions::default()).await.unwrap();
    trace.expect_calls("delete collection", &[]);
}
