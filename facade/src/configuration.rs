//! From entries of the control service to what is in force: routes, served APIs, policy, the issuer; and the checks.
//!
//! One writer at a time; readers see what is in force before or after a change, never within. It must not know how entries
//! arrive (the stream, or the disk).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;
use portico_auth::AuthenticatorChain;
use portico_auth::authn::Anonymous;
use portico_auth::authz::Mode;
use portico_facade_catalog::Change;
use portico_flow::Dispatcher;
use portico_kit::health::{Endpoint, Health, RemoteCheck};
use portico_kit::lifecycle::Signal;
use portico_machinery::effective_version::EffectiveVersion;
use portico_machinery::flow_control;
use portico_machinery::peer_addresses::PeerAddresses;
use portico_machinery::pool::Pool;
use portico_machinery::rbac::{self, Fact, Policy};
use portico_machinery::route::Backend;
use portico_proto::convert::{Check, Entry, Payload, PayloadKind, Version, setting};
use tokio::sync::watch;

use crate::in_force::{Current, InForce};
use crate::issuer::{self, Issuer};
use crate::mux::MuxError;
use crate::route_table::RouteTable;

/// An entry that is not in force, and why: reported to the control service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `kind/key`
    pub key: String,
    /// For people.
    pub reason: String,
}

/// See the module.
pub struct Configuration {
    /// What requests are answered by.
    pub current: Current,
    /// Where the control service's checks appear.
    pub health: Health,
    /// Given when the first configuration is in force.
    pub synced: Signal,
    base: RouteTable,
    /// `--authorization-mode`, until the control service says who decides.
    modes: Vec<Mode>,
    /// Receives schemas and levels, where requests are queued.
    flow: Option<Dispatcher>,
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
    /// The check that says in `/readyz?verbose` that the configuration is stale.
    stale: Option<String>,
    /// The one that says which control service is in use.
    in_use: Option<String>,
}

impl Held {
    /// True if these entries are the ones in force, at an earlier or the same revision of the same life of the store.
    fn is_unchanged(&self, version: &Version, entries: &[Entry]) -> bool {
        let is_same_life = self.version.as_ref().is_some_and(|held| {
            (&held.store_id, &held.epoch) == (&version.store_id, &version.epoch)
                && held.revision <= version.revision
        });
        let key = |entry: &Entry| (entry.kind, entry.key.clone());
        let is_held = |entry: &Entry| self.entries.get(&key(entry)).is_some_and(|held| **held == *entry);
        is_same_life
            && entries.iter().all(is_held)
            && entries.iter().map(key).collect::<BTreeSet<_>>().len() == self.entries.len()
    }

    /// The text of a setting.
    fn setting(&self, name: &str) -> Option<&str> {
        match &self.entries.get(&(PayloadKind::Setting, name.to_owned()))?.payload {
            Some(Payload::Setting(text)) => Some(text),
            _ => None,
        }
    }

    /// Who decides, as the control service says; these while it does not say. A mode that is not known here is the control
    /// service's to decide by.
    fn modes(&self, own: &[Mode]) -> Vec<Mode> {
        let modes = self.setting(setting::AUTHORIZATION_MODES);
        let mode = |name| Mode::of_name(name).unwrap_or(Mode::Webhook);
        modes.map_or_else(|| own.to_vec(), |modes| modes.lines().map(mode).collect())
    }
}

impl Configuration {
    /// Nothing but the built-in endpoints of `base`, and callers whom nobody knows.
    #[must_use]
    pub fn new(base: RouteTable, modes: Vec<Mode>, health: Health, synced: Signal) -> Self {
        let mut first = InForce { routes: Arc::new(base.clone()), ..InForce::default() };
        first.set_policy(Policy::default(), &modes);
        Self {
            current: Arc::new(ArcSwap::from_pointee(first)),
            health,
            synced,
            base,
            modes,
            flow: None,
            held: Mutex::default(),
            changed: watch::channel(0).0,
            policy: watch::channel(0).0,
        }
    }

    /// The same, which passes schemas and levels to `flow`.
    #[must_use]
    pub fn with_flow(self, flow: Dispatcher) -> Self {
        let mut next = self.next();
        next.flow = Arc::new(flow.digest(&[], &[]));
        self.current.store(Arc::new(next));
        Self { flow: Some(flow), ..self }
    }

    /// Knows callers by these from now on, besides by the issuer's keys.
    pub fn set_authenticators(&self, authenticators: AuthenticatorChain) {
        let _held = self.held.lock();
        let mut next = self.next();
        next.set_authenticators(authenticators);
        self.current.store(Arc::new(next));
    }

    /// A copy of what is in force, to be changed by whoever holds the lock.
    fn next(&self) -> InForce {
        InForce::clone(&self.current.load())
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
        self.current.load().routes.missing_bundles()
    }

    /// Replaces the configuration in force. An equal one costs only the comparison.
    pub fn replace(&self, version: Version, entries: Vec<Entry>) -> Vec<Refusal> {
        let mut held = self.held.lock();
        if held.is_unchanged(&version, &entries) {
            held.version = Some(version);
            return Vec::new();
        }
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
        let policy_revision = facts.iter().map(|f| f.revision).max().unwrap_or(version.revision);
        let mut next = self.next();
        next.set_policy(changed_policy(Policy::default(), facts), &held.modes(&self.modes));
        table.follow(&next.routes);
        next.routes = Arc::new(table);
        next.apis = next.apis.replaced_by(changes);
        follow_settings(&mut next, &held);
        self.follow_flow_control(&mut next, &held);
        self.follow_stored_objects(&held);
        self.current.store(Arc::new(next));
        self.policy.send_replace(policy_revision);
        checks.extend(held.in_use.clone().map(informational));
        self.health.replace_remote(checks);
        held.version = Some(version);
        drop(held);
        self.announce();
        refused
    }

    /// Puts changes in force. An entry that cannot be used leaves the one under its key as it is.
    pub fn change(&self, version: Version, entries: Vec<Entry>) -> Vec<Refusal> {
        let mut held = self.held.lock();
        let mut next = self.next();
        let mut refused = Vec::new();
        let mut changes = Vec::new();
        let mut facts = Vec::new();
        let mut checks = Vec::new();
        let of_the_issuer = entries.iter().any(issuer::concerns);
        let of = |kind| entries.iter().any(|entry| entry.kind == kind);
        let of_flow_control = of(PayloadKind::FlowControl);
        let of_stored_objects = of(PayloadKind::StoredObjects);
        for mut entry in in_order(entries) {
            share(&mut entry, &mut held.backends);
            if in_table(entry.kind)
                && let Err(error) = apply(Arc::make_mut(&mut next.routes), &entry)
            {
                refused.push(refusal(&entry, &error));
                continue;
            }
            if entry.kind == PayloadKind::Check {
                checks.push((entry.key.clone(), check_of(&entry)));
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
        if !changes.is_empty() {
            next.apis = next.apis.after(changes);
        }
        let policy_revision = facts.iter().map(|f| f.revision).max();
        if policy_revision.is_some() {
            next.set_policy(changed_policy(Policy::clone(&next.policy), facts), &held.modes(&self.modes));
        }
        if of_the_issuer {
            follow_settings(&mut next, &held);
            next.set_modes(&held.modes(&self.modes));
        }
        if of_flow_control {
            self.follow_flow_control(&mut next, &held);
        }
        if of_stored_objects {
            self.follow_stored_objects(&held);
        }
        self.current.store(Arc::new(next));
        // What they say is in force by then.
        for (name, check) in checks {
            match check {
                Some(check) => self.health.set_remote(check),
                None => self.health.remove_remote(&name),
            }
        }
        self.policy.send_if_modified(|known| {
            let newest = policy_revision.unwrap_or(*known).max(*known);
            std::mem::replace(known, newest) < newest
        });
        held.version = Some(version);
        drop(held);
        self.announce();
        refused
    }

    /// A CA bundle that came later than the routes that name it.
    pub fn bundle_came(&self, hash: &str, pem: Bytes) {
        let _held = self.held.lock();
        let mut next = self.next();
        if let Err(error) = Arc::make_mut(&mut next.routes).set_bundle(hash, pem) {
            tracing::warn!(hash, %error, "cannot load a CA bundle");
        }
        self.current.store(Arc::new(next));
    }

    /// Documents that entries name have come: what is on disk is out of date.
    pub fn documents_came(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    /// Revisions passed that concern nobody here.
    pub fn progress(&self, version: Version) {
        self.held.lock().version = Some(version);
    }

    /// Says in `/readyz?verbose` that the configuration in force is not current.
    pub fn mark_stale(&self) {
        let mut held = self.held.lock();
        let Some(Version { store_id, revision, .. }) = &held.version else { return };
        let name = format!(
            "fail-static: serving revision {revision} of store {store_id}, the control service is unreachable"
        );
        if let Some(old) = held.stale.replace(name.clone()) {
            self.health.remove_remote(&old);
        }
        self.health.set_remote(informational(name));
    }

    /// Shows in `/readyz?verbose` which control service is in use.
    pub fn show_in_use(&self, described: &str) {
        let mut held = self.held.lock();
        let name = format!("control-service: {described}");
        if let Some(old) = held.in_use.replace(name.clone()) {
            self.health.remove_remote(&old);
        }
        self.health.set_remote(informational(name));
    }

    /// Takes that back.
    pub fn mark_live(&self) {
        if let Some(name) = self.held.lock().stale.take() {
            self.health.remove_remote(&name);
        }
    }

    /// All schemas and levels together: they depend on each other.
    fn follow_flow_control(&self, next: &mut InForce, held: &Held) {
        let Some(flow) = &self.flow else { return };
        let (mut schemas, mut levels) = (Vec::new(), Vec::new());
        for entry in held.entries.values() {
            match &entry.payload {
                Some(Payload::FlowControl(flow_control::Fact::Schema(schema))) => {
                    schemas.push(schema.clone())
                }
                Some(Payload::FlowControl(flow_control::Fact::Level(level))) => levels.push(level.clone()),
                _ => {}
            }
        }
        next.flow = Arc::new(flow.digest(&schemas, &levels));
    }

    /// How many objects are stored: lists are estimated by that.
    fn follow_stored_objects(&self, held: &Held) {
        let Some(flow) = &self.flow else { return };
        let stored = held.entries.iter().filter_map(|((_, key), entry)| match &entry.payload {
            Some(Payload::StoredObjects(stored)) => Some((key.clone(), *stored)),
            _ => None,
        });
        flow.set_stored(stored.collect());
    }

    fn announce(&self) {
        self.changed.send_modify(|n| *n += 1);
        self.synced.signal();
    }
}

/// What all facades share besides routes: the issuer's keys, the CA of signers, the release that is shown, and where clients
/// inside reach the API.
fn follow_settings(next: &mut InForce, held: &Held) {
    next.set_issuer(Issuer::of(held.entries.values(), &next.issuer));
    next.set_signing_ca(held.setting(setting::SIGNING_CA));
    next.set_anonymous(held.setting(setting::ANONYMOUS).map(Anonymous::of_setting));
    next.peers = Arc::new(peers_of(held.setting(setting::PEERS)));
    next.version = held.setting(setting::EFFECTIVE_VERSION).and_then(effective_version);
    let rule = held.setting(setting::SERVICE_ADDRESS).and_then(|text| text.parse().ok());
    next.apis = next.apis.with_address_rule(rule);
}

/// None of those that are not understood.
fn peers_of(text: Option<&str>) -> PeerAddresses {
    let parsed = text.map(str::parse::<PeerAddresses>).transpose();
    parsed
        .inspect_err(|error| {
            tracing::warn!(%error, "cannot parse the addresses of peers, forwarding no requests to peers");
        })
        .ok()
        .flatten()
        .unwrap_or_default()
}

fn effective_version(text: &str) -> Option<EffectiveVersion> {
    let (emulation, min_compatibility) = text.split_once('\n')?;
    Some(EffectiveVersion {
        emulation: emulation.parse().ok()?,
        min_compatibility: min_compatibility.parse().ok()?,
    })
}

fn changed_policy(mut policy: Policy, facts: Vec<Statement>) -> Policy {
    facts.into_iter().for_each(|statement| policy.set(statement.key, statement.fact));
    policy
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
        // What the route table does not show.
        (Some(_), _) => {}
        (None, PayloadKind::Route) => table.remove_route(&entry.key),
        (None, PayloadKind::Served) => table.remove_served(&entry.key),
        (None, PayloadKind::TrustBundle) => table.remove_bundle(&entry.key),
        (None, _) => {}
    }
    Ok(())
}

/// Whether the route table shows entries of this kind.
fn in_table(kind: PayloadKind) -> bool {
    matches!(kind, PayloadKind::Route | PayloadKind::Served | PayloadKind::TrustBundle)
}

/// What a role or binding says, and since when.
struct Statement {
    key: rbac::Key,
    revision: i64,
    fact: Option<Fact>,
}

fn fact_of(entry: &Entry) -> Option<Statement> {
    if entry.kind != PayloadKind::Rbac {
        return None;
    }
    let fact = match &entry.payload {
        Some(Payload::Rbac(fact)) => Some(Fact::clone(fact)),
        _ => None,
    };
    // Keys have been checked where entries are decoded.
    Some(Statement { key: entry.key.parse().ok()?, revision: entry.revision, fact })
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

/// A check that never fails; its name carries the information.
fn informational(name: String) -> RemoteCheck {
    RemoteCheck { name, endpoints: vec![Endpoint::Readyz], failure: None, warning: None }
}

fn check_of(entry: &Entry) -> Option<RemoteCheck> {
    let Some(Payload::Check(Check { endpoints, ok, message })) = &entry.payload else { return None };
    let named = |e: &Endpoint| endpoints.iter().any(|name| name == e.name());
    Some(RemoteCheck {
        name: entry.key.clone(),
        endpoints: Endpoint::ALL.into_iter().filter(named).collect(),
        failure: (!ok).then(|| message.clone()),
        warning: (*ok && !message.is_empty()).then(|| message.clone()),
    })
}

fn refusal(entry: &Entry, error: &MuxError) -> Refusal {
    Refusal { key: format!("{:?}/{}", entry.kind, entry.key), reason: error.to_string() }
}

#[cfg(test)]
mod tests;
