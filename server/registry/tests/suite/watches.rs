//! Watches: starts, transitions, bookmarks, ends; and followers.

use futures::StreamExt;
use portico_machinery::GroupResource;
use portico_registry::{Change, EventType, Frame};
use portico_store::Store;

use crate::harness::{Harness, JSON, MERGE, METADATA, TABLE, next, object};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn text(frame: &Frame) -> String {
    String::from_utf8(frame.object().to_vec()).unwrap()
}

fn summary(frame: &Frame) -> (EventType, String) {
    let object = portico_machinery::Object::from_json(&frame.object()).unwrap();
    (frame.kind, object.name().to_owned())
}

#[tokio::test]
async fn a_watch_from_a_revision_delivers_each_change_once() {
    let harness = Harness::open().await;
    let revision = harness.get(MAPS).await.at("metadata.resourceVersion");
    let mut frames = harness.watch(&format!("{MAPS}?watch=1&resourceVersion={revision}"), JSON).await;
    let created = harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    harness.patch(&format!("{MAPS}/a"), MERGE, r#"{"data":{"k":"v"}}"#).await;
    harness.delete(&format!("{MAPS}/a")).await;
    let first = next(&mut frames).await;
    assert_eq!(format!("{}\n", text(&first)), created.text);
    assert_eq!(
        String::from_utf8(first.line().to_vec()).unwrap(),
        format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", created.text.trim_end())
    );
    assert_eq!(summary(&*next(&mut frames).await), (EventType::Modified, "a".into()));
    let last = next(&mut frames).await;
    assert_eq!(summary(&last), (EventType::Deleted, "a".into()));
    assert!(text(&last).contains(&format!("\"resourceVersion\":\"{}\"", last.revision)));
}

#[tokio::test]
async fn watchers_of_one_representation_share_frames() {
    let harness = Harness::open().await;
    let mut one = harness.watch(&format!("{MAPS}?watch=1"), JSON).await;
    let mut two = harness.watch("/api/v1/configmaps?watch=1", JSON).await;
    let mut other = harness.watch(&format!("{MAPS}?watch=1"), METADATA).await;
    harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    let (a, b) = (next(&mut one).await, next(&mut two).await);
    assert!(std::sync::Arc::ptr_eq(&a, &b));
    assert!(text(&*next(&mut other).await).starts_with(r#"{"kind":"PartialObjectMetadata""#));
}

#[tokio::test]
async fn initial_events_are_ordered_and_end_with_a_bookmark() {
    let harness = Harness::open().await;
    for name in ["b", "a"] {
        harness.post(MAPS, &object("ConfigMap", name, "")).await;
    }
    let mut frames = harness.watch(&format!("{MAPS}?watch=1&allowWatchBookmarks=true"), JSON).await;
    assert_eq!(summary(&*next(&mut frames).await), (EventType::Added, "a".into()));
    assert_eq!(summary(&*next(&mut frames).await), (EventType::Added, "b".into()));
    let end = next(&mut frames).await;
    assert_eq!(end.kind, EventType::Bookmark);
    let expected = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"resourceVersion":"{}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}"#,
        end.revision
    );
    assert_eq!(text(&end), expected);
}

#[tokio::test]
async fn objects_that_leave_a_selection_are_deleted_and_objects_that_enter_are_added() {
    let harness = Harness::open().await;
    let revision = harness.get(MAPS).await.at("metadata.resourceVersion");
    let mut frames =
        harness.watch(&format!("{MAPS}?watch=1&resourceVersion={revision}&labelSelector=l%3Din"), JSON).await;
    let label = |value: &str| format!(r#"{{"metadata":{{"labels":{{"l":"{value}"}}}}}}"#);
    harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    harness.patch(&format!("{MAPS}/a"), MERGE, &label("in")).await;
    harness.patch(&format!("{MAPS}/a"), MERGE, r#"{"data":{"k":"v"}}"#).await;
    let left = harness.patch(&format!("{MAPS}/a"), MERGE, &label("out")).await;
    harness.delete(&format!("{MAPS}/a")).await;
    harness.post(MAPS, r#"{"metadata":{"name":"b","labels":{"l":"in"}}}"#).await;
    assert_eq!(summary(&*next(&mut frames).await), (EventType::Added, "a".into()));
    assert_eq!(summary(&*next(&mut frames).await), (EventType::Modified, "a".into()));
    let gone = next(&mut frames).await;
    assert_eq!(gone.kind, EventType::Deleted);
    assert!(text(&gone).contains(r#""l":"in""#), "the state that was last selected is shown");
    assert_eq!(gone.revision.to_string(), left.at("metadata.resourceVersion"));
    assert_eq!(summary(&*next(&mut frames).await), (EventType::Added, "b".into()));
}

#[tokio::test]
async fn a_table_watch_sends_its_columns_once() {
    let harness = Harness::open().await;
    for name in ["a", "b"] {
        harness.post(MAPS, &object("ConfigMap", name, "")).await;
    }
    let mut frames = harness.watch(&format!("{MAPS}?watch=1"), TABLE).await;
    assert!(text(&*next(&mut frames).await).contains(r#""columnDefinitions":[{"name":"Name""#));
    let second = text(&*next(&mut frames).await);
    assert!(
        second.contains(r#""columnDefinitions":null"#) && second.contains(r#""cells":["b",0,"#),
        "{second}"
    );
}

#[tokio::test]
async fn a_compacted_revision_causes_an_error_event() {
    let harness = Harness::open().await;
    for name in ["a", "b"] {
        harness.post(MAPS, &object("ConfigMap", name, "")).await;
    }
    let store = harness.registry.store();
    store.compact(store.revision()).await.unwrap();
    let mut frames = harness.watch(&format!("{MAPS}?watch=1&resourceVersion=1"), JSON).await;
    let error = next(&mut frames).await;
    assert_eq!(error.kind, EventType::Error);
    assert!(text(&error).contains("too old resource version: 1 (") && text(&error).contains("\"code\":410"));
    assert!(frames.next().await.is_none());
}

#[tokio::test]
async fn a_watch_ends_at_its_timeout() {
    let harness = Harness::open().await;
    let mut frames = harness.watch(&format!("{MAPS}?watch=1&timeoutSeconds=1"), JSON).await;
    assert!(frames.next().await.is_none());
}

#[tokio::test]
async fn a_watch_with_the_longest_timeout_starts() {
    let harness = Harness::open().await;
    let mut frames = harness.watch(&format!("{MAPS}?watch=1&timeoutSeconds={}", i64::MAX), JSON).await;
    harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    assert_eq!(summary(&*next(&mut frames).await), (EventType::Added, "a".into()));
}

#[tokio::test]
async fn a_single_object_is_watched_by_the_deprecated_path() {
    let harness = Harness::open().await;
    for name in ["a", "b"] {
        harness.post(MAPS, &object("ConfigMap", name, "")).await;
    }
    let mut frames = harness.watch("/api/v1/watch/namespaces/default/configmaps/b", JSON).await;
    assert_eq!(summary(&*next(&mut frames).await), (EventType::Added, "b".into()));
}

#[tokio::test]
async fn a_follower_gets_a_snapshot_and_every_change_after_it() {
    let harness = Harness::open().await;
    harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    let mut followed = harness.registry.follow(&GroupResource::new("", "configmaps")).await.unwrap();
    assert_eq!(followed.initial.iter().map(|s| s.name()).collect::<Vec<_>>(), ["a"]);
    harness.post(MAPS, &object("ConfigMap", "b", r#","data":{"k":"v"}"#)).await;
    harness.delete(&format!("{MAPS}/a")).await;
    let Some(Change::Put(b)) = followed.changes.next().await else { panic!("no change") };
    assert_eq!((b.name(), b.namespace(), b.object().at(&["data", "k"]).str()), ("b", "default", "v"));
    assert_eq!(b.object().resource_version(), b.revision().to_string());
    let Some(Change::Deleted(a)) = followed.changes.next().await else { panic!("no deletion") };
    assert_eq!(a.name(), "a");
    assert!(a.revision() > b.revision());
}

/// Two resources of one namespace, with labels for the follower.
fn maps_and_secrets() -> [(char, GroupResource); 2] {
    [('m', GroupResource::new("", "configmaps")), ('s', GroupResource::new("", "secrets"))]
}

#[tokio::test]
async fn changes_of_several_resources_arrive_in_one_order() {
    let harness = Harness::open().await;
    harness.post(MAPS, &object("ConfigMap", "a", "")).await;
    let mut followed = harness.registry.follow_all(maps_and_secrets()).await.unwrap();
    let initial: Vec<_> = followed.initial.iter().map(|(which, all)| (*which, all.len())).collect();
    assert_eq!(initial, [('m', 1), ('s', 0)]);
    let mut wanted = Vec::new();
    for name in ["b", "c", "d", "e"] {
        for (which, url, kind) in
            [('m', MAPS, "ConfigMap"), ('s', "/api/v1/namespaces/default/secrets", "Secret")]
        {
            harness.post(url, &object(kind, name, "")).await;
            wanted.push((which, name.to_owned()));
        }
    }
    let mut revision = followed.revision;
    for wanted in wanted {
        let Some((which, Change::Put(put))) = followed.changes.next().await else { panic!("no change") };
        assert_eq!((which, put.name().to_owned()), wanted);
        assert!(put.revision() > revision);
        revision = put.revision();
    }
}

#[tokio::test]
async fn a_slow_follower_gets_all_resources_relisted_and_the_revision_with_the_last() {
    let harness = Harness::open_with_settings(|settings| settings.subscription_events = 4).await;
    let mut followed = harness.registry.follow_all(maps_and_secrets()).await.unwrap();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        harness.post(MAPS, &object("ConfigMap", name, "")).await;
    }
    let mut relisted = Vec::new();
    let mut at = followed.revision;
    while relisted.len() < 2 {
        match followed.changes.next().await {
            Some((which, Change::Relisted(all, revision))) => relisted.push((which, all.len(), revision)),
            Some((_, Change::Put(put))) => at = put.revision(),
            _ => panic!("the stream has ended"),
        }
    }
    let newest = harness.store.revision();
    assert_eq!(relisted, [('m', 8, at), ('s', 0, newest)]);
    harness.post(MAPS, &object("ConfigMap", "i", "")).await;
    let Some(('m', Change::Put(put))) = followed.changes.next().await else { panic!("no change") };
    assert_eq!(put.name(), "i");
}
