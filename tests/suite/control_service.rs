//! APIServices over gRPC, with the client library: every method, its answers and its refusals.

#[path = "../../proto/examples/api_services.rs"]
#[allow(dead_code, reason = "its main is for users")]
mod example;

use std::pin::pin;
use std::time::Duration;

use futures::TryStreamExt;
use portico_proto::apiregistration::{
    ApiService, ApiServiceCondition, ApiServiceSpec, ApiServiceStatus, CreateRequest, DeleteRequest,
    EventType, ExplainRequest, GetRequest, ListRequest, ListResponse, ObjectMeta, PatchRequest, PatchType,
    ServiceReference, UpdateRequest, UpdateStatusRequest, WatchRequest,
};
use portico_proto::client::{Client, watch_api_services};
use portico_tests::{Portico, WAIT_LIMIT};
use tonic::{Code, Status};
use tonic_types::StatusExt;

fn local(group: &str) -> ApiService {
    let spec = ApiServiceSpec {
        group: group.into(),
        version: "v1".into(),
        group_priority_minimum: 1000,
        version_priority: 10,
        ..Default::default()
    };
    let metadata = ObjectMeta { name: format!("v1.{group}"), ..Default::default() };
    ApiService { metadata: Some(metadata), spec: Some(spec), status: None }
}

fn meta(object: &ApiService) -> &ObjectMeta {
    object.metadata.as_ref().unwrap()
}

async fn create(client: &Client, object: ApiService) -> Result<ApiService, Status> {
    let request = CreateRequest { api_service: Some(object), dry_run: false };
    client.api_services().create(request).await.map(tonic::Response::into_inner)
}

async fn get(client: &Client, name: &str) -> Result<ApiService, Status> {
    let request = GetRequest { name: name.into(), ..Default::default() };
    client.api_services().get(request).await.map(tonic::Response::into_inner)
}

async fn list(client: &Client, request: ListRequest) -> Result<(Vec<String>, ListResponse), Status> {
    let mut parts = client.api_services().list(request).await?.into_inner();
    let (mut names, mut last) = (Vec::new(), ListResponse::default());
    while let Some(part) = parts.message().await? {
        names.extend(part.items.iter().map(|item| meta(item).name.clone()));
        last = part;
    }
    Ok((names, last))
}

/// Returns the Kubernetes reason in the details.
fn reason(status: &Status) -> String {
    status.get_details_error_info().map(|info| info.reason).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn created_objects_are_complete_and_readable() {
    let portico = Portico::start().await;
    let client = portico.control();
    let mut object = local("made.example.com");
    object.status = Some(ApiServiceStatus {
        conditions: vec![ApiServiceCondition {
            r#type: "Mine".into(),
            status: "True".into(),
            ..Default::default()
        }],
    });
    let created = create(&client, object).await.unwrap();
    assert!(!meta(&created).uid.is_empty() && !meta(&created).resource_version.is_empty());
    assert!(meta(&created).creation_timestamp.is_some());
    let conditions = &created.status.as_ref().unwrap().conditions;
    assert_eq!(conditions.len(), 1, "the status in a create request is ignored: {conditions:?}");
    assert_eq!((conditions[0].r#type.as_str(), conditions[0].reason.as_str()), ("Available", "Local"));
    assert_eq!(get(&client, "v1.made.example.com").await.unwrap(), created);

    let mut remote = local("remote.example.com");
    let service = ServiceReference { namespace: "default".into(), name: "x".into(), port: None };
    remote.spec.as_mut().unwrap().service = Some(service);
    let created = create(&client, remote).await.unwrap();
    assert_eq!(created.spec.unwrap().service.unwrap().port, Some(443), "the only default of the type");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_checks_everything_and_writes_nothing() {
    let portico = Portico::start().await;
    let client = portico.control();
    let request = CreateRequest { api_service: Some(local("dry.example.com")), dry_run: true };
    let answer = client.api_services().create(request).await.unwrap().into_inner();
    assert_eq!(meta(&answer).name, "v1.dry.example.com");
    assert_eq!(get(&client, "v1.dry.example.com").await.unwrap_err().code(), Code::NotFound);
    let mut wrong = local("dry.example.com");
    wrong.spec.as_mut().unwrap().version_priority = 0;
    let request = CreateRequest { api_service: Some(wrong), dry_run: true };
    assert_eq!(client.api_services().create(request).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_name_code_reason_and_every_field() {
    let portico = Portico::start().await;
    let client = portico.control();
    let mut wrong = local("wrong.example.com");
    let spec = wrong.spec.as_mut().unwrap();
    (spec.group_priority_minimum, spec.version_priority) = (0, 1001);
    spec.service = Some(ServiceReference { port: Some(70000), ..Default::default() });
    let refused = create(&client, wrong).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused).as_str()), (Code::InvalidArgument, "Invalid"));
    let violations = refused.get_details_bad_request().unwrap().field_violations;
    let fields: Vec<&str> = violations.iter().map(|v| v.field.as_str()).collect();
    for field in [
        "spec.groupPriorityMinimum",
        "spec.versionPriority",
        "spec.service.namespace",
        "spec.service.name",
        "spec.service.port",
    ] {
        assert!(fields.contains(&field), "{field} is not among {fields:?}");
    }

    create(&client, local("twice.example.com")).await.unwrap();
    let twice = create(&client, local("twice.example.com")).await.unwrap_err();
    assert_eq!((twice.code(), reason(&twice).as_str()), (Code::AlreadyExists, "AlreadyExists"));
    let missing = get(&client, "v1.nowhere.example.com").await.unwrap_err();
    assert_eq!((missing.code(), reason(&missing).as_str()), (Code::NotFound, "NotFound"));
    let info = missing.get_details_error_info().unwrap();
    assert_eq!(info.domain, "portico.dev");
    assert_eq!(info.metadata.get("name").map(String::as_str), Some("v1.nowhere.example.com"));
    let nothing = client.api_services().create(CreateRequest::default()).await.unwrap_err();
    assert_eq!(nothing.code(), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_selected_and_paged_at_one_revision() {
    let portico = Portico::start().await;
    let client = portico.control();
    for n in 0..7 {
        let mut object = local(&format!("g{n}.pages.example.com"));
        object.metadata.as_mut().unwrap().labels.insert("paged".into(), "yes".into());
        create(&client, object).await.unwrap();
    }
    let mine = ListRequest { label_selector: "paged=yes".into(), limit: 3, ..Default::default() };
    let (first, page) = list(&client, mine.clone()).await.unwrap();
    assert_eq!(first, ["v1.g0.pages.example.com", "v1.g1.pages.example.com", "v1.g2.pages.example.com"]);
    // Created between two pages: not part of the list that the first page started.
    let mut late = local("g10.pages.example.com");
    late.metadata.as_mut().unwrap().labels.insert("paged".into(), "yes".into());
    create(&client, late).await.unwrap();
    let mut names = first;
    let mut token = page.r#continue;
    while !token.is_empty() {
        let (more, next) = list(&client, ListRequest { r#continue: token, ..mine.clone() }).await.unwrap();
        assert_eq!(next.resource_version, page.resource_version);
        names.extend(more);
        token = next.r#continue;
    }
    assert_eq!(names.len(), 7, "{names:?}");
    let by_name =
        ListRequest { field_selector: "metadata.name=v1.g3.pages.example.com".into(), ..Default::default() };
    assert_eq!(list(&client, by_name).await.unwrap().0, ["v1.g3.pages.example.com"]);
    for bad in [
        ListRequest { label_selector: "a in".into(), ..Default::default() },
        ListRequest { field_selector: "spec.group=x".into(), ..Default::default() },
        ListRequest { r#continue: "?".into(), limit: 1, ..Default::default() },
        ListRequest { limit: -1, ..Default::default() },
    ] {
        let refused = list(&client, bad.clone()).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{bad:?}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_update_of_a_revision_conflicts() {
    let portico = Portico::start().await;
    let client = portico.control();
    let read = create(&client, local("update.example.com")).await.unwrap();
    let mut first = read.clone();
    first.spec.as_mut().unwrap().version_priority = 20;
    first.status = None;
    let update = |object: ApiService| UpdateRequest { api_service: Some(object), dry_run: false };
    let written = client.api_services().update(update(first)).await.unwrap().into_inner();
    assert_eq!(written.spec.as_ref().unwrap().version_priority, 20);
    assert_eq!(written.status, read.status, "an update does not change the status");
    let mut second = read.clone();
    second.spec.as_mut().unwrap().version_priority = 30;
    let conflict = client.api_services().update(update(second)).await.unwrap_err();
    assert_eq!((conflict.code(), reason(&conflict).as_str()), (Code::Aborted, "Conflict"));
    let mut blind = written.clone();
    blind.metadata.as_mut().unwrap().resource_version.clear();
    let refused = client.api_services().update(update(blind)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let missing = client.api_services().update(update(local("nowhere.example.com"))).await.unwrap_err();
    assert!(matches!(missing.code(), Code::NotFound | Code::InvalidArgument), "{missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_update_changes_the_status_alone() {
    let portico = Portico::start().await;
    let client = portico.control();
    let mut object = create(&client, local("status.example.com")).await.unwrap();
    let condition = ApiServiceCondition {
        r#type: "Checked".into(),
        status: "True".into(),
        reason: "ByHand".into(),
        ..Default::default()
    };
    object.status.as_mut().unwrap().conditions.push(condition);
    object.spec.as_mut().unwrap().version_priority = 99;
    object.metadata.as_mut().unwrap().labels.insert("not".into(), "taken".into());
    let request = UpdateStatusRequest { api_service: Some(object.clone()), dry_run: false };
    let written = client.api_services().update_status(request).await.unwrap().into_inner();
    assert!(written.status.as_ref().unwrap().conditions.iter().any(|c| c.reason == "ByHand"));
    assert_eq!(written.spec.as_ref().unwrap().version_priority, 10);
    assert!(meta(&written).labels.is_empty());
    object = written;
    object.status.as_mut().unwrap().conditions[0].status = "Maybe".into();
    let request = UpdateStatusRequest { api_service: Some(object), dry_run: false };
    let refused = client.api_services().update_status(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_of_both_kinds_change_a_part() {
    let portico = Portico::start().await;
    let client = portico.control();
    create(&client, local("patch.example.com")).await.unwrap();
    let patch = |r#type: PatchType, patch: &str| PatchRequest {
        name: "v1.patch.example.com".into(),
        r#type: r#type.into(),
        patch: patch.as_bytes().to_vec(),
        ..Default::default()
    };
    let merge = patch(PatchType::Merge, r#"{"metadata":{"labels":{"a":"b"}},"spec":{"versionPriority":11}}"#);
    let merged = client.api_services().patch(merge).await.unwrap().into_inner();
    assert_eq!(meta(&merged).labels["a"], "b");
    assert_eq!(merged.spec.as_ref().unwrap().version_priority, 11);
    let json = patch(PatchType::Json, r#"[{"op":"replace","path":"/spec/versionPriority","value":12}]"#);
    let patched = client.api_services().patch(json).await.unwrap().into_inner();
    assert_eq!(patched.spec.unwrap().version_priority, 12);
    for (kind, text) in [
        (PatchType::Json, r#"[{"op":"test","path":"/spec/versionPriority","value":1}]"#),
        (PatchType::Json, "{"),
        (PatchType::Merge, "[]"),
        (PatchType::Merge, r#"{"spec":{"versionPriority":"x"}}"#),
        (PatchType::Unspecified, "{}"),
    ] {
        let refused = client.api_services().patch(patch(kind, text)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{kind:?} {text}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_checks_its_preconditions() {
    let portico = Portico::start().await;
    let client = portico.control();
    let created = create(&client, local("delete.example.com")).await.unwrap();
    let name = meta(&created).name.clone();
    let delete = |uid: &str, revision: &str, dry_run: bool| DeleteRequest {
        name: name.clone(),
        uid: uid.into(),
        resource_version: revision.into(),
        dry_run,
    };
    for wrong in [delete("00000000-0000-0000-0000-000000000000", "", false), delete("", "1", false)] {
        let refused = client.api_services().delete(wrong).await.unwrap_err();
        assert_eq!((refused.code(), reason(&refused).as_str()), (Code::Aborted, "Conflict"));
    }
    client.api_services().delete(delete("", "", true)).await.unwrap();
    let right = delete(&meta(&created).uid, &meta(&created).resource_version, false);
    let last = client.api_services().delete(right.clone()).await.unwrap().into_inner();
    assert_eq!(meta(&last).uid, meta(&created).uid);
    assert_eq!(client.api_services().delete(right).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_resumes_or_reports_an_expired_revision() {
    let portico = Portico::start().await;
    let client = portico.control();
    let created = create(&client, local("a.watch.example.com")).await.unwrap();
    create(&client, local("b.watch.example.com")).await.unwrap();
    let from =
        WatchRequest { resource_version: meta(&created).resource_version.clone(), ..Default::default() };
    let mut stream = client.api_services_watch().watch(from.clone()).await.unwrap().into_inner();
    let delete = DeleteRequest { name: "v1.a.watch.example.com".into(), ..Default::default() };
    client.api_services().delete(delete).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let event = stream.message().await.unwrap().unwrap();
        let object = event.object.clone().unwrap_or_default();
        // Changes of the Available condition of local APIServices are ignored here.
        if event.r#type() != EventType::Modified {
            seen.push((event.r#type(), meta(&object).name.clone()));
        }
    }
    let want = [(EventType::Added, "v1.b.watch.example.com"), (EventType::Deleted, "v1.a.watch.example.com")];
    assert_eq!(seen, want.map(|(kind, name)| (kind, name.to_owned())));

    let odd = WatchRequest { resource_version: "x".into(), ..Default::default() };
    assert_eq!(client.api_services_watch().watch(odd).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_library_watch_lists_first_and_survives_a_restart() {
    let mut portico = Portico::start().await;
    let client = portico.control();
    create(&client, local("here.library.example.com")).await.unwrap();
    let mut events = pin!(watch_api_services(client.clone(), WatchRequest::default()));
    let mut wait_for = async |name: &str| {
        let found = async {
            while let Some(event) = events.try_next().await.unwrap() {
                if event.object.as_ref().is_some_and(|object| meta(object).name == name) {
                    return event.r#type();
                }
            }
            panic!("the watch ended")
        };
        tokio::time::timeout(WAIT_LIMIT, found).await.expect("the event arrives")
    };
    assert_eq!(wait_for("v1.here.library.example.com").await, EventType::Added);
    portico.kill();
    portico.restart().await;
    let again = portico.control();
    create(&again, local("later.library.example.com")).await.unwrap();
    assert_eq!(wait_for("v1.later.library.example.com").await, EventType::Added);
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_names_the_stage_that_fails() {
    let portico = Portico::start().await;
    let client = portico.control();
    let mut object = local("explain.example.com");
    let service = ServiceReference { namespace: "default".into(), name: "gone".into(), port: None };
    object.spec.as_mut().unwrap().service = Some(service);
    create(&client, object).await.unwrap();
    let explain = || async {
        let request = ExplainRequest { name: "v1.explain.example.com".into() };
        let answer = client.api_services().explain(request).await.unwrap().into_inner();
        let failing = answer.stages.iter().find(|stage| !stage.ok).cloned().ok_or("no stage fails")?;
        if failing.reason == "ServiceNotFound" { Ok((answer, failing)) } else { Err("another reason") }
    };
    let (answer, failing) = portico_tests::eventually("Explain reports the missing Service", explain).await;
    assert!(!answer.available && !answer.summary.is_empty());
    assert_eq!(answer.stages[0].stage, "registered");
    assert!(answer.stages[0].ok);
    assert_eq!(failing.stage, "resolved");
    assert!(failing.message.contains("gone"), "{}", failing.message);
    let missing = ExplainRequest { name: "v1.nowhere.example.com".into() };
    assert_eq!(client.api_services().explain(missing).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_is_enforced() {
    let portico = Portico::start().await;
    let credentials = portico_proto::client::Credentials::Token("admin-token".into());
    let connection = portico.control_with(credentials).with_deadline(Duration::from_millis(300));
    let client = Client::connect(&connection).unwrap();
    // A revision that does not exist yet: the call waits for it.
    let request = ListRequest { resource_version: "1000000".into(), ..Default::default() };
    let late = list(&client, request).await.unwrap_err();
    assert!(matches!(late.code(), Code::DeadlineExceeded | Code::Cancelled), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_at_a_future_revision_is_never_stale() {
    let portico = Portico::start().await;
    let client = portico.control();
    let request = GetRequest { name: "v1.".into(), resource_version: "1000000".into() };
    let refused = client.api_services().get(request).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused).as_str()), (Code::DeadlineExceeded, "Timeout"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_the_client_library_works() {
    let portico = Portico::start().await;
    let outcome = example::run(&portico.data().join("admin.kubeconfig")).await.unwrap();
    assert!(outcome.names.iter().any(|name| name == "v1.example.example.com"), "{:?}", outcome.names);
    assert_eq!(outcome.first_event, EventType::Added);
    assert!(!outcome.summary.is_empty());
}
