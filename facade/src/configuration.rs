//! Builds the active configuration from entries of the control service: routes, served APIs, policy, issuer; and health checks.
//!
//! There is one writer at a time; readers see the state before or after a change. Does not depend on the source of entries
//! (the stream or the disk).

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

/// An entry that was not applied, and the reason, as reported to the control service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `kind/key`
    pub key: String,
    /// Human-readable reason.
    pub reason: String,
}

/// Holder of the active configuration and of the entries that it is built from.
pub struct Configuration {
    /// Active configuration, which requests are served with.
    pub current: Current,
    /// Receives the checks of the control service.
    pub health: Health,
    /// Signaled when the first configuration is active.
    pub synced: Signal,
    base: RouteTable,
    /// `--authorization-mode`, used until the control service sends its modes.
    modes: Vec<Mode>,
    /// Receives flow schemas and priority levels, if requests queue.
    flow: Option<Dispatcher>,
    held: Mutex<Held>,
    changed: watch::Sender<u64>,
    /// Revision up to which roles and bindings are active.
    policy: watch::Sender<i64>,
}

type Key = (PayloadKind, String);

#[derive(Default)]
struct Held {
    version: Option<Version>,
    entries: BTreeMap<Key, Arc<Entry>>,
    /// Backends, shared between routes that have the same one.
    backends: Pool<Backend>,
    /// Name of the check that reports in `/readyz?verbose` that the configuration is stale.
    stale: Option<String>,
    /// Name of the check that reports the control service in use.
    in_use: Option<String>,
}

impl Held {
    /// True if these entries equal the active ones and their revision is not older, within the same epoch of the store.
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

    /// Returns the text of a setting.
    fn setting(&self, name: &str) -> Option<&str> {
        match &self.entries.get(&(PayloadKind::Setting, name.to_owned()))?.payload {
            Some(Payload::Setting(text)) => Some(text),
            _ => None,
        }
    }

    /// Authorization modes that the control service reports, or `own` if it reports none. An unknown mode is treated as
    /// `Webhook`, so that the control service decides.
    fn modes(&self, own: &[Mode]) -> Vec<Mode> {
        let modes = self.setting(setting::AUTHORIZATION_MODES);
        let mode = |name| Mode::of_name(name).unwrap_or(Mode::Webhook);
        modes.map_or_else(|| own.to_vec(), |modes| modes.lines().map(mode).collect())
    }
}

impl Configuration {
    /// Creates a configuration with the built-in endpoints of `base_routes` and without authenticators.
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

    /// Passes schemas and levels to `flow`.
    #[must_use]
    pub fn with_flow(self, flow: Dispatcher) -> Self {
        let mut next = self.next();
        next.flow = Arc::new(flow.digest(&[], &[]));
        self.current.store(Arc::new(next));
        Self { flow: Some(flow), ..self }
    }

    /// Replaces the authenticators; the issuer's keys stay in use.
    pub fn set_authenticators(&self, authenticators: AuthenticatorChain) {
        let _held = self.held.lock();
        let mut next = self.next();
        next.set_authenticators(authenticators);
        self.current.store(Arc::new(next));
    }

    /// Returns a copy of the active configuration, to change under the lock.
    fn next(&self) -> InForce {
        InForce::clone(&self.current.load())
    }

    /// Version of the active configuration.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.held.lock().version.clone()
    }

    /// Version and entries of the active configuration, for the disk.
    #[must_use]
    pub fn snapshot(&self) -> Option<(Version, Vec<Arc<Entry>>)> {
        let held = self.held.lock();
        Some((held.version.clone()?, held.entries.values().cloned().collect()))
    }

    /// Subscribes to a counter that increases with every change of entries (not of the version alone).
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Waits until roles and bindings of this revision are active. Cancel safe.
    pub async fn policy_at(&self, revision: i64) {
        // The sender lives as long as `self`.
        let _ = self.policy.subscribe().wait_for(|known| *known >= revision).await;
    }

    /// Hashes of CA bundles that routes name and that are not loaded.
    #[must_use]
    pub fn missing_bundles(&self) -> Vec<String> {
        self.current.load().routes.missing_bundles()
    }

    /// Replaces the active configuration. An equal one costs only the comparison.
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
                // Snapshots do not contain removed or refused entries.
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
        // The snapshot's own revision, which can be lower than that of another epoch.
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

    /// Applies changes. An invalid entry is refused; the previous entry under its key stays active.
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
        // The routes and policy that the checks report are active now.
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

    /// Adds a CA bundle that arrived later than the routes that name it.
    pub fn bundle_came(&self, hash: &str, pem: Bytes) {
        let _held = self.held.lock();
        let mut next = self.next();
        if let Err(error) = Arc::make_mut(&mut next.routes).set_bundle(hash, pem) {
            tracing::warn!(hash, %error, "cannot load a CA bundle");
        }
        self.current.store(Arc::new(next));
    }

    /// Notifies subscribers that documents were fetched, so that the saved state is written again.
    pub fn documents_came(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    /// Advances the version without a change of entries.
    pub fn progress(&self, version: Version) {
        self.held.lock().version = Some(version);
    }

    /// Reports in `/readyz?verbose` that the active configuration is stale.
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

    /// Reports the control service in use in `/readyz?verbose`.
    pub fn show_in_use(&self, described: &str) {
        let mut held = self.held.lock();
        let name = format!("control-service: {described}");
        if let Some(old) = held.in_use.replace(name.clone()) {
            self.health.remove_remote(&old);
        }
        self.health.set_remote(informational(name));
    }

    /// Removes the report of [`Self::mark_stale`].
    pub fn mark_live(&self) {
        if let Some(name) = self.held.lock().stale.take() {
            self.health.remove_remote(&name);
        }
    }

    /// Digests all schemas and levels together, because they depend on each other.
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

    /// Passes the numbers of stored objects to the dispatcher, which estimates the cost of lists by them.
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

/// Applies settings that all facades share: the issuer's keys, the CA of certificate requests, the release to report, and the
/// addresses of peers.
fn follow_settings(next: &mut InForce, held: &Held) {
    next.set_issuer(Issuer::of(held.entries.values(), &next.issuer));
    next.set_signing_ca(held.setting(setting::SIGNING_CA));
    next.set_anonymous(held.setting(setting::ANONYMOUS).map(Anonymous::of_setting));
    next.peers = Arc::new(peers_of(held.setting(setting::PEERS)));
    next.version = held.setting(setting::EFFECTIVE_VERSION).and_then(effective_version);
    let rule = held.setting(setting::SERVICE_ADDRESS).and_then(|text| text.parse().ok());
    next.apis = next.apis.with_address_rule(rule);
}

/// Parses the addresses of peers; invalid ones are ignored.
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

/// Sorts CA bundles first, so that routes find them; other entries keep their order.
fn in_order(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by_key(|e| e.kind != PayloadKind::TrustBundle);
    entries
}

/// Replaces the backend of a route by an equal one of another route.
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
        // Not part of the route table.
        (Some(_), _) => {}
        (None, PayloadKind::Route) => table.remove_route(&entry.key),
        (None, PayloadKind::Served) => table.remove_served(&entry.key),
        (None, PayloadKind::TrustBundle) => table.remove_bundle(&entry.key),
        (None, _) => {}
    }
    Ok(())
}

/// True if entries of this kind are part of the route table.
fn in_table(kind: PayloadKind) -> bool {
    matches!(kind, PayloadKind::Route | PayloadKind::Served | PayloadKind::TrustBundle)
}

/// Content of a role or binding, and its revision.
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
    // Decoding has validated the keys.
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

/// Creates a check that never fails; its name carries the information.
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
