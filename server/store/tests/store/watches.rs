//! Tests of subscriptions: order, completeness, resumption, lag.

use std::sync::Arc;

use portico_store::{
    Change, EventType, Indexed, Key, ObjectFilter, Precondition, Scope, Store, Subscription, Txn, Value,
    WatchError,
};

use crate::harness::*;

pub async fn a_watch_receives_all_changes_in_order_with_previous_states(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut watch = store.watch(Scope::all(&config_maps()), store.revision()).unwrap();
    assert!(watch.try_next().is_none());
    put(&*store, &key("a/1"), "1").await;
    put(&*store, &key("a/1"), "2").await;
    delete(&*store, &key("a/1")).await;
    let events = take(&mut watch, 3).await;
    assert_eq!(event_lines(&events), ["Added a/1@2", "Modified a/1@3", "Deleted a/1@4"]);
    let before: Vec<_> =
        events.iter().map(|event| event.previous.as_ref().map(|record| text(record))).collect();
    assert_eq!(before, [None, Some("1".to_owned()), Some("2".to_owned())]);
    let deleted_text = if backend.deletion_events_have_stored_state() { "2" } else { "gone" };
    assert_eq!(text(&events[2].record), deleted_text);
    assert!(watch.try_next().is_none());
}

pub async fn a_watch_resumes_from_any_revision(backend: &dyn Backend) {
    // The ring has ten events: earlier ones are read from the database.
    let store = backend.open_with(&|settings| settings.ring_events = 10).await;
    for n in 0..1_200 {
        put(&*store, &key(&format!("a/{}", n % 7)), &n.to_string()).await;
    }
    let last = store.revision();
    for from in [1, 2, 600, 1_189, 1_190, 1_191, 1_192, 1_200].map(rev) {
        let mut watch = store.watch(Scope::all(&config_maps()), from).unwrap();
        let events = take(&mut watch, usize::try_from(last - from).unwrap()).await;
        let revisions: Vec<i64> = events.iter().map(|event| event.revision()).collect();
        assert_eq!(revisions, (from + 1..=last).collect::<Vec<_>>());
        let with_state = events.iter().filter(|event| event.revision() > rev(8));
        for event in with_state {
            let previous = event.previous.as_ref().unwrap();
            assert_eq!((event.event_type, previous.revision), (EventType::Modified, event.revision() - 7));
        }
        assert!(watch.try_next().is_none());
        assert_eq!(watch.progress(), last);
    }
    let mut future = store.watch(Scope::all(&config_maps()), last + 1).unwrap();
    put(&*store, &key("a/1"), "skipped").await;
    let next = put(&*store, &key("a/1"), "seen").await;
    assert_eq!(take(&mut future, 1).await[0].revision(), next);
}

pub async fn a_watch_resumes_after_a_restart(backend: &dyn Backend) {
    let store = backend.open().await;
    for n in 0..5 {
        put(&*store, &key(&format!("a/{n}")), "1").await;
    }
    delete(&*store, &key("a/3")).await;
    store.close().await;
    drop(store);
    let store = backend.open().await;
    let mut watch = store.watch(Scope::all(&config_maps()), rev(4)).unwrap();
    put(&*store, &key("a/9"), "1").await;
    let events = take(&mut watch, 4).await;
    assert_eq!(event_lines(&events), ["Added a/3@5", "Added a/4@6", "Deleted a/3@7", "Added a/9@8"]);
    assert_eq!(text(events[2].previous.as_ref().unwrap()), "1");
}

pub async fn a_watch_resumes_across_large_events(backend: &dyn Backend) {
    let store = backend.open_with(&|settings| settings.ring_bytes = 1).await;
    // Several times the page size, and one event that exceeds it.
    let sizes = (0..60).map(|n| if n == 30 { 2_000_000 } else { 60_000 });
    let mut expected = Vec::new();
    for (n, size) in sizes.enumerate() {
        put(&*store, &key(&format!("a/{n}")), &"x".repeat(size / 2)).await;
        expected.push(format!("Added a/{n}@{}", n + 2));
    }
    let mut watch = store.watch(Scope::all(&config_maps()), rev(1)).unwrap();
    assert_eq!(event_lines(&take(&mut watch, 60).await), expected);
}

pub async fn a_watch_of_a_namespace_receives_only_its_changes(backend: &dyn Backend) {
    let store = backend.open_with(&|settings| settings.ring_events = 2).await;
    for path in ["a/1", "a-b/1", "b/1", "a/2", "b/2", "b/3"] {
        put(&*store, &key(path), "x").await;
    }
    let mut watch = store.watch(Scope::namespace(&config_maps(), "a"), rev(1)).unwrap();
    put(&*store, &key("b/4"), "x").await;
    put(&*store, &key("a/3"), "x").await;
    assert_eq!(event_lines(&take(&mut watch, 3).await), ["Added a/1@2", "Added a/2@5", "Added a/3@9"]);
}

fn filtered(filter: ObjectFilter) -> Scope {
    Scope { filter, ..Scope::all(&config_maps()) }
}

fn on_node(node: &str) -> ObjectFilter {
    ObjectFilter::Field { name: "spec.nodeName".into(), value: node.into() }
}

/// Creates or replaces an object with this value of the field.
async fn put_on(store: &dyn Store, path: &str, node: &str) {
    let indexed =
        Indexed { splice: 13, fields: [("spec.nodeName".into(), node.into())].into(), ..Indexed::default() };
    let json = format!(r#"{{"metadata":{{}},"spec":{{"nodeName":"{node}"}}}}"#);
    let change = Change::Put(Value::new(json.into_bytes(), indexed));
    commit(store, Txn::single(key(path), Precondition::Any, change)).await.unwrap();
}

pub async fn a_filtered_watch_receives_objects_that_start_or_stop_matching(backend: &dyn Backend) {
    let store = backend.open().await;
    let from = store.revision();
    let mut first = store.watch(filtered(on_node("n1")), from).unwrap();
    let mut second =
        store.watch(Scope { namespace: Some("b".into()), ..filtered(on_node("n2")) }, from).unwrap();
    let mut named = store.watch(filtered(ObjectFilter::Name("2".into())), from).unwrap();
    let mut other = store.watch(Scope::all(&leases()), from).unwrap();
    put_on(&*store, "a/1", "").await;
    put_on(&*store, "a/1", "n1").await;
    put_on(&*store, "b/2", "n1").await;
    put_on(&*store, "b/2", "n2").await;
    put_on(&*store, "a/1", "n2").await;
    put_on(&*store, "c/2", "n3").await;
    delete(&*store, &key("b/2")).await;
    let expected = ["Modified a/1@3", "Added b/2@4", "Modified b/2@5", "Modified a/1@6"];
    assert_eq!(event_lines(&take(&mut first, 4).await), expected);
    assert_eq!(event_lines(&take(&mut second, 2).await), ["Modified b/2@5", "Deleted b/2@8"]);
    let expected = ["Added b/2@4", "Modified b/2@5", "Added c/2@7", "Deleted b/2@8"];
    assert_eq!(event_lines(&take(&mut named, 4).await), expected);
    // A revision counts as progress after it reached every queue, which is certain when an event of the next one arrives.
    let revision = put(&*store, &Key::new(&leases(), "a", "l"), "x").await;
    take(&mut other, 1).await;
    for watch in [&mut first, &mut second, &mut named] {
        assert!(watch.try_next().is_none());
        assert!((revision - 1..=revision).contains(&watch.progress()));
    }
}

pub async fn changes_that_a_watch_does_not_select_are_not_queued(backend: &dyn Backend) {
    // Another event in the queue would end the watch.
    let store = backend.open_with(&|settings| settings.subscription_events = 1).await;
    let from = store.revision();
    let namespace = Scope::namespace(&config_maps(), "wanted");
    let scopes = [namespace, filtered(ObjectFilter::Name("wanted".into())), filtered(on_node("wanted"))];
    let mut watches = scopes.map(|scope| store.watch(scope, from).unwrap());
    for n in 0..20 {
        put_on(&*store, &format!("other/{n}"), "other").await;
    }
    put_on(&*store, "wanted/wanted", "wanted").await;
    for watch in &mut watches {
        assert_eq!(event_lines(&take(watch, 1).await), ["Added wanted/wanted@22"]);
    }
}

pub async fn follow_receives_the_filtered_log(backend: &dyn Backend) {
    let store = backend.open().await;
    let lease = Key::new(&leases(), "a", "l");
    let mut all = store.follow(Arc::new(|_| true), rev(1)).unwrap();
    put(&*store, &key("a/1"), "x").await;
    put(&*store, &lease, "x").await;
    store.close().await;
    drop(store);
    let store = backend.open().await;
    let mut leases_only = store.follow(Arc::new(|resource| resource.resource == "leases"), rev(1)).unwrap();
    let mut resumed = store.follow(Arc::new(|_| true), rev(1)).unwrap();
    put(&*store, &key("a/2"), "x").await;
    put(&*store, &lease, "y").await;
    assert_eq!(event_lines(&take(&mut all, 2).await), ["Added a/1@2", "Added a/l@3"]);
    assert!(matches!(all.next().await, Err(WatchError::Closed)));
    assert_eq!(event_lines(&take(&mut leases_only, 2).await), ["Added a/l@3", "Modified a/l@5"]);
    let all = ["Added a/1@2", "Added a/l@3", "Added a/2@4", "Modified a/l@5"];
    assert_eq!(event_lines(&take(&mut resumed, 4).await), all);
}

pub async fn only_the_slow_subscription_is_ended(backend: &dyn Backend) {
    let store = backend.open_with(&|settings| settings.subscription_events = 50).await;
    let mut slow = store.watch(Scope::all(&config_maps()), rev(1)).unwrap();
    let mut quick = store.watch(Scope::all(&config_maps()), rev(1)).unwrap();
    for n in 0..200 {
        put(&*store, &key("a/1"), &n.to_string()).await;
        take(&mut quick, 1).await;
    }
    let mut last_received = 0;
    let revision = loop {
        match slow.next().await {
            Ok(event) => last_received = event.revision(),
            Err(WatchError::Lagged { revision }) => break revision,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!((last_received, revision), (rev(51), rev(51)));
    // The watch resumes where it was cut.
    let mut resumed = store.watch(Scope::all(&config_maps()), revision).unwrap();
    assert_eq!(take(&mut resumed, 150).await.last().unwrap().revision(), store.revision());
    put(&*store, &key("a/1"), "x").await;
    take(&mut quick, 1).await;
}

pub async fn progress_advances_without_events(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut watch = store.watch(Scope::all(&leases()), rev(1)).unwrap();
    let mut other = store.watch(Scope::all(&config_maps()), rev(1)).unwrap();
    let revision = put(&*store, &key("a/1"), "x").await;
    // When one subscription has received an event, earlier groups have reached all subscriptions.
    put(&*store, &key("a/2"), "x").await;
    assert!(other.progress() < revision, "progress must not include undelivered events");
    take(&mut other, 2).await;
    assert!(watch.progress() >= revision);
    let lease = Key::new(&leases(), "a", "l");
    let revision = put(&*store, &lease, "x").await;
    assert_eq!(take(&mut watch, 1).await[0].revision(), revision);
    assert!(watch.progress() >= revision);
}

pub async fn a_closed_store_ends_watches_after_queued_events(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut watch = store.watch(Scope::all(&config_maps()), rev(1)).unwrap();
    put(&*store, &key("a/1"), "x").await;
    store.close().await;
    take(&mut watch, 1).await;
    assert!(matches!(watch.next().await, Err(WatchError::Closed)));
    assert!(matches!(store.watch(Scope::all(&config_maps()), 1), Err(WatchError::Closed)));
}

async fn assert_drained(mut watch: Subscription, from: i64, last: i64) {
    let events = take(&mut watch, usize::try_from(last - from).unwrap()).await;
    let revisions: Vec<i64> = events.iter().map(|event| event.revision()).collect();
    assert_eq!(revisions, (from + 1..=last).collect::<Vec<_>>());
}

pub async fn watches_started_during_many_writes_miss_no_event(backend: &dyn Backend) {
    let store = backend.open_with(&|settings| settings.ring_events = 64).await;
    let last = rev(1_601);
    let writer = |task: usize| {
        let store = store.clone();
        async move {
            for n in 0..100 {
                let key = key(&format!("a/{task}-{}", n % 5));
                let change = Change::Put(value(&key, "x"));
                commit(&*store, Txn::single(key, Precondition::Any, change)).await.unwrap();
            }
        }
    };
    let watcher = || {
        let store = store.clone();
        async move {
            let mut watches = Vec::new();
            for _ in 0..40 {
                let from = store.revision() - 200;
                let from = from.max(rev(1));
                watches.push((store.watch(Scope::all(&config_maps()), from).unwrap(), from));
                // Writers that are faster than this loop finish first.
                store.wait_for_revision(last.min(from + 230)).await.unwrap();
            }
            watches
        }
    };
    let writers = futures::future::join_all((0..16).map(writer));
    let (_, watches) = futures::future::join(writers, watcher()).await;
    assert_eq!(store.revision(), last);
    for (watch, from) in watches {
        assert_drained(watch, from, last).await;
    }
}
