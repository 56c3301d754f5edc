//! Tests of subscriptions to a hub without a store.

use futures::future::BoxFuture;
use prometheus_client::metrics::gauge::Gauge;

use super::history::HistoryPage;
use super::*;
use crate::event::EventType;
use crate::index::Indexed;
use crate::key::{Key, Resource};
use crate::record::{Record, Value};
use crate::scope::Scope;
use crate::settings::Settings;

struct NoHistory;

impl History for NoHistory {
    fn events(
        &self,
        _: Selection,
        _: i64,
        _: i64,
        _: usize,
        _: usize,
    ) -> BoxFuture<'_, Result<HistoryPage, StoreError>> {
        Box::pin(std::future::ready(Ok(HistoryPage { events: Vec::new(), has_more: false })))
    }
}

fn resource() -> Resource {
    Resource::new("", "configmaps")
}

fn event(namespace: &str, name: &str, revision: i64) -> Arc<Event> {
    let value = Value::new(&b"{}"[..], Indexed::default());
    let record = Arc::new(Record { key: Key::new(&resource(), namespace, name), revision, value });
    let (event_type, previous) = (EventType::Added, None);
    Arc::new(Event { event_type, record, previous, unreadable: None, is_record_cached: false })
}

/// Returns a hub at revision 1 with this limit of events for each subscription.
fn hub(subscription_events: usize) -> Arc<Hub> {
    let settings = Settings { subscription_events, ..Settings::new("/unused") };
    Arc::new(Hub::new(1, 1, &settings, Gauge::default()))
}

fn watch(hub: &Arc<Hub>, namespace: &str) -> Subscription {
    let selection = Selection::Scope(Scope::namespace(&resource(), namespace));
    Subscription::start(hub, selection, 1, Arc::new(NoHistory)).unwrap()
}

fn publish(hub: &Hub, events: Vec<Arc<Event>>) {
    let (events, revision): (Batch, _) = (events.clone().into(), events.last().unwrap().revision());
    hub.publish(&events, revision);
    hub.fan_out(&events, revision);
}

#[tokio::test]
async fn is_within_revision_is_true_until_the_last_selected_event_of_a_revision() {
    let hub = hub(100);
    let mut watch = watch(&hub, "x");
    publish(&hub, vec![event("x", "a", 5), event("x", "b", 5), event("y", "c", 5), event("x", "d", 6)]);
    let mut within = Vec::new();
    while let Some(event) = watch.try_next() {
        within.push((event.revision(), watch.is_within_revision()));
    }
    assert_eq!(within, [(5, true), (5, false), (6, false)]);
}

#[tokio::test]
async fn events_that_a_subscription_does_not_select_do_not_cut_it() {
    let hub = hub(4);
    let (mut narrow, mut busy) = (watch(&hub, "x"), watch(&hub, "y"));
    for revision in (2..14).step_by(3) {
        let [first, second, last] = [revision, revision + 1, revision + 2];
        publish(&hub, vec![event("y", "a", first), event("y", "b", second), event("x", "c", last)]);
    }
    for revision in (4..14).step_by(3) {
        assert_eq!(narrow.next().await.unwrap().revision(), revision);
    }
    let ended = loop {
        match busy.next().await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, WatchError::Lagged { revision: 6 }), "{ended:?}");
}

#[tokio::test]
async fn progress_stops_where_the_subscription_was_ended() {
    let hub = hub(100);
    let mut watch = watch(&hub, "x");
    hub.advance(5);
    assert_eq!(watch.progress(), 5);
    hub.expire(&resource());
    hub.advance(9);
    assert_eq!(watch.progress(), 5);
}
