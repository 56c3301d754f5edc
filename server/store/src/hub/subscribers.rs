//! The running subscriptions of one resource, found by what a change is about: a change costs those alone that may take it,
//! however many others watch the same resource (upstream's cacher indexes pods by `spec.nodeName` alone).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::event::Event;
use crate::record::Record;
use crate::scope::{Only, Scope};
use crate::subscription::load::Load;
use crate::subscription::selection::{Batch, Selection};

/// A running subscription, as the sender sees it.
pub(super) struct Subscriber {
    pub(super) id: u64,
    pub(super) selection: Selection,
    pub(super) sender: mpsc::Sender<Batch>,
    pub(super) load: Arc<Load>,
}

type Subscribers = Vec<Subscriber>;
type ByText<T> = HashMap<Arc<str>, T>;

/// The subscriptions of one resource. Each is in one list: that of the narrowest thing that it names.
#[derive(Default)]
pub(super) struct ScopeSubscribers {
    all: Subscribers,
    namespaces: ByText<Subscribers>,
    names: ByText<Subscribers>,
    /// By a field's name, then its value.
    fields: ByText<ByText<Subscribers>>,
}

impl ScopeSubscribers {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.namespaces.is_empty() && self.names.is_empty() && self.fields.is_empty()
    }

    pub(super) fn insert(&mut self, scope: &Scope, subscriber: Subscriber) {
        let list = match (&scope.only, &scope.namespace) {
            (Only::Name(name), _) => self.names.entry(name.clone()).or_default(),
            (Only::Field { name, value }, _) => {
                self.fields.entry(name.clone()).or_default().entry(value.clone()).or_default()
            }
            (Only::Any, Some(namespace)) => self.namespaces.entry(namespace.clone()).or_default(),
            (Only::Any, None) => &mut self.all,
        };
        list.push(subscriber);
    }

    /// False for one that is not there any more.
    pub(super) fn remove(&mut self, scope: &Scope, id: u64) -> bool {
        match (&scope.only, &scope.namespace) {
            (Only::Name(name), _) => edit(&mut self.names, name, |list| remove(list, id)),
            (Only::Field { name, value }, _) => {
                edit_values(&mut self.fields, name, |values| edit(values, value, |list| remove(list, id)))
            }
            (Only::Any, Some(namespace)) => edit(&mut self.namespaces, namespace, |list| remove(list, id)),
            (Only::Any, None) => remove(&mut self.all, id),
        }
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Subscriber> {
        let of_fields = self.fields.values().flat_map(|values| values.values());
        let lists = self.namespaces.values().chain(self.names.values()).chain(of_fields);
        self.all.iter().chain(lists.flatten())
    }

    /// Calls `keep` once for each subscription that may take one of these changes, and drops those for which it is false.
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

/// Offers changes to those who watch for values of one field: what an object has now, and what it had before.
fn offer_values(
    values: &mut ByText<Subscribers>,
    field: &str,
    events: &[Arc<Event>],
    keep: &impl Fn(&Subscriber) -> bool,
) {
    // What it has, or had before, is not known: it may be anything.
    if events.iter().any(|event| event.is_partly_unreadable()) {
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

/// Changes a list that is there, and drops it when nothing is left in it.
fn edit<R: Default>(
    lists: &mut ByText<Subscribers>,
    at: &str,
    change: impl FnOnce(&mut Subscribers) -> R,
) -> R {
    let Some(list) = lists.get_mut(at) else { return R::default() };
    let changed = change(list);
    if list.is_empty() {
        lists.remove(at);
    }
    changed
}

fn edit_values(
    fields: &mut ByText<ByText<Subscribers>>,
    at: &str,
    change: impl FnOnce(&mut ByText<Subscribers>) -> bool,
) -> bool {
    let Some(values) = fields.get_mut(at) else { return false };
    let changed = change(values);
    if values.is_empty() {
        fields.remove(at);
    }
    changed
}

/// False for one that is not there any more.
pub(super) fn remove(list: &mut Subscribers, id: u64) -> bool {
    let at = list.iter().position(|subscriber| subscriber.id == id);
    at.map(|at| list.swap_remove(at)).is_some()
}
