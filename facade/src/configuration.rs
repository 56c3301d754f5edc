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
use portico_auth::authn::AnonymousAccess;
use portico_auth::authz::AuthorizationMode;
use portico_facade_catalog::Change;
use portico_flow::Dispatcher;
use portico_kit::health::{Health, HealthEndpoint, RemoteCheck};
use portico_kit::lifecycle::Signal;
use portico_machinery::effective_version::EffectiveVersion;
use portico_machinery::flow_control;
use portico_machinery::peer_addresses::PeerAddresses;
use portico_machinery::pool::Pool;
use portico_machinery::rbac::{self, Fact, Policy};
use portico_machinery::route::Backend;
use portico_proto::convert::{Check, Entry, Payload, PayloadKind, Version, setting};
use tokio::sync::watch;

use crate::active_config::{ActiveConfig, ActiveConfigCell};
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
    pub active: ActiveConfigCell,
    /// Receives the checks of the control service.
    pub health: Health,
    /// Signaled when the first configuration is active.
    pub synced: Signal,
    base_routes: RouteTable,
    /// `--authorization-mode`, used until the control service sends its modes.
    modes: Vec<AuthorizationMode>,
    /// Receives flow schemas and priority levels, if requests queue.
    flow: Option<Dispatcher>,
    state: Mutex<ConfigState>,
    changed: watch::Sender<u64>,
    /// Revision up to which roles and bindings are active.
    policy_revision: watch::Sender<i64>,
}

type Key = (PayloadKind, String);

#[derive(Default)]
struct ConfigState {
    version: Option<Version>,
    entries: BTreeMap<Key, Arc<Entry>>,
    /// Backends, shared between routes that have the same one.
    backends: Pool<Backend>,
    /// Name of the check that reports in `/readyz?verbose` that the configuration is stale.
    stale: Option<String>,
    /// Name of the check that reports the control service in use.
    in_use: Option<String>,
}

impl ConfigState {
    /// True if these entries equal the active ones and their revision is not older, within the same epoch of the store.
    fn is_unchanged(&self, version: &Version, entries: &[Entry]) -> bool {
        let is_same_epoch = self.version.as_ref().is_some_and(|active| {
            (&active.store_id, &active.epoch) == (&version.store_id, &version.epoch)
                && active.revision <= version.revision
        });
        let key = |entry: &Entry| (entry.kind, entry.key.clone());
        let is_active =
            |entry: &Entry| self.entries.get(&key(entry)).is_some_and(|active| **active == *entry);
        is_same_epoch
            && entries.iter().all(is_active)
            && entries.iter().map(key).collect::<BTreeSet<_>>().len() == self.entries.len()
    }

    /// Returns the text of a setting.
    fn setting(&self, name: &str) -> Option<&str> {
        match &self.entries.get(&(PayloadKind::Setting, name.to_owned()))?.payload {
            Some(Payload::Setting(text)) => Some(text),
            _ => None,
        }
    }

    /// Authorization modes that the control service reports, or `default_modes` if it reports none. An unknown mode is treated as
    /// `Webhook`, so that the control service decides.
    fn modes(&self, default_modes: &[AuthorizationMode]) -> Vec<AuthorizationMode> {
        let modes = self.setting(setting::AUTHORIZATION_MODES);
        let mode = |name| AuthorizationMode::from_name(name).unwrap_or(AuthorizationMode::Webhook);
        modes.map_or_else(|| default_modes.to_vec(), |modes| modes.lines().map(mode).collect())
    }
}

impl Configuration {
    /// Creates a configuration with the built-in endpoints of `base_routes` and without authenticators.
    #[must_use]
    pub fn new(
        base_routes: RouteTable,
        modes: Vec<AuthorizationMode>,
        health: Health,
        synced: Signal,
    ) -> Self {
        let mut first = ActiveConfig { routes: Arc::new(base_routes.clone()), ..ActiveConfig::default() };
        first.set_policy(Policy::default(), &modes);
        Self {
            active: Arc::new(ArcSwap::from_pointee(first)),
            health,
            synced,
            base_routes,
            modes,
            flow: None,
            state: Mutex::default(),
            changed: watch::channel(0).0,
            policy_revision: watch::channel(0).0,
        }
    }

    /// Passes schemas and levels to `flow`.
    #[must_use]
    pub fn with_flow(self, flow: Dispatcher) -> Self {
        let mut next = self.copy_active();
        next.flow = Arc::new(flow.apply_config(&[], &[]));
        self.active.store(Arc::new(next));
        Self { flow: Some(flow), ..self }
    }

    /// Replaces the authenticators; the issuer's keys stay in use.
    pub fn set_authenticators(&self, authenticators: AuthenticatorChain) {
        let _state = self.state.lock();
        let mut next = self.copy_active();
        next.set_authenticators(authenticators);
        self.active.store(Arc::new(next));
    }

    /// Returns a copy of the active configuration, to change under the lock.
    fn copy_active(&self) -> ActiveConfig {
        ActiveConfig::clone(&self.active.load())
    }

    /// Version of the active configuration.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.state.lock().version.clone()
    }

    /// Version and entries of the active configuration, for the disk.
    #[must_use]
    pub fn snapshot(&self) -> Option<(Version, Vec<Arc<Entry>>)> {
        let state = self.state.lock();
        Some((state.version.clone()?, state.entries.values().cloned().collect()))
    }

    /// Subscribes to a counter that increases with every change of entries (not of the version alone).
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Waits until roles and bindings of this revision are active. Cancel safe.
    pub async fn wait_for_policy(&self, revision: i64) {
        // The sender lives as long as `self`.
        let _ = self.policy_revision.subscribe().wait_for(|current| *current >= revision).await;
    }

    /// Hashes of CA bundles that routes name and that are not loaded.
    #[must_use]
    pub fn missing_bundles(&self) -> Vec<String> {
        self.active.load().routes.missing_bundles()
    }

    /// Replaces the active configuration. An equal one costs only the comparison.
    pub fn replace(&self, version: Version, entries: Vec<Entry>) -> Vec<Refusal> {
        let mut state = self.state.lock();
        if state.is_unchanged(&version, &entries) {
            state.version = Some(version);
            return Vec::new();
        }
        state.entries.clear();
        let mut table = self.base_routes.clone();
        let mut refused = Vec::new();
        let mut checks = Vec::new();
        let mut changes = Vec::new();
        let mut facts = Vec::new();
        for mut entry in bundles_first(entries) {
            if entry.payload.is_none() {
                // Snapshots do not contain removed or refused entries.
                continue;
            }
            share_backend(&mut entry, &mut state.backends);
            match apply_to_table(&mut table, &entry) {
                Ok(()) => {}
                Err(error) => {
                    refused.push(refusal(&entry, &error));
                    continue;
                }
            }
            checks.extend(remote_check(&entry));
            changes.extend(catalog_change(&entry));
            facts.extend(policy_fact(&entry));
            state.entries.insert((entry.kind, entry.key.clone()), Arc::new(entry));
        }
        // The snapshot's own revision, which can be lower than that of another epoch.
        let policy_revision = facts.iter().map(|f| f.revision).max().unwrap_or(version.revision);
        let mut next = self.copy_active();
        next.set_policy(apply_facts(Policy::default(), facts), &state.modes(&self.modes));
        table.inherit_state(&next.routes);
        next.routes = Arc::new(table);
        next.apis = next.apis.replace_with(changes);
        apply_settings(&mut next, &state);
        self.update_flow_control(&mut next, &state);
        self.update_stored_objects(&state);
        self.active.store(Arc::new(next));
        self.policy_revision.send_replace(policy_revision);
        checks.extend(state.in_use.clone().map(informational_check));
        self.health.replace_remote(checks);
        state.version = Some(version);
        drop(state);
        self.notify_changed();
        refused
    }

    /// Applies changes. An invalid entry is refused; the previous entry under its key stays active.
    pub fn change(&self, version: Version, entries: Vec<Entry>) -> Vec<Refusal> {
        let mut state = self.state.lock();
        let mut next = self.copy_active();
        let mut refused = Vec::new();
        let mut changes = Vec::new();
        let mut facts = Vec::new();
        let mut checks = Vec::new();
        let affects_issuer = entries.iter().any(issuer::affects_issuer);
        let has_kind = |kind| entries.iter().any(|entry| entry.kind == kind);
        let affects_flow_control = has_kind(PayloadKind::FlowControl);
        let affects_stored_objects = has_kind(PayloadKind::StoredObjects);
        for mut entry in bundles_first(entries) {
            share_backend(&mut entry, &mut state.backends);
            if is_table_kind(entry.kind)
                && let Err(error) = apply_to_table(Arc::make_mut(&mut next.routes), &entry)
            {
                refused.push(refusal(&entry, &error));
                continue;
            }
            if entry.kind == PayloadKind::Check {
                checks.push((entry.key.clone(), remote_check(&entry)));
            }
            changes.extend(catalog_change(&entry));
            facts.extend(policy_fact(&entry));
            let key = (entry.kind, entry.key.clone());
            if entry.payload.is_some() {
                state.entries.insert(key, Arc::new(entry));
            } else {
                state.entries.remove(&key);
            }
        }
        if !changes.is_empty() {
            next.apis = next.apis.with_changes(changes);
        }
        let policy_revision = facts.iter().map(|f| f.revision).max();
        if policy_revision.is_some() {
            next.set_policy(apply_facts(Policy::clone(&next.policy), facts), &state.modes(&self.modes));
        }
        if affects_issuer {
            apply_settings(&mut next, &state);
            next.set_modes(&state.modes(&self.modes));
        }
        if affects_flow_control {
            self.update_flow_control(&mut next, &state);
        }
        if affects_stored_objects {
            self.update_stored_objects(&state);
        }
        self.active.store(Arc::new(next));
        // The routes and policy that the checks report are active now.
        for (name, check) in checks {
            match check {
                Some(check) => self.health.set_remote(check),
                None => self.health.remove_remote(&name),
            }
        }
        self.policy_revision.send_if_modified(|current| {
            let newest = policy_revision.unwrap_or(*current).max(*current);
            std::mem::replace(current, newest) < newest
        });
        state.version = Some(version);
        drop(state);
        self.notify_changed();
        refused
    }

    /// Adds a CA bundle that arrived later than the routes that name it.
    pub fn insert_bundle(&self, hash: &str, pem: Bytes) {
        let _state = self.state.lock();
        let mut next = self.copy_active();
        if let Err(error) = Arc::make_mut(&mut next.routes).set_bundle(hash, pem) {
            tracing::warn!(hash, %error, "cannot load a CA bundle");
        }
        self.active.store(Arc::new(next));
    }

    /// Notifies subscribers that documents were fetched, so that the saved state is written again.
    pub fn on_documents_fetched(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    /// Advances the version without a change of entries.
    pub fn advance(&self, version: Version) {
        self.state.lock().version = Some(version);
    }

    /// Reports in `/readyz?verbose` that the active configuration is stale.
    pub fn mark_stale(&self) {
        let mut state = self.state.lock();
        let Some(Version { store_id, revision, .. }) = &state.version else { return };
        let name = format!(
            "fail-static: serving revision {revision} of store {store_id}, the control service is unreachable"
        );
        if let Some(old) = state.stale.replace(name.clone()) {
            self.health.remove_remote(&old);
        }
        self.health.set_remote(informational_check(name));
    }

    /// Reports the control service in use in `/readyz?verbose`.
    pub fn report_in_use(&self, description: &str) {
        let mut state = self.state.lock();
        let name = format!("control-service: {description}");
        if let Some(old) = state.in_use.replace(name.clone()) {
            self.health.remove_remote(&old);
        }
        self.health.set_remote(informational_check(name));
    }

    /// Removes the report of [`Self::mark_stale`].
    pub fn mark_live(&self) {
        if let Some(name) = self.state.lock().stale.take() {
            self.health.remove_remote(&name);
        }
    }

    /// Passes all schemas and levels to the dispatcher together, because they depend on each other.
    fn update_flow_control(&self, next: &mut ActiveConfig, state: &ConfigState) {
        let Some(flow) = &self.flow else { return };
        let (mut schemas, mut levels) = (Vec::new(), Vec::new());
        for entry in state.entries.values() {
            match &entry.payload {
                Some(Payload::FlowControl(flow_control::Fact::Schema(schema))) => {
                    schemas.push(schema.clone())
                }
                Some(Payload::FlowControl(flow_control::Fact::Level(level))) => levels.push(level.clone()),
                _ => {}
            }
        }
        next.flow = Arc::new(flow.apply_config(&schemas, &levels));
    }

    /// Passes the numbers of stored objects to the dispatcher, which estimates the cost of lists by them.
    fn update_stored_objects(&self, state: &ConfigState) {
        let Some(flow) = &self.flow else { return };
        let stored = state.entries.iter().filter_map(|((_, key), entry)| match &entry.payload {
            Some(Payload::StoredObjects(stored)) => Some((key.clone(), *stored)),
            _ => None,
        });
        flow.set_stored(stored.collect());
    }

    fn notify_changed(&self) {
        self.changed.send_modify(|n| *n += 1);
        self.synced.signal();
    }
}

/// Applies settings that all facades share: the issuer's keys, the CA of certificate requests, the release to report, and the
/// addresses of peers.
fn apply_settings(next: &mut ActiveConfig, state: &ConfigState) {
    next.set_issuer(Issuer::from_entries(state.entries.values(), &next.issuer));
    next.set_signing_ca(state.setting(setting::SIGNING_CA));
    next.set_anonymous(state.setting(setting::ANONYMOUS).map(AnonymousAccess::from_setting));
    next.peers = Arc::new(parse_peers(state.setting(setting::PEERS)));
    next.version = state.setting(setting::EFFECTIVE_VERSION).and_then(parse_effective_version);
    let rule = state.setting(setting::SERVICE_ADDRESS).and_then(|text| text.parse().ok());
    next.apis = next.apis.with_address_rule(rule);
}

/// Parses the addresses of peers; invalid ones are ignored.
fn parse_peers(text: Option<&str>) -> PeerAddresses {
    let parsed = text.map(str::parse::<PeerAddresses>).transpose();
    parsed
        .inspect_err(|error| {
            tracing::warn!(%error, "cannot parse the addresses of peers, forwarding no requests to peers");
        })
        .ok()
        .flatten()
        .unwrap_or_default()
}

fn parse_effective_version(text: &str) -> Option<EffectiveVersion> {
    let (emulation, min_compatibility) = text.split_once('\n')?;
    Some(EffectiveVersion {
        emulation: emulation.parse().ok()?,
        min_compatibility: min_compatibility.parse().ok()?,
    })
}

fn apply_facts(mut policy: Policy, facts: Vec<PolicyFact>) -> Policy {
    facts.into_iter().for_each(|policy_fact| policy.set(policy_fact.key, policy_fact.fact));
    policy
}

/// Sorts CA bundles first, so that routes find them; other entries keep their order.
fn bundles_first(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by_key(|e| e.kind != PayloadKind::TrustBundle);
    entries
}

/// Replaces the backend of a route by an equal one of another route.
fn share_backend(entry: &mut Entry, backends: &mut Pool<Backend>) {
    if let Some(Payload::Route(route)) = &mut entry.payload
        && let Some(route) = Arc::get_mut(route)
    {
        route.share_backend(backends);
    }
}

fn apply_to_table(table: &mut RouteTable, entry: &Entry) -> Result<(), MuxError> {
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
fn is_table_kind(kind: PayloadKind) -> bool {
    matches!(kind, PayloadKind::Route | PayloadKind::Served | PayloadKind::TrustBundle)
}

/// Content of a role or binding, and its revision.
struct PolicyFact {
    key: rbac::Key,
    revision: i64,
    fact: Option<Fact>,
}

fn policy_fact(entry: &Entry) -> Option<PolicyFact> {
    if entry.kind != PayloadKind::Rbac {
        return None;
    }
    let fact = match &entry.payload {
        Some(Payload::Rbac(fact)) => Some(Fact::clone(fact)),
        _ => None,
    };
    // Decoding has validated the keys.
    Some(PolicyFact { key: entry.key.parse().ok()?, revision: entry.revision, fact })
}

fn catalog_change(entry: &Entry) -> Option<Change> {
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
fn informational_check(name: String) -> RemoteCheck {
    RemoteCheck { name, endpoints: vec![HealthEndpoint::Readyz], failure: None, warning: None }
}

fn remote_check(entry: &Entry) -> Option<RemoteCheck> {
    let Some(Payload::Check(Check { endpoints, ok, message })) = &entry.payload else { return None };
    let applies_to = |e: &HealthEndpoint| endpoints.iter().any(|name| name == e.name());
    Some(RemoteCheck {
        name: entry.key.clone(),
        endpoints: HealthEndpoint::ALL.into_iter().filter(applies_to).collect(),
        failure: (!ok).then(|| message.clone()),
        warning: (*ok && !message.is_empty()).then(|| message.clone()),
    })
}

fn refusal(entry: &Entry, error: &MuxError) -> Refusal {
    Refusal { key: format!("{:?}/{}", entry.kind, entry.key), reason: error.to_string() }
}

#[cfg(test)]
mod tests;
