//! Create, update and patch: system metadata, names, options, conflicts.

use portico_machinery::{GroupResource, Object};
use portico_registry::{Context, ObjectPart, StoredObject, UpdateOptions};

use crate::harness::{Harness, JSON, MERGE, YAML, api_service, object};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const APPLY: &str = "application/apply-patch+yaml";

#[tokio::test]
async fn system_metadata_is_set_by_the_server() {
    let harness = Harness::open().await;
    let body = r#"{"metadata":{"name":"a","uid":"mine","creationTimestamp":"2001-01-01T00:00:00Z","deletionTimestamp":"2001-01-01T00:00:00Z","selfLink":"/x","managedFields":[]},"data":{"k":"v"}}"#;
    let reply = harness.post(MAPS, body).await;
    assert_eq!(reply.code, 201, "{reply:?}");
    assert_eq!(reply.at("metadata.uid").len(), 36);
    assert_ne!(reply.at("metadata.creationTimestamp"), "2001-01-01T00:00:00Z");
    assert!(reply.text.contains(r#""manager":"suite","operation":"Update""#), "{reply:?}");
    for gone in ["deletionTimestamp", "selfLink", "generation"] {
        assert!(!reply.object().metadata().field(gone).is_present(), "{gone}");
    }
    assert_eq!(reply.at("metadata.namespace"), "default");
    let keys: Vec<_> = reply.text.split('"').skip(1).step_by(2).take(9).collect();
    assert_eq!(
        keys,
        ["kind", "ConfigMap", "apiVersion", "v1", "metadata", "name", "a", "namespace", "default"]
    );
    assert_eq!(harness.get(&format!("{MAPS}/a")).await.text, reply.text);
}

#[tokio::test]
async fn a_name_is_given_or_generated() {
    let harness = Harness::open().await;
    let reply = harness.post(MAPS, r#"{"metadata":{"generateName":"gen-"}}"#).await;
    assert!(reply.at("metadata.name").starts_with("gen-") && reply.at("metadata.name").len() == 9);
    let both = r#"{"metadata":{"name":"gen-a","generateName":"gen-"}}"#;
    assert_eq!(harness.post(MAPS, both).await.at("metadata.name"), "gen-a");
    let reply = harness.post(MAPS, both).await;
    let unable = "the server was not able to generate a unique name for the object";
    assert!(reply.code == 409 && reply.at("message").ends_with(unable), "{reply:?}");
    let reply = harness.post(MAPS, r#"{"metadata":{}}"#).await;
    assert_eq!(reply.at("details.causes.0.message"), "Required value: name or generateName is required");
}

#[tokio::test]
async fn a_create_with_fields_that_clients_may_not_set_is_refused() {
    let harness = Harness::open().await;
    let rows = [
        (
            MAPS,
            r#"{"metadata":{"name":"a","resourceVersion":"5"}}"#,
            500,
            "resourceVersion should not be set on objects to be created",
        ),
        (MAPS, r#"{"metadata":{"name":"a_","resourceVersion":"5"}}"#, 422, "ConfigMap \"a_\" is invalid"),
        (
            MAPS,
            r#"{"metadata":{"name":"a","namespace":"other"}}"#,
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            "/api/v1/namespaces/nowhere/configmaps",
            r#"{"metadata":{"name":"a"}}"#,
            404,
            "namespaces \"nowhere\" not found",
        ),
        (MAPS, r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}"#, 400, "Secret in version"),
        (MAPS, r#"{"kind":"ConfigMap","apiVersion":"apps/v1","metadata":{"name":"a"}}"#, 400, ""),
        (MAPS, "", 400, ""),
        (MAPS, "[]", 400, ""),
    ];
    for (url, body, code, words) in rows {
        let reply = harness.post(url, body).await;
        assert_eq!(reply.code, code, "{body} {reply:?}");
        assert!(reply.at("message").starts_with(words), "{reply:?}");
    }
}

#[tokio::test]
async fn unknown_fields_cause_warnings_are_ignored_or_refused() {
    let harness = Harness::open().await;
    let body = |name: &str| object("ConfigMap", name, r#","dota":{}"#);
    let warned = harness.post(MAPS, &body("a")).await;
    assert_eq!((warned.code, warned.warnings), (201, vec!["unknown field \"dota\"".to_owned()]));
    let ignored = harness.post(&format!("{MAPS}?fieldValidation=Ignore"), &body("b")).await;
    assert_eq!((ignored.code, ignored.warnings.len()), (201, 0));
    let strict = harness.post(&format!("{MAPS}?fieldValidation=Strict"), &body("c")).await;
    assert_eq!(strict.code, 400);
    assert!(strict.at("message").ends_with("strict decoding error: unknown field \"dota\""));
}

#[tokio::test]
async fn duplicate_keys_in_yaml_are_reported_by_line() {
    let harness = Harness::open().await;
    let body = "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: a\ndata:\n  k: one\n  k: two\n";
    let line = "line 7: key \"k\" already set in map";
    let warned = harness.request("POST", MAPS, "", YAML, body).await;
    assert_eq!((warned.code, &warned.warnings[..]), (201, &[line.to_owned()][..]), "{}", warned.text);
    let strict = harness.request("POST", &format!("{MAPS}?fieldValidation=Strict"), "", YAML, body).await;
    let text = format!("strict decoding error: yaml: unmarshal errors:\n  {line}");
    assert!(strict.code == 400 && strict.at("message").ends_with(&text), "{strict:?}");
    let applied = format!("{MAPS}/a?fieldManager=m&force=true");
    let warned = harness.patch(&applied, APPLY, body).await;
    assert_eq!((warned.code, warned.warnings), (200, vec![line.to_owned()]));
    let strict = harness.patch(&format!("{applied}&fieldValidation=Strict"), APPLY, body).await;
    let text = format!(
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {line}"
    );
    assert_eq!((strict.code, strict.at("message")), (400, text));
}

#[tokio::test]
async fn a_refused_write_also_warns_about_unknown_fields() {
    let harness = Harness::open().await;
    let unknown = vec!["unknown field \"dota\"".to_owned()];
    let refused = harness.post(MAPS, &object("ConfigMap", "a_", r#","dota":{}"#)).await;
    assert_eq!((refused.code, &refused.warnings), (422, &unknown));
    let owner = r#"{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"o-1"}"#;
    let owned = format!(r#"{{"metadata":{{"name":"a","ownerReferences":[{owner},{owner}]}}}}"#);
    let advice = harness.post(MAPS, &owned).await.warnings;
    assert_eq!(advice.len(), 1, "{advice:?}");
    let refused = harness.post(MAPS, &owned).await;
    assert_eq!((refused.code, &refused.warnings), (409, &advice));
    let body = r#"{"metadata":{"name":"a","labels":{"_":""}},"dota":1}"#;
    let refused = harness.put(&format!("{MAPS}/a"), body).await;
    assert_eq!((refused.code, &refused.warnings), (422, &unknown));
    let refused = harness.patch(&format!("{MAPS}/a"), MERGE, body).await;
    assert_eq!((refused.code, &refused.warnings), (422, &unknown));
}

#[tokio::test]
async fn a_dry_run_returns_the_result_of_a_write_and_writes_nothing() {
    let harness = Harness::open().await;
    let dry = harness.post(&format!("{MAPS}?dryRun=All"), &object("ConfigMap", "a", "")).await;
    assert_eq!((dry.code, dry.at("metadata.resourceVersion").as_str()), (201, "\"\""));
    let versioned = r#"{"metadata":{"name":"a","resourceVersion":"5"}}"#;
    assert_eq!(harness.post(&format!("{MAPS}?dryRun=All"), versioned).await.code, 201);
    assert_eq!(harness.get(&format!("{MAPS}/a")).await.code, 404);
    harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    assert_eq!(harness.post(&format!("{MAPS}?dryRun=All"), &object("ConfigMap", "a", "")).await.code, 409);
    let patched = harness.patch(&format!("{MAPS}/a?dryRun=All"), MERGE, r#"{"data":{"k":"v"}}"#).await;
    assert_eq!(patched.at("data.k"), "v");
    assert_eq!(harness.get(&format!("{MAPS}/a")).await.at("data"), "\"\"");
}

/// Checks that the decoded object shared by the response, followers and the next write equals the object in the stored bytes.
#[tokio::test]
async fn the_shared_object_of_a_write_equals_its_stored_bytes() {
    let harness = Harness::open().await;
    let service = r#","spec":{"ports":[{"port":80}],"selector":{"b":"2","a":"1"}}"#;
    let ca = r#","caBundle":"eA==","service":{"namespace":"n","name":"s"}"#;
    for (resource, json) in [
        (
            ("", "services"),
            object("Service", "s", service)
                .replace("\"name\":\"s\"", "\"name\":\"s\",\"namespace\":\"default\""),
        ),
        (("apiregistration.k8s.io", "apiservices"), api_service("v1", "g.example.com", ca)),
        (("", "namespaces"), object("Namespace", "n", "")),
    ] {
        let created = harness.create(resource, &json).await.stored;
        let bytes = |stored: &StoredObject| Object::from_json(&stored.json()).unwrap();
        assert_eq!(*created.object(), bytes(&created), "{resource:?}");

        let mut changed = created.object().clone();
        changed.set(&["metadata", "labels", "new"], "label");
        let (context, options) = (Context::system("suite"), UpdateOptions::default());
        let group = GroupResource::new(resource.0, resource.1);
        let updated = harness
            .registry
            .update(&context, &group, ObjectPart::Main, changed, &options)
            .await
            .unwrap()
            .stored;
        assert_ne!(updated.revision(), created.revision());
        assert_eq!(*updated.object(), bytes(&updated), "{resource:?}");
    }
}

#[tokio::test]
async fn an_update_that_changes_nothing_writes_nothing() {
    let harness = Harness::open().await;
    let url = format!("{MAPS}/a");
    let created = harness.post(MAPS, &object("ConfigMap", "a", r#","data":{"k":"v"}"#)).await;
    let same = harness.put(&url, &object("ConfigMap", "a", r#","data":{"k":"v"}"#)).await;
    assert_eq!((same.code, same.text), (200, created.text.clone()));
    let zero = r#"{"metadata":{"name":"a","resourceVersion":"0"},"data":{"k":"v"}}"#;
    assert_eq!(harness.put(&url, zero).await.text, created.text, "revision 0 counts as absent");
    let other = harness.put(&url, &object("ConfigMap", "a", r#","data":{"k":"w"}"#)).await;
    assert_ne!(other.at("metadata.resourceVersion"), created.at("metadata.resourceVersion"));
    assert_eq!(other.at("metadata.uid"), created.at("metadata.uid"));
}

#[tokio::test]
async fn another_uid_is_a_conflict_by_put_and_immutable_by_patch() {
    let harness = Harness::open().await;
    let url = format!("{MAPS}/a");
    harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    let put = harness.put(&url, r#"{"metadata":{"name":"a","uid":"other"}}"#).await;
    assert_eq!((put.code, put.at("reason").as_str()), (409, "Conflict"));
    let patch = harness.patch(&url, MERGE, r#"{"metadata":{"uid":"other"}}"#).await;
    assert_eq!((patch.code, patch.at("details.causes.0.field").as_str()), (422, "metadata.uid"));
}

#[tokio::test]
async fn names_in_body_and_path_must_agree() {
    let harness = Harness::open().await;
    harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    let put = harness.put(&format!("{MAPS}/a"), &object("ConfigMap", "b", "")).await;
    assert_eq!(put.at("message"), "the name of the object (b) does not match the name on the URL (a)");
    let none = harness.put(&format!("{MAPS}/a"), r#"{"metadata":{}}"#).await;
    assert_eq!(
        none.at("message"),
        "the name of the object (a based on URL) was undeterminable: name must be provided"
    );
    let patch = harness.patch(&format!("{MAPS}/a"), MERGE, r#"{"metadata":{"name":"b"}}"#).await;
    assert_eq!(patch.code, 400);
}

#[tokio::test]
async fn a_patch_that_removes_the_version_also_loses_the_name() {
    const JSON: &str = "application/json-patch+json";
    let harness = Harness::open().await;
    harness.post(MAPS, &object("ConfigMap", "a", r#","data":{"k":"v"}"#)).await;
    let url = format!("{MAPS}/a");
    let undeterminable = "the name of the object (a based on URL) was undeterminable: name must be provided";
    for (kind, patch) in [
        (JSON, r#"[{"op":"remove","path":"/apiVersion"}]"#),
        (JSON, r#"[{"op":"replace","path":"/apiVersion","value":""}]"#),
        (JSON, r#"[{"op":"remove","path":"/apiVersion"},{"op":"remove","path":"/kind"}]"#),
        (MERGE, r#"{"apiVersion":null}"#),
        (MERGE, r#"{"apiVersion":null,"data":5}"#),
    ] {
        let patched = harness.patch(&url, kind, patch).await;
        assert_eq!((patched.code, patched.at("message").as_str()), (400, undeterminable), "{patch}");
        let strict = harness.patch(&format!("{url}?fieldValidation=Strict"), kind, patch).await;
        assert_eq!(strict.code, 422, "{patch}: {}", strict.text);
        let unknown = r#"strict decoding error: unknown field "data", unknown field "metadata""#;
        assert!(strict.at("message").ends_with(unknown), "{}", strict.text);
    }
    let kind = harness.patch(&url, MERGE, r#"{"kind":null}"#).await;
    assert_eq!((kind.code, kind.at("kind").as_str()), (200, "ConfigMap"));
}

#[tokio::test]
async fn a_put_creates_if_the_kind_allows_it() {
    let harness = Harness::open().await;
    assert_eq!(harness.put(&format!("{MAPS}/a"), &object("ConfigMap", "a", "")).await.code, 404);
    let url = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let body = r#"{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"l"},"spec":{"holderIdentity":"h","leaseDurationSeconds":10}}"#;
    assert_eq!(harness.put(url, body).await.code, 201);
    assert_eq!(harness.put(url, body).await.code, 422);
}

#[tokio::test]
async fn concurrent_patches_succeed_and_a_concurrent_update_with_a_revision_fails() {
    let harness = Harness::open().await;
    let created =
        harness.create(("", "configmaps"), r#"{"metadata":{"name":"a","namespace":"default"}}"#).await;
    let url = format!("{MAPS}/a");
    let patches = (0..20).map(|n| {
        let (harness, url) = (&harness, &url);
        async move { harness.patch(url, MERGE, &format!(r#"{{"data":{{"k{n}":"v"}}}}"#)).await.code }
    });
    assert!(futures::future::join_all(patches).await.into_iter().all(|code| code == 200));
    assert_eq!(harness.get(&url).await.object().at(&["data"]).len(), 20);
    let mut stale: Object = created.stored.object().clone();
    stale.set(&["data", "k"], "v");
    let resource = GroupResource::new("", "configmaps");
    let context = Context::system("suite");
    let options = UpdateOptions::default();
    let lost = harness.registry.update(&context, &resource, ObjectPart::Main, stale, &options).await;
    assert_eq!(lost.unwrap_err().code, 409);
}

#[tokio::test]
async fn one_of_several_concurrent_creates_succeeds() {
    let harness = Harness::open().await;
    let body = object("ConfigMap", "one", "");
    let creates = (0..16).map(|_| harness.request("POST", MAPS, JSON, JSON, &body));
    let codes: Vec<u16> = futures::future::join_all(creates).await.iter().map(|r| r.code).collect();
    assert_eq!(
        (codes.iter().filter(|c| **c == 201).count(), codes.iter().filter(|c| **c == 409).count()),
        (1, 15)
    );
}

#[tokio::test]
async fn immutable_data_cannot_change_but_metadata_can() {
    let harness = Harness::open().await;
    let url = format!("{MAPS}/a");
    harness.post(MAPS, &object("ConfigMap", "a", r#","data":{"k":"v"},"immutable":true"#)).await;
    let reply = harness.patch(&url, MERGE, r#"{"data":{"k":"w"}}"#).await;
    assert_eq!(reply.at("details.causes.0.message"), "Forbidden: field is immutable when `immutable` is set");
    assert_eq!(harness.patch(&url, MERGE, r#"{"metadata":{"labels":{"a":"b"}}}"#).await.code, 200);
}

#[tokio::test]
async fn string_data_of_a_secret_is_merged_and_its_type_is_immutable() {
    let harness = Harness::open().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let reply = harness.post(secrets, &object("Secret", "s", r#","stringData":{"a":"new"}"#)).await;
    assert_eq!(
        (reply.at("data.a").as_str(), reply.at("type").as_str(), reply.at("stringData").as_str()),
        ("bmV3", "Opaque", "\"\"")
    );
    let reply = harness.patch(&format!("{secrets}/s"), MERGE, r#"{"type":"x/y"}"#).await;
    assert_eq!(reply.at("details.causes.0.message"), "Invalid value: \"x/y\": field is immutable");
}
