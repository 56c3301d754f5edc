//! Workloads: behavior that involves several verbs or versions.

use portico_machinery::Object;

use crate::harness::{Harness, JSON_PATCH, MERGE, TABLE};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const HPAS: &str = "/namespaces/default/horizontalpodautoscalers";

fn deployment(spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"web"}},"spec":{{"selector":{{"matchLabels":{{"a":"b"}}}},"template":{{"metadata":{{"labels":{{"a":"b"}}}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}{spec}}}}}"#
    )
}

fn job(metadata: &str, template: &str) -> String {
    format!(
        r#"{{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"j"{metadata}}},"spec":{{"template":{{{template}"spec":{{"restartPolicy":"Never","containers":[{{"name":"c","image":"i"}}]}}}}}}}}"#
    )
}

#[tokio::test]
async fn a_scale_shows_and_changes_the_replicas_of_its_parent() {
    let harness = Harness::open().await;
    let created = harness.post(DEPLOYMENTS, &deployment("")).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let url = format!("{DEPLOYMENTS}/web/scale");
    let scale = harness.get(&url).await;
    assert_eq!(
        (scale.at("kind").as_str(), scale.at("spec.replicas").as_str(), scale.at("status.selector").as_str()),
        ("Scale", "1", "a=b")
    );
    let revision = scale.at("metadata.resourceVersion");
    let body = |replicas: i32, more: &str| {
        format!(
            r#"{{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{{"name":"web"{more}}},"spec":{{"replicas":{replicas}}}}}"#
        )
    };
    let put = harness.put(&url, &body(3, "")).await;
    assert_eq!((put.code, put.at("spec.replicas").as_str()), (200, "3"));
    let parent = harness.get(&format!("{DEPLOYMENTS}/web")).await;
    assert_eq!((parent.at("spec.replicas").as_str(), parent.at("metadata.generation").as_str()), ("3", "2"));
    let stale = harness.put(&url, &body(4, &format!(r#","resourceVersion":"{revision}""#))).await;
    assert_eq!(stale.code, 409);
    assert!(stale.at("message").starts_with("Operation cannot be fulfilled on deployments.apps \"web\":"));
    let negative = harness.patch(&url, MERGE, r#"{"spec":{"replicas":-1}}"#).await;
    assert_eq!((negative.code, negative.at("details.kind").as_str()), (422, "Scale"));
    let patched =
        harness.patch(&url, JSON_PATCH, r#"[{"op":"replace","path":"/spec/replicas","value":0}]"#).await;
    assert_eq!((patched.code, patched.at("spec").as_str()), (200, "{}"));
    let table = harness.request("GET", &url, TABLE, "", "").await;
    assert_eq!(table.at("rows.0.cells.1"), "0");
    assert_eq!(harness.get(&format!("{DEPLOYMENTS}/ghost/scale")).await.code, 404);
    assert_eq!(harness.put(&url, &deployment("")).await.code, 400);
}

#[tokio::test]
async fn a_writer_of_the_scale_owns_the_replicas_and_other_appliers_conflict() {
    const APPLY: &str = "application/apply-patch+yaml";
    let harness = Harness::open().await;
    harness.post(&format!("{DEPLOYMENTS}?fieldManager=maker"), &deployment("")).await;
    let url = format!("{DEPLOYMENTS}/web");
    let scale = format!("{url}/scale");
    harness.patch(&format!("{scale}?fieldManager=scaler"), MERGE, r#"{"spec":{"replicas":3}}"#).await;
    let parent = harness.get(&url).await.object();
    let entries: Vec<(String, String, bool, bool)> = parent
        .at(&["metadata", "managedFields"])
        .items()
        .map(|entry| {
            let text = |field: &str| entry.field(field).str().to_owned();
            let owned = entry.field("fieldsV1").field("f:spec").field("f:replicas").is_present();
            (text("manager"), text("subresource"), owned, entry.field("time").is_present())
        })
        .collect();
    let entry = |manager: &str, subresource: &str, owned, timed| {
        (manager.to_owned(), subresource.to_owned(), owned, timed)
    };
    assert!(entries.contains(&entry("scaler", "scale", true, false)), "{entries:?}");
    assert!(entries.contains(&entry("maker", "", false, true)), "{entries:?}");
    let config =
        r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web"},"spec":{"replicas":7}}"#;
    let conflict = harness.patch(&format!("{scale}?fieldManager=other"), APPLY, config).await;
    assert_eq!(
        conflict.at("message"),
        "Apply failed with 1 conflict: conflict with \"scaler\" with subresource \"scale\" using autoscaling/v1: .spec.replicas"
    );
    let forced = harness.patch(&format!("{scale}?fieldManager=other&force=true"), APPLY, config).await;
    assert_eq!((forced.code, forced.at("spec.replicas").as_str()), (200, "7"), "{}", forced.text);
    let ghost = config.replace("web", "ghost");
    let missing = harness.patch(&format!("{DEPLOYMENTS}/ghost/scale?fieldManager=o"), APPLY, &ghost).await;
    assert_eq!(missing.code, 404);
}

#[tokio::test]
async fn a_deployment_counts_changes_of_its_spec_and_of_its_annotations() {
    let harness = Harness::open().await;
    harness.post(DEPLOYMENTS, &deployment("")).await;
    let url = format!("{DEPLOYMENTS}/web");
    for (patch, generation) in [
        (r#"{"metadata":{"labels":{"x":"y"}}}"#, "1"),
        (r#"{"metadata":{"annotations":{"x":"y"}}}"#, "2"),
        (r#"{"spec":{"minReadySeconds":0}}"#, "2"),
        (r#"{"spec":{"minReadySeconds":5}}"#, "3"),
    ] {
        assert_eq!(harness.patch(&url, MERGE, patch).await.at("metadata.generation"), generation, "{patch}");
    }
    let bad = r#"{"metadata":{"annotations":{"deprecated.deployment.rollback.to":"abc"}}}"#;
    let refused = harness.patch(&url, MERGE, bad).await;
    assert_eq!((refused.code, refused.at("details.causes.0.field").as_str()), (422, "patch"));
}

#[tokio::test]
async fn a_job_gets_the_labels_of_its_pod_template_unless_it_has_labels() {
    let harness = Harness::open().await;
    let created = harness.post(JOBS, &job("", r#""metadata":{"labels":{"a":"b"}},"#)).await;
    let labels = created.object();
    let labels = labels.at(&["metadata", "labels"]);
    assert_eq!((labels.len(), labels.entry_str("job-name")), (5, Some("j")));
    let uid = created.at("metadata.uid");
    let selector = Object::from_json(created.text.as_bytes()).unwrap();
    let selector = selector.at(&["spec", "selector", "matchLabels"]);
    assert_eq!(selector.entry_str("batch.kubernetes.io/controller-uid"), Some(uid.as_str()));
    let own = job(r#","labels":{"own":"1"}"#, "").replace("\"j\"", "\"k\"");
    let own = harness.post(JOBS, &own).await.object();
    assert_eq!(own.at(&["metadata", "labels"]).len(), 1);
    let deleted = harness.delete(&format!("{JOBS}/j")).await;
    assert_eq!((deleted.warnings.len(), deleted.at("metadata.finalizers.0").as_str()), (1, "orphan"));
    let deleted = harness.delete(&format!("{JOBS}/k?propagationPolicy=Background")).await;
    assert_eq!((deleted.warnings.len(), deleted.at("kind").as_str()), (0, "Status"));
}

#[tokio::test]
async fn fields_absent_from_v1_of_an_autoscaler_survive_a_patch_in_v1() {
    let harness = Harness::open().await;
    let v2 = r#"{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"maxReplicas":5,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"metrics":[{"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"1Gi"}}}]}}"#;
    let created = harness.post(&format!("/apis/autoscaling/v2{HPAS}"), v2).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let v1 = harness
        .patch(
            &format!("/apis/autoscaling/v1{HPAS}/h"),
            MERGE,
            r#"{"spec":{"targetCPUUtilizationPercentage":50}}"#,
        )
        .await;
    assert_eq!(v1.at("spec.targetCPUUtilizationPercentage"), "50");
    let back = harness.get(&format!("/apis/autoscaling/v2{HPAS}/h")).await;
    assert_eq!(back.at("spec.metrics.0.resource.name"), "memory");
    assert_eq!(back.at("spec.metrics.1.resource.target.averageUtilization"), "50");
    assert!(!back.object().at(&["metadata", "annotations"]).is_present());
}
