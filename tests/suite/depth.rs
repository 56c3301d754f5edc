//! Objects of the maximum depth are written, read, watched, converted, audited and restored; deeper ones are refused everywhere.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use portico_tests::http::{FullResponse, Http};
use portico_tests::objects::DEFINITIONS;
use portico_tests::{Backend, Launch, Portico, wait_until};
use serde_json::{Value, json};

use crate::audit::with_audit_log;
use crate::copies::done;
use crate::history::{prints, verb};

/// Maximum levels of an object, including managed fields.
const MAX_DEPTH: usize = 500;
/// Maximum levels of a field of such an object: managed fields repeat the field below five levels, and
/// its leaf is one more level.
const MAX_FIELD_DEPTH: usize = MAX_DEPTH - 6;
const JSON: &str = "application/json";

/// Returns a value nested to this depth.
fn nested(levels: usize, leaf: &str) -> String {
    format!("{}{leaf}{}", "{\"a\":".repeat(levels), "}".repeat(levels))
}

fn path(plural: &str) -> String {
    format!("/apis/{plural}.example.com/v1/{plural}")
}

/// Returns an object with a field of this depth.
fn object(plural: &str, name: &str, levels: usize) -> String {
    let (metadata, field) = (json!({"name": name}), nested(levels, "1"));
    format!(r#"{{"apiVersion":"{plural}.example.com/v1","kind":"Deep","metadata":{metadata},"a":{field}}}"#)
}

/// Returns a definition with a schema, as text: it may be too deep for `serde_json`.
fn definition(plural: &str, schema: &str, conversion: &Value) -> String {
    let version = |name: &str, stored: bool| {
        format!(
            r#"{{"name":"{name}","served":true,"storage":{stored},"schema":{{"openAPIV3Schema":{schema}}}}}"#
        )
    };
    let versions = [version("v1", true), version("v2", false)].join(",");
    let names = json!({"plural": plural, "kind": "Deep"});
    let spec = format!(
        r#"{{"group":"{plural}.example.com","scope":"Cluster","names":{names},"conversion":{conversion},"versions":[{versions}]}}"#
    );
    let head = r#""apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition""#;
    format!(r#"{{{head},"metadata":{{"name":"{plural}.{plural}.example.com"}},"spec":{spec}}}"#)
}

async fn define(admin: &Http, definition: String) -> FullResponse {
    admin.request(Method::POST, DEFINITIONS, JSON, definition).await
}

/// Returns schemas that keep the field of the deepest object.
fn schemas() -> [(&'static str, String); 3] {
    // A schema is below six levels of its definition.
    const LEVELS: usize = MAX_DEPTH - 20;
    let open = r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#;
    let rule = r#""x-kubernetes-validations":[{"rule":"has(self.a) && self.a == self.a"}]"#;
    let within = |schema: &str| format!(r#"{{"type":"object","properties":{{"a":{schema}}},{rule}}}"#);
    let property = r#"{"type":"object","properties":{"a":"#;
    let value = r#"{"type":"object","additionalProperties":"#;
    let (properties, values) = (LEVELS / 2, LEVELS);
    [
        ("opens", open.to_owned()),
        ("properties", within(&format!("{}{open}{}", property.repeat(properties), "}}".repeat(properties)))),
        ("maps", within(&format!("{}{open}{}", value.repeat(values), "}".repeat(values)))),
    ]
}

fn version_of(object: &str) -> &str {
    object.split("\"resourceVersion\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap()
}

async fn writes(admin: &Http, plural: &str) {
    let (path, field) = (path(plural), nested(MAX_FIELD_DEPTH, "1"));
    let one = format!("{path}/one");
    let post = async || {
        admin.request(Method::POST, &path, JSON, object(plural, "one", MAX_FIELD_DEPTH)).await.status == 201
    };
    wait_until("an object of the maximum depth is stored", post).await;
    let read = admin.get(&one).await.text();
    assert!(read.contains("\"managedFields\":[{"), "{plural} {read}");
    let whole = admin.request(Method::PUT, &one, JSON, read.clone()).await;
    assert_eq!(whole.status, 200, "an object that was read can be written: {}", whole.text());
    let operations = format!(r#"[{{"op":"add","path":"/a","value":{field}}}]"#);
    for (method, query, media_type, body) in [
        (
            Method::PUT,
            "?fieldValidation=Strict",
            JSON,
            object(plural, "one", MAX_FIELD_DEPTH).replace(
                "\"one\"",
                &format!("\"one\",\"resourceVersion\":\"{}\"", version_of(&whole.text())),
            ),
        ),
        (Method::PATCH, "", "application/merge-patch+json", format!(r#"{{"a":{field},"b":"c"}}"#)),
        (Method::PATCH, "?dryRun=All", "application/json-patch+json", operations.clone()),
        (Method::PATCH, "", "application/json-patch+json", operations),
    ] {
        let answer = admin.request(method, &format!("{one}{query}"), media_type, body).await;
        assert_eq!(answer.status, 200, "{plural} {media_type}: {}", answer.text());
    }
    for manager in ["x", "y", "z"] {
        let path = format!("{one}?fieldManager={manager}&force=true");
        let body = object(plural, "one", MAX_FIELD_DEPTH);
        let answer = admin.request(Method::PATCH, &path, "application/apply-patch+yaml", body).await;
        assert_eq!(answer.status, 200, "{plural} {manager}: {}", answer.text());
    }
    let other = object(plural, "one", MAX_FIELD_DEPTH).replace("\"a\":1}", "\"a\":2}");
    let path = format!("{one}?fieldManager=other");
    let conflict = admin.request(Method::PATCH, &path, "application/apply-patch+yaml", other).await;
    assert_eq!(conflict.status, 409, "{}", conflict.text());
}

async fn reads(admin: &Http, plural: &str) {
    let path = path(plural);
    let one = format!("{path}/one");
    let length = admin.get(&one).await.body.len();
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let watch = format!("{path}?watch=true&timeoutSeconds=5");
    let deepest = "{\"a\":{\"a\":1}}";
    for (path, accept, text) in [
        (&one, JSON, deepest),
        (&path, JSON, deepest),
        (&watch, JSON, deepest),
        (&one, "application/yaml", "{\"a\": {\"a\": 1}}"),
        (&path, "application/yaml", "{\"a\": {\"a\": 1}}"),
        (&format!("{one}?pretty=true"), JSON, deepest),
        (&format!("{path}?pretty=true"), JSON, deepest),
        (&one, table, "columnDefinitions"),
        (&format!("{path}?includeObject=Object"), table, deepest),
        (&format!("{watch}&includeObject=Object"), table, deepest),
        (&path.replace("/v1/", "/v2/"), JSON, deepest),
    ] {
        let answer = admin.get_as(path, accept).await;
        let body = answer.text();
        assert!(answer.status == 200 && body.contains(text), "{path} {accept}: {body}");
        // Each of four managed fields and of the object has a hundred levels with separate lines.
        assert!(body.len() < 2 * length + 5 * 2 * 200 * 100, "{path} {accept}: {length} -> {}", body.len());
    }
}

/// Checks that deeper objects are refused, and not stored.
async fn refusals(admin: &Http) {
    let path = path("opens");
    let one = format!("{path}/one");
    let before = admin.get(&one).await.body;
    for levels in [MAX_FIELD_DEPTH + 1, MAX_DEPTH, 2 * MAX_DEPTH, 500_000] {
        let body = object("opens", "two", levels);
        for media_type in [JSON, "application/yaml"] {
            let refused = admin.request(Method::POST, &path, media_type, body.clone()).await;
            refused.status_body(400, "BadRequest");
        }
        let merge = format!("{{\"a\":{}}}", nested(levels, "1"));
        for (path, media_type, body) in [
            (one.clone(), "application/merge-patch+json", merge),
            (
                format!("{one}?fieldManager=x&force=true"),
                "application/apply-patch+yaml",
                object("opens", "one", levels),
            ),
        ] {
            let refused = admin.request(Method::PATCH, &path, media_type, body).await;
            assert_eq!(refused.status, 400, "{levels} {media_type}: {}", refused.text());
        }
    }
    let end = "/a".repeat(MAX_FIELD_DEPTH);
    let copies: Vec<_> = (0..20).map(|_| json!({"op": "copy", "from": "/a/a", "path": end})).collect();
    let patched =
        admin.request(Method::PATCH, &one, "application/json-patch+json", json!(copies).to_string()).await;
    assert_eq!(patched.status, 422, "{}", patched.text());
    assert_eq!(admin.get(&one).await.body, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_the_maximum_depth_pass_and_deeper_ones_are_refused() {
    let (launch, log) = with_audit_log(
        Launch::new().arg("--history-retention=1h"),
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n",
    );
    let mut portico = launch.start().await;
    let admin = portico.admin();
    check_objects(&admin).await;
    for (plural, schema) in schemas() {
        let created = define(&admin, definition(plural, &schema, &json!({"strategy": "None"}))).await;
        assert_eq!(created.status, 201, "{plural} {}", created.text());
        writes(&admin, plural).await;
        reads(&admin, plural).await;
    }
    refusals(&admin).await;
    for path in
        ["/openapi/v3/apis/maps.example.com/v1", "/openapi/v3/apis/properties.example.com/v1", "/openapi/v2"]
    {
        for accept in [
            JSON,
            "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        ] {
            let status = admin.get_as(path, accept).await.status.as_u16();
            assert!(status == 200 || status == 406, "{path} {accept}: {status}");
        }
    }
    let deeper = format!(
        r#"{{"type":"object","properties":{{"a":{}{{}}{}}}}}"#,
        r#"{"type":"object","additionalProperties":"#.repeat(MAX_DEPTH),
        "}".repeat(MAX_DEPTH)
    );
    define(&admin, definition("deepers", &deeper, &json!({"strategy": "None"})))
        .await
        .status_body(400, "BadRequest");
    let audited = std::fs::read_to_string(&log).unwrap();
    let recorded =
        |line: &&str| line.contains("\"responseObject\":") && line.contains(&nested(MAX_FIELD_DEPTH, "1"));
    assert!(audited.lines().filter(recorded).count() > 10, "audit events have the objects");
    past_states(&portico).await;
    assert_eq!(admin.delete(&format!("{}/one", path("maps"))).await.status, 200);
    assert_eq!(admin.delete(&path("properties")).await.status, 200);
    assert_eq!(admin.get("/readyz").await.text(), "ok");
    assert!(portico.is_running() && !portico.log().contains("panicked"), "{}", portico.log());
}

/// Writes policies whose expressions traverse objects.
async fn check_objects(admin: &Http) {
    let group = "/apis/admissionregistration.k8s.io/v1";
    let rules = json!([{"apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["opens", "maps", "properties"], "operations": ["*"]}]);
    let expressions = [
        "request.operation == 'DELETE' || has(object.a.a.a)",
        "request.operation != 'UPDATE' || object.a == oldObject.a || object.a != oldObject.a",
    ];
    let validations: Vec<_> = expressions.iter().map(|text| json!({"expression": text})).collect();
    let policy = json!({"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": rules}, "validations": validations}});
    let binding =
        json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    for (resource, object) in
        [("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)]
    {
        let created = admin.post(&format!("{group}/{resource}"), &object).await;
        assert_eq!(created.status, 201, "{}", created.text());
    }
}

/// Checks that the command line shows and restores past states.
async fn past_states(portico: &Portico) {
    for line in [
        "get opens.opens.example.com one -o yaml --show-managed-fields",
        "history opens.opens.example.com one -o json",
    ] {
        let printed = prints(portico, line);
        assert!(printed.contains("\"a\""), "{line}: {printed}");
    }
    let (code, difference, error) = verb(portico, "diff opens.opens.example.com one");
    assert!(code < 2, "{difference} {error}");
    let one = format!("{}/one", path("opens"));
    let admin = portico.admin();
    let revision = version_of(&admin.get(&one).await.text()).to_owned();
    assert_eq!(admin.delete(&one).await.status, 200);
    prints(portico, &format!("rollback opens.opens.example.com one --to-revision {revision}"));
    assert!(admin.get(&one).await.text().contains(&nested(MAX_FIELD_DEPTH, "1")));
    let file = portico.folder().join("three.json");
    std::fs::write(&file, object("opens", "three", MAX_FIELD_DEPTH)).unwrap();
    let applied = prints(portico, &format!("apply -f {} -o yaml", file.display()));
    assert!(applied.contains("name: three"), "{applied}");
    let (launch, target_folder) = Launch::new().prepare_folder();
    done(portico.folder(), &["backup", "--to", "copy", "--data-dir", "data"]).await;
    let copy = portico.folder().join("copy");
    done(&target_folder, &["restore", "--from", copy.to_str().unwrap(), "--data-dir", "data"]).await;
    let restored = launch.start().await;
    assert!(restored.admin().get(&one).await.text().contains(&nested(MAX_FIELD_DEPTH, "1")));
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_webhooks_make_too_deep_are_refused() {
    let hooks = Backend::with_names("hooks", &["127.0.0.1"]).await;
    let at =
        |path: &str| json!({"url": format!("{}{path}", hooks.url()), "caBundle": STANDARD.encode(&hooks.ca)});
    let portico = Portico::start().await;
    let admin = portico.admin();
    let [(_, open), ..] = schemas();
    for (plural, levels) in [("fits", MAX_FIELD_DEPTH), ("exceeds", MAX_DEPTH + 100)] {
        let webhook = json!({"clientConfig": at(&format!("/convert/deepen/{levels}")), "conversionReviewVersions": ["v1"]});
        let created =
            define(&admin, definition(plural, &open, &json!({"strategy": "Webhook", "webhook": webhook})))
                .await;
        assert_eq!(created.status, 201, "{plural} {}", created.text());
        let (v1, v2) = (path(plural), path(plural).replace("/v1/", "/v2/"));
        wait_until("both versions are served", || async { admin.get(&v2).await.status == 200 }).await;
        let create = async |path: &str, version: &str, name: &str| {
            let object = json!({"apiVersion": format!("{plural}.example.com/{version}"), "kind": "Deep", "metadata": {"name": name}, "a": 1});
            admin.post(path, &object).await.status.as_u16()
        };
        let fits = plural == "fits";
        assert_eq!(create(&v1, "v1", "one").await, 201);
        assert_eq!(admin.get(&format!("{v2}/one")).await.status == 200, fits, "{plural}");
        assert_eq!(create(&v2, "v2", "two").await == 201, fits, "{plural}");
        assert_eq!(admin.get(&format!("{v1}/two")).await.status, if fits { 200 } else { 404 }, "{plural}");
    }
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]);
    let webhook = json!({"name": "deep.example.com", "clientConfig": at("/admission/deepen/600"), "rules": rules,
        "sideEffects": "None", "admissionReviewVersions": ["v1"]});
    let configuration = json!({"metadata": {"name": "deep"}, "webhooks": [webhook]});
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    assert_eq!(admin.post(path, &configuration).await.status, 201);
    let refused =
        admin.post("/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "one"}})).await;
    assert!(refused.status.as_u16() >= 400 && refused.text().contains("deep"), "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_the_maximum_depth_passes_in_protobuf() {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    let portico = Portico::start().await;
    let admin = portico.admin();
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let body =
        |levels| format!(r#"{{"metadata":{{"name":"deep"}},"revision":1,"data":{}}}"#, nested(levels, "1"));
    assert_eq!(admin.request(Method::POST, path, JSON, body(MAX_DEPTH - 10)).await.status, 201);
    let one = format!("{path}/deep");
    let read = admin.get_as(&one, PROTOBUF).await;
    assert_eq!(read.status, 200);
    let written = admin.request(Method::PUT, &one, PROTOBUF, read.body.clone()).await;
    assert_eq!(written.status, 200, "{}", written.text());
    admin.request(Method::POST, path, JSON, body(MAX_DEPTH)).await.status_body(400, "BadRequest");
    assert_eq!(admin.get("/readyz").await.text(), "ok");
}
