//! Running subscriptions of one resource, indexed by namespace, name and field value. A change visits only the subscriptions that
//! may select it, however many watch the same resource (upstream's cacher indexes pods by `spec.nodeName` only).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::event::Event;
use crate::record::Record;
use crate::scope::{ObjectFilter, Scope};
use crate::subscription::queue_load::QueueLoad;
use crate::subscription::selection::{Batch, Selection};

/// Sending side of a running subscription.
pub(super) struct Subscriber {
    pub(super) id: u64,
    pub(super) selection: Selection,
    pub(super) sender: mpsc::Sender<Batch>,
    pub(super) load: Arc<QueueLoad>,
}

type SubscriberList = Vec<Subscriber>;
type ByText<T> = HashMap<Arc<str>, T>;

/// Subscriptions of one resource. Each is in exactly one list: that of its most specific condition.
#[derive(Default)]
pub(super) struct ScopeSubscribers {
    all: SubscriberList,
    namespaces: ByText<SubscriberList>,
    names: ByText<SubscriberList>,
    /// Keyed by field name, then field value.
    fields: ByText<ByText<SubscriberList>>,
}

impl ScopeSubscribers {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.namespaces.is_empty() && self.names.is_empty() && self.fields.is_empty()
    }

    pub(super) fn insert(&mut self, scope: &Scope, subscriber: Subscriber) {
        let list = match (&scope.filter, &scope.namespace) {
            (ObjectFilter::Name(name), _) => self.names.entry(name.clone()).or_default(),
            (ObjectFilter::Field { name, value }, _) => {
                self.fields.entry(name.clone()).or_default().entry(value.clone()).or_default()
            }
            (ObjectFilter::Any, Some(namespace)) => self.namespaces.entry(namespace.clone()).or_default(),
            (ObjectFilter::Any, None) => &mut self.all,
        };
        list.push(subscriber);
    }

    /// Removes a subscription. Returns false if it was already removed.
    pub(super) fn remove(&mut self, scope: &Scope, id: u64) -> bool {
        match (&scope.filter, &scope.namespace) {
            (ObjectFilter::Name(name), _) => edit(&mut self.names, name, |list| remove(list, id)),
            (ObjectFilter::Field { name, value }, _) => {
                edit_values(&mut self.fields, name, |values| edit(values, value, |list| remove(list, id)))
            }
            (ObjectFilter::Any, Some(namespace)) => {
                edit(&mut self.namespaces, namespace, |list| remove(list, id))
            }
            (ObjectFilter::Any, None) => remove(&mut self.all, id),
        }
    }

    /// Iterates over all subscriptions.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Subscriber> {
        let field_lists = self.fields.values().flat_map(|values| values.values());
        let lists = self.namespaces.values().chain(self.names.values()).chain(field_lists);
        self.all.iter().chain(lists.flatten())
    }

    /// Calls `keep` once for each subscription that may select one of these changes, and drops those for which it returns false.
    pub(super) fn offer(&mut self, events: &[Arc<Event>], keep: impl Fn(&Subscriber) -> bool) {
        self.all.retain(&keep);
        let keys = || events.iter().map(|event| &event.record.key);
        if !self.namespaces.is_empty() {
            for namespace in keys().map(|key| key.namespace()).collect::<BTreeSet<_>>() {
                edit(&mut self.namespaces, namespace, |list| list.retain(&keep));
            }
        }
        if !self.names.is_empty() {
            for name in keys().map(|key| key.name()).collect::<BTreeSet<_>>() {
                edit(&mut self.names, name, |list| list.retain(&keep));
            }
        }
        self.fields.retain(|field, values| {
            offer_values(values, field, events, &keep);
            !values.is_empty()
        });
    }
}

/// Offers changes to subscriptions by the value of one field: the current value of the object and its previous value.
fn offer_values(
    values: &mut ByText<SubscriberList>,
    field: &str,
    events: &[Arc<Event>],
    keep: &impl Fn(&Subscriber) -> bool,
) {
    // The current or previous value is unknown, so it may match any subscription.
    if events.iter().any(|event| event.has_unreadable_state()) {
        return values.retain(|_, list| {
            list.retain(keep);
            !list.is_empty()
        });
    }
    let states = events.iter().flat_map(|event| event.states());
    for value in states.filter_map(|record: &Record| record.value.field(field)).collect::<BTreeSet<_>>() {
        edit(values, value, |list| list.retain(keep));
    }
}

/// Edits an existing list and removes it when it becomes empty.
fn edit<R: Default>(
    lists: &mut ByText<SubscriberList>,
    at: &str,
    change: impl FnOnce(&mut SubscriberList) -> R,
) -> R {
    let Some(list) = lists.get_mut(at) else { return R::default() };
    let changed = change(list);
    if list.is_empty() {
        lists.remove(at);
    }
    changed
}

fn edit_values(
    fields: &mut ByText<ByText<SubscriberList>>,
    at: &str,
    change: impl FnOnce(&mut ByText<SubscriberList>) -> bool,
) -> bool {
    let Some(values) = fields.get_mut(at) else { return false };
    let changed = change(values);
    if values.is_empty() {
        fields.remove(at);
    }
    changed
}

/// Removes a subscription from a list. Returns false if it was already removed.
pub(super) fn remove(list: &mut SubscriberList, id: u64) -> bool {
    let index = list.iter().position(|subscriber| subscriber.id == id);
    index.map(|index| list.swap_remove(index)).is_some()
}
