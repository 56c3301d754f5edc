//! What the control service has said, in force: entries applied to the route table, the catalogue, the checks and the
//! policy.
//!
//! One writer at a time; readers see a table before or after a change, never within. It must not know how entries
//! arrive (the stream, or the disk).

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;
use portico_auth::authz::Rbac;
use portico_facade_catalog::{Catalog, Change};
use portico_kit::health::{Endpoint, Health, RemoteCheck};
use portico_kit::lifecycle::Signal;
use portico_machinery::pool::Pool;
use portico_machinery::rbac::{self, Fact};
use portico_machinery::route::Backend;
use portico_proto::convert::{Check, Entry, Payload, PayloadKind, Version, setting};
use tokio::sync::watch;

use crate::issuer::{self, Issuer};
use crate::mux::MuxError;
use crate::route_table::RouteTable;

/// An entry that is not in force, and why: told to the control service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `kind/key`
    pub key: String,
    /// For people.
    pub reason: String,
}

/// See the module.
pub struct Configuration {
    /// What requests are routed by.
    pub table: Arc<ArcSwap<RouteTable>>,
    /// Discovery and OpenAPI.
    pub catalog: Arc<Catalog>,
    /// Where the control service's checks appear.
    pub health: Health,
    /// What roles and bindings say.
    pub rbac: Arc<Rbac>,
    /// Given when the first configuration is in force.
    pub synced: Signal,
    /// Whose tokens are believed.
    pub issuer: Arc<Issuer>,
    base: RouteTable,
    held: Mutex<Held>,
    changed: watch::Sender<u64>,
    /// The revision up to which roles and bindings are in force.
    policy: watch::Sender<i64>,
}

type Key = (PayloadKind, String);

#[derive(Default)]
struct Held {
    version: Option<Version>,
    entries: BTreeMap<Key, Arc<Entry>>,
    /// What routes to the same backend share.
    backends: Pool<Backend>,
    /// The check that tells readers of `/readyz?verbose` that the configuration is stale.
    stale: Option<String>,
}

impl Configuration {
    /// Nothing but the built-in endpoints of `base`.
    #[must_use]
    pub fn new(base: RouteTable, catalog: Arc<Catalog>, health: Health, synced: Signal) -> Self {
        let table = Arc::new(ArcSwap::from_pointee(base.clone()));
        Self {
            table,
            catalog,
            health,
            rbac: Arc::default(),
            synced,
            issuer: Arc::default(),
            base,
            held: Mutex::default(),
            changed: watch::channel(0).0,
            policy: watch::channel(0).0,
        }
    }

    /// The version in force.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.held.lock().version.clone()
    }

    /// Everything in force, for the disk.
    #[must_use]
    pub fn snapshot(&self) -> Option<(Version, Vec<Arc<Entry>>)> {
        let held = self.held.lock();
        Some((held.version.clone()?, held.entries.values().cloned().collect()))
    }

    /// Counts up with every change of entries (not with versions alone).
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Waits until roles and bindings are in force as they were at this revision. Cancel safe.
    pub async fn policy_at(&self, revision: i64) {
        // The sender is here: it is not gone.
        let _ = self.policy.subscribe().wait_for(|known| *known >= revision).await;
    }

    /// CA bundles that routes name and that are not here.
    #[must_use]
    pub fn missing_bundles(&self) -> Vec<String> {
        self.table.load().missing_bundles()
    }

    /// Puts a whole configuration in force, in the place of what was.
    pub fn replace(&self, version: Version, entries: Vec<Entry>) -> Vec<Refusal> {
        let mut held = self.held.lock();
        held.entries.clear();
        let mut table = self.base.clone();
        let mut refused = Vec::new();
        let mut checks = Vec::new();
        let mut changes = Vec::new();
        let mut facts = Vec::new();
        for mut entry in in_order(entries) {
            if entry.payload.is_none() {
                // In a snapshot what is gone, or refused, is not there.
                continue;
            }
            share(&mut entry, &mut held.backends);
            match apply(&mut table, &entry) {
                Ok(()) => {}
                Err(error) => {
                    refused.push(refusal(&entry, &error));
                    continue;
                }
            }
            checks.extend(check_of(&entry));
            changes.extend(change_of(&entry));
            facts.extend(fact_of(&entry));
            held.entries.insert((entry.kind, entry.key.clone()), Arc::new(entry));
        }
        // Its own revision, which may be older than what was known of another epoch.
        let policy = facts.iter().map(|f| f.revision).max().unwrap_or(version.revision);
        self.rbac.replace(facts.into_iter().filter_map(|f| Some((f.key, f.fact?))));
        self.policy.send_replace(policy);
        self.table.store(Arc::new(table));
        self.catalog.reset(changes);
        self.health.replace_remote(checks);
        self.follow_settings(&held);
        held.version = Some(version);
        drop(held);
        self.in_force();
        refused
    }

    /// Puts changes in force. An entry that cannot be used leaves the one under its key as it is.
    pub fn change(&self, version: Version, entries: Vec<Entry>) -> Vec<Refusal> {
        let mut held = self.held.lock();
        // Copied when an entry concerns it.
        let mut table = None;
        let mut refused = Vec::new();
        let mut changes = Vec::new();
        let mut facts = Vec::new();
        let of_the_issuer = entries.iter().any(issuer::concerns);
        for mut entry in in_order(entries) {
            share(&mut entry, &mut held.backends);
            if in_table(entry.kind) {
                let table = table.get_or_insert_with(|| RouteTable::clone(&self.table.load()));
                if let Err(error) = apply(table, &entry) {
                    refused.push(refusal(&entry, &error));
                    continue;
                }
            }
            match check_of(&entry) {
                Some(check) => self.health.set_remote(check),
                None if entry.kind == PayloadKind::Check => self.health.remove_remote(&entry.key),
                None => {}
            }
            changes.extend(change_of(&entry));
            facts.extend(fact_of(&entry));
            let key = (entry.kind, entry.key.clone());
            if entry.payload.is_some() {
                held.entries.insert(key, Arc::new(entry));
            } else {
                held.entries.remove(&key);
            }
        }
        if let Some(table) = table {
            self.table.store(Arc::new(table));
        }
        if !changes.is_empty() {
            self.catalog.update(changes);
        }
        if let Some(newest) = facts.iter().map(|f| f.revision).max() {
            self.rbac.update(facts.into_iter().map(|f| (f.key, f.fact)));
            self.policy.send_if_modified(|known| {
                let later = newest > *known;
                *known = newest.max(*known);
                later
            });
        }
        if of_the_issuer {
            self.follow_settings(&held);
        }
        held.version = Some(version);
        drop(held);
        self.in_force();
        refused
    }

    /// A CA bundle that came later than the routes that name it.
    pub fn bundle_came(&self, hash: &str, pem: Bytes) {
        let _held = self.held.lock();
        let mut table = RouteTable::clone(&self.table.load());
        if let Err(error) = table.set_bundle(hash, pem) {
            tracing::warn!(hash, %error, "a CA bundle is not used");
        }
        self.table.store(Arc::new(table));
    }

    /// Documents that entries name have come: what is on disk is out of date.
    pub fn documents_came(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    /// Revisions passed that concern nobody here.
    pub fn progress(&self, version: Version) {
        self.held.lock().version = Some(version);
    }

    /// Tells `/readyz?verbose` that the configuration in force is not current.
    pub fn mark_stale(&self) {
        let mut held = self.held.lock();
        let Some(Version { store_id, revision, .. }) = &held.version else { return };
        let name = format!(
            "fail-static: serving revision {revision} of store {store_id}, the control service is away"
        );
        let stale = RemoteCheck { name: name.clone(), endpoints: vec![Endpoint::Readyz], failure: None };
        if let Some(old) = held.stale.replace(name) {
            self.health.remove_remote(&old);
        }
        self.health.set_remote(stale);
    }

    /// Takes that back.
    pub fn mark_live(&self) {
        if let Some(name) = self.held.lock().stale.take() {
            self.health.remove_remote(&name);
        }
    }

    /// What all facades share besides routes: the issuer's keys, and where clients inside reach the API.
    fn follow_settings(&self, held: &Held) {
        self.issuer.follow(held.entries.values());
        let key = (PayloadKind::Setting, setting::SERVICE_ADDRESS.to_owned());
        let rule = held.entries.get(&key).and_then(|entry| match &entry.payload {
            Some(Payload::Setting(text)) => text.parse().ok(),
            _ => None,
        });
        self.catalog.set_address_rule(rule);
    }

    fn in_force(&self) {
        self.changed.send_modify(|n| *n += 1);
        self.synced.signal();
    }
}

/// CA bundles first, so that routes find theirs; otherwise as they came.
fn in_order(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by_key(|e| e.kind != PayloadKind::TrustBundle);
    entries
}

/// A route takes the backend that others hold, if theirs is the same.
fn share(entry: &mut Entry, backends: &mut Pool<Backend>) {
    if let Some(Payload::Route(route)) = &mut entry.payload
        && let Some(route) = Arc::get_mut(route)
    {
        route.share_backend(backends);
    }
}

fn apply(table: &mut RouteTable, entry: &Entry) -> Result<(), MuxError> {
    match (&entry.payload, entry.kind) {
        (Some(Payload::Route(route)), _) => return table.set_route(route.clone()),
        (Some(Payload::Served(served)), _) => table.set_served(&entry.key, served.clone()),
        (Some(Payload::TrustBundle(pem)), _) => return table.set_bundle(&entry.key, pem.clone()),
        (Some(Payload::Check(_) | Payload::Setting(_) | Payload::Rbac(_) | Payload::TokenKey(_)), _) => {}
        (None, PayloadKind::Route) => table.remove_route(&entry.key),
        (None, PayloadKind::Served) => table.remove_served(&entry.key),
        (None, PayloadKind::TrustBundle) => table.remove_bundle(&entry.key),
        (None, PayloadKind::Check | PayloadKind::Setting | PayloadKind::Rbac | PayloadKind::TokenKey) => {}
    }
    Ok(())
}

/// Whether the route table shows entries of this kind.
fn in_table(kind: PayloadKind) -> bool {
    matches!(kind, PayloadKind::Route | PayloadKind::Served | PayloadKind::TrustBundle)
}

/// What a role or binding says, and since when.
struct Said {
    key: rbac::Key,
    revision: i64,
    fact: Option<Fact>,
}

fn fact_of(entry: &Entry) -> Option<Said> {
    if entry.kind != PayloadKind::Rbac {
        return None;
    }
    let fact = match &entry.payload {
        Some(Payload::Rbac(fact)) => Some(Fact::clone(fact)),
        _ => None,
    };
    // Keys have been checked where entries are decoded.
    Some(Said { key: entry.key.parse().ok()?, revision: entry.revision, fact })
}

fn change_of(entry: &Entry) -> Option<Change> {
    let key = entry.key.clone();
    match (&entry.payload, entry.kind) {
        (Some(Payload::Route(route)), _) => Some(Change::Route { key, route: Some(route.clone()) }),
        (Some(Payload::Served(served)), _) => Some(Change::Served { key, served: Some(served.clone()) }),
        (None, PayloadKind::Route) => Some(Change::Route { key, route: None }),
        (None, PayloadKind::Served) => Some(Change::Served { key, served: None }),
        _ => None,
    }
}

fn check_of(entry: &Entry) -> Option<RemoteCheck> {
    let Some(Payload::Check(Check { endpoints, ok, message })) = &entry.payload else { return None };
    let named = |e: &Endpoint| endpoints.iter().any(|name| name == e.name());
    Some(RemoteCheck {
        name: entry.key.clone(),
        endpoints: Endpoint::ALL.into_iter().filter(named).collect(),
        failure: (!ok).then(|| message.clone()),
    })
}

fn refusal(entry: &Entry, error: &MuxError) -> Refusal {
    Refusal { key: format!("{:?}/{}", entry.kind, entry.key), reason: error.to_string() }
}
