//! kube-rs's runtime: watchers of both protocols, reflectors, metadata-only watches, and a controller.

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{Error as FinalizerError, Event as Finalized, finalizer};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{Controller, WatchStreamExt};
use kube::{Resource, ResourceExt};
use portico_kit::tasks::TaskSet;
use portico_tests::{Portico, WAIT_LIMIT, wait_until};
use serde_json::{Value, json};

const FINALIZER: &str = "example.com/copies";

fn config_map(name: &str, labels: Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}, "data": {"a": "1"}})).unwrap()
}

async fn make(api: &Api<ConfigMap>, name: &str, labels: Value) {
    api.create(&PostParams::default(), &config_map(name, labels)).await.unwrap();
}

/// Returns the watcher's next event as text.
async fn next_event<K: ResourceExt>(
    events: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin),
) -> String {
    let next = tokio::time::timeout(WAIT_LIMIT, events.try_next()).await;
    match next.unwrap().unwrap().unwrap() {
        Event::Init => "init".into(),
        Event::InitApply(object) => format!("has {}", object.name_any()),
        Event::InitDone => "complete".into(),
        Event::Apply(object) => format!("applied {}", object.name_any()),
        Event::Delete(object) => format!("deleted {}", object.name_any()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_lists_then_reports_changes() {
    let portico = Portico::start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(portico.kube().await);
    let selected = watcher::Config::default().labels("seen=yes");
    for (n, config) in [selected.clone(), selected.streaming_lists()].into_iter().enumerate() {
        let (first, second) = (format!("first-{n}"), format!("second-{n}"));
        make(&api, &first, json!({"seen": "yes"})).await;
        make(&api, &format!("other-{n}"), json!({"seen": "no"})).await;
        let mut events = watcher(api.clone(), config).boxed();
        for expected in ["init".to_owned(), format!("has {first}"), "complete".to_owned()] {
            assert_eq!(next_event(&mut events).await, expected);
        }
        make(&api, &second, json!({"seen": "yes"})).await;
        assert_eq!(next_event(&mut events).await, format!("applied {second}"));
        let hidden = Patch::Merge(json!({"metadata": {"labels": {"seen": "no"}}}));
        api.patch(&second, &PatchParams::default(), &hidden).await.unwrap();
        assert_eq!(
            next_event(&mut events).await,
            format!("deleted {second}"),
            "the object no longer matches the selector"
        );
        api.delete(&first, &DeleteParams::default()).await.unwrap();
        assert_eq!(next_event(&mut events).await, format!("deleted {first}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metadata_watch_carries_only_metadata() {
    let portico = Portico::start().await;
    let client = portico.kube().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let bare: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client);
    let config = watcher::Config::default().labels("seen=yes");
    for (n, config) in [config.clone(), config.streaming_lists()].into_iter().enumerate() {
        let mut events = watcher(bare.clone(), config).boxed();
        assert_eq!(next_event(&mut events).await, "init");
        while next_event(&mut events).await != "complete" {}
        let name = format!("bare-{n}");
        make(&api, &name, json!({"seen": "yes"})).await;
        let next = tokio::time::timeout(WAIT_LIMIT, events.try_next()).await;
        let Event::Apply(object) = next.unwrap().unwrap().unwrap() else {
            panic!("the new object is delivered")
        };
        assert_eq!(object.types.as_ref().unwrap().kind, "PartialObjectMetadata");
        assert_eq!(object.metadata, api.get(&name).await.unwrap().metadata);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reflectors_store_survives_a_restart() {
    let mut portico = Portico::start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(portico.kube().await);
    make(&api, "before", json!({"seen": "yes"})).await;
    let (reader, writer) = reflector::store();
    let config = watcher::Config::default().labels("seen=yes").streaming_lists();
    let stream = watcher(api.clone(), config).default_backoff().reflect(writer);
    let tasks = TaskSet::new();
    tasks.spawn_until_cancelled("reflector", stream.for_each(async |_| {}));
    reader.wait_until_ready().await.unwrap();
    assert_eq!(reader.len(), 1);
    portico.stop().await;
    portico.restart().await;
    let api: Api<ConfigMap> = Api::default_namespaced(portico.kube().await);
    make(&api, "after", json!({"seen": "yes"})).await;
    api.delete("before", &DeleteParams::default()).await.unwrap();
    let (before, after) = (ObjectRef::new("before"), ObjectRef::new("after"));
    wait_until("the store contains the changes", async || {
        let get = |key: &ObjectRef<ConfigMap>| reader.get(&key.clone().within("default"));
        get(&before).is_none() && get(&after).is_some()
    })
    .await;
    tasks.cancel();
}

/// Maintains a copy of every owner by server-side apply.
async fn reconcile_copy(
    owner: Arc<ConfigMap>,
    api: Arc<Api<ConfigMap>>,
) -> Result<Action, FinalizerError<kube::Error>> {
    finalizer(&api, FINALIZER, owner, async |event| {
        match event {
            Finalized::Apply(owner) => {
                let copy = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {
                        "name": format!("{}-copy", owner.name_any()),
                        "ownerReferences": [owner.controller_owner_ref(&()).unwrap()],
                    },
                    "data": owner.data,
                });
                let params = PatchParams::apply("copier").force();
                api.patch(&format!("{}-copy", owner.name_any()), &params, &Patch::Apply(copy)).await?;
            }
            // The copy is a dependent, which the garbage collector deletes.
            Finalized::Cleanup(owner) => {
                let farewell = config_map(&format!("{}-gone", owner.name_any()), json!({}));
                api.create(&PostParams::default(), &farewell).await?;
            }
        }
        Ok(Action::await_change())
    })
    .await
}

fn start_controller(tasks: &TaskSet, api: &Api<ConfigMap>) {
    let owners = watcher::Config::default().labels("role=owner");
    let controller = Controller::new(api.clone(), owners).owns(api.clone(), watcher::Config::default()).run(
        reconcile_copy,
        |_, _, _| Action::requeue(Duration::from_millis(200)),
        Arc::new(api.clone()),
    );
    tasks.spawn_until_cancelled("controller", controller.for_each(async |_| {}));
}

async fn copied(api: &Api<ConfigMap>, name: &str, value: &str) {
    wait_until(&format!("{name} is {value}"), async || {
        let copy = api.get_opt(name).await.unwrap();
        copy.and_then(|copy| copy.data).and_then(|data| data.get("a").cloned()).as_deref() == Some(value)
    })
    .await;
}

async fn set(api: &Api<ConfigMap>, name: &str, value: &str) {
    let patch = Patch::Merge(json!({"data": {"a": value}}));
    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_survives_a_restart_and_dependents_are_collected() {
    let mut portico = Portico::start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(portico.kube().await);
    let tasks = TaskSet::new();
    start_controller(&tasks, &api);
    make(&api, "page", json!({"role": "owner"})).await;
    copied(&api, "page-copy", "1").await;
    assert_eq!(api.get("page").await.unwrap().finalizers(), [FINALIZER]);
    api.delete("page-copy", &DeleteParams::default()).await.unwrap();
    copied(&api, "page-copy", "1").await;
    set(&api, "page-copy", "spoilt").await;
    copied(&api, "page-copy", "1").await;
    portico.stop().await;
    portico.restart().await;
    let api: Api<ConfigMap> = Api::default_namespaced(portico.kube().await);
    set(&api, "page", "2").await;
    copied(&api, "page-copy", "2").await;
    let answer = api.delete("page", &DeleteParams::default()).await.unwrap();
    assert!(
        answer.left().unwrap().metadata.deletion_timestamp.is_some(),
        "the finalizer blocks the deletion"
    );
    for name in ["page", "page-copy"] {
        wait_until(&format!("{name} is deleted"), async || api.get_opt(name).await.unwrap().is_none()).await;
    }
    assert!(
        api.get_opt("page-gone").await.unwrap().is_some(),
        "the controller cleaned up before the deletion"
    );
    tasks.cancel();
}
