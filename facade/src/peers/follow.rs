//! Tracks the APIs of peers: fetches the discovery of each peer once per start of the peer, retries after failures, and compares
//! it with the APIs served here whenever either changes.

use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt};
use portico_facade_catalog::{Catalog, DocumentError, PeerGroups, ServedApis, ServedBy};
use portico_kit::backoff::{Backoff, BackoffPolicy};
use portico_machinery::GroupVersion;
use portico_machinery::discovery::{GroupDiscovery, VersionDiscovery};
use portico_machinery::peer_addresses::{PeerAddress, PeerAddresses};
use portico_machinery::resolve::{Bundle, CaBundle};
use portico_proxy::{Proxy, RouteEntry};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::excluded_versions::ExcludedVersions;
use super::fetch::{self, FetchError};
use super::{PeerRoutes, Peers, key};
use crate::active_config::ActiveConfig;
use crate::configuration::Configuration;

/// Task that tracks the APIs of peers.
pub struct PeerFollower {
    /// Peers to update.
    pub peers: Arc<Peers>,
    /// APIs served here. Receives the APIs of peers for its documents.
    pub catalog: Arc<Catalog>,
    /// Source of the addresses of peers.
    pub configuration: Arc<Configuration>,
    /// Proxy for requests to peers.
    pub proxy: Proxy,
    /// CAs that sign the certificates of peers.
    pub authority: watch::Receiver<CaBundle>,
}

/// State of one peer.
struct Peer {
    address: PeerAddress,
    /// Hash of the CA bundle that verifies the peer.
    ca_hash: Arc<str>,
    upstream: Arc<RouteEntry>,
    /// All groups, including core; `None` before the first response.
    groups: Option<Vec<GroupDiscovery>>,
    /// Time of the next fetch; `None` during a fetch, and after a successful one.
    next_fetch: Option<Instant>,
    backoff: Backoff,
}

/// State of the follower.
struct FollowerState {
    peers: BTreeMap<String, Peer>,
    excluded: ExcludedVersions,
    /// Backoff between comparisons with the APIs served here.
    backoff: Backoff,
    /// APIs of peers that were last published.
    published: PeerGroups,
    /// Inputs of the last comparison; `None` if a peer has responded since, or the comparison failed.
    compared: Option<ComparisonInputs>,
}

/// Inputs of a comparison, except the APIs of peers.
struct ComparisonInputs {
    apis: Arc<ServedApis>,
    peers: Arc<PeerAddresses>,
    ca_hash: Arc<str>,
}

impl ComparisonInputs {
    /// True if a comparison with these inputs would have the same result.
    fn is_current(&self, current: &ActiveConfig, authority: &Bundle) -> bool {
        Arc::ptr_eq(&self.apis, &current.apis)
            && Arc::ptr_eq(&self.peers, &current.peers)
            && self.ca_hash == authority.hash
    }
}

impl PeerFollower {
    /// Runs until canceled. A peer that does not respond delays no other.
    pub async fn run(mut self) {
        let mut changed = self.configuration.subscribe();
        let mut state = FollowerState {
            peers: BTreeMap::new(),
            excluded: ExcludedVersions::default(),
            backoff: Backoff::new(BackoffPolicy::RECONNECT),
            published: PeerGroups::default(),
            compared: None,
        };
        let mut fetches = FuturesUnordered::new();
        loop {
            changed.mark_unchanged();
            let next_comparison = self.update(&mut state).await;
            fetches.extend(state.take_due().map(|peer| fetch_discovery(self.proxy.clone(), peer)));
            let timer = async {
                match next_comparison.into_iter().chain(state.next_fetch()).min() {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                // Both senders outlive this task.
                _ = changed.changed() => {}
                _ = self.authority.changed() => {}
                () = timer => {}
                Some((peer, answer)) = fetches.next() => self.on_fetched(&mut state, &peer, answer),
            }
        }
    }

    /// Updates the peers and compares. Returns the time of the next comparison, if one is needed without a change.
    async fn update(&mut self, state: &mut FollowerState) -> Option<Instant> {
        let current = self.configuration.active.load_full();
        let authority = self.authority.borrow_and_update().clone();
        let exclusion_ended = state.excluded.next_end().is_some_and(|end| end <= Instant::now());
        if !exclusion_ended
            && state.compared.as_ref().is_some_and(|compared| compared.is_current(&current, &authority))
        {
            return state.excluded.next_end();
        }
        state.update_peers(&current.peers, &authority);
        state.compared = None;
        let compared = match self.compare_and_publish(&current.peers.own_name, state).await {
            Ok(()) => {
                state.backoff.reset();
                let (apis, peers) = (Arc::clone(&current.apis), Arc::clone(&current.peers));
                state.compared = Some(ComparisonInputs { apis, peers, ca_hash: authority.hash.clone() });
                None
            }
            Err(error) => {
                tracing::debug!(%error, "cannot compare discovery with peers, retrying");
                Some(Instant::now() + state.backoff.next_wait())
            }
        };
        compared.into_iter().chain(state.excluded.next_end()).min()
    }

    /// Stores the response of a peer. Ignored if the peer was removed, moved or restarted during the fetch.
    fn on_fetched(&self, state: &mut FollowerState, upstream: &Arc<RouteEntry>, answer: PeerDiscovery) {
        let Some(peer) = state.peers.values_mut().find(|peer| Arc::ptr_eq(&peer.upstream, upstream)) else {
            return;
        };
        match answer {
            Ok(groups) => {
                peer.groups = Some(groups);
                state.compared = None;
            }
            Err(error) => {
                self.peers.metrics.record_failed_fetch();
                peer.next_fetch = Some(Instant::now() + peer.backoff.next_wait());
                let PeerAddress { name, address, .. } = &peer.address;
                tracing::warn!(peer = name, %address, %error, "cannot fetch discovery from a peer, retrying");
            }
        }
    }

    /// Compares with the APIs served here, and publishes the result to request forwarding and to discovery.
    async fn compare_and_publish(
        &self,
        own_name: &str,
        state: &mut FollowerState,
    ) -> Result<(), DocumentError> {
        let mut peer_routes = PeerRoutes::new();
        let mut peer_groups = PeerGroups { own_name: own_name.to_owned(), others: BTreeMap::new() };
        let mut local_apis =
            LocalApis { follower: self, excluded: &mut state.excluded, cache: HashMap::new() };
        for (name, peer) in &state.peers {
            let mut groups = Vec::new();
            for group in peer.groups.iter().flatten() {
                let mut versions = Vec::new();
                for version in &group.versions {
                    let gv = GroupVersion::new(&group.metadata.name, &version.version);
                    let Some(own_resources) = local_apis.builtin_resources(&gv).await? else { continue };
                    add_peer_resources(&mut peer_routes, &gv, version, own_resources, &peer.upstream);
                    versions.push(version.clone());
                }
                // The document does not contain core.
                if !versions.is_empty() && !group.metadata.name.is_empty() {
                    groups.push(GroupDiscovery { metadata: group.metadata.clone(), versions });
                }
            }
            peer_groups.others.insert(name.clone(), groups);
        }
        peer_groups.others.retain(|_, groups| !groups.is_empty());
        self.peers.set_routes(peer_routes);
        if state.published != peer_groups {
            state.published = peer_groups.clone();
            self.catalog.set_peers(peer_groups);
        }
        Ok(())
    }
}

/// Discovery of a peer.
type PeerDiscovery = Result<Vec<GroupDiscovery>, FetchError>;

async fn fetch_discovery(proxy: Proxy, peer: Arc<RouteEntry>) -> (Arc<RouteEntry>, PeerDiscovery) {
    let answer = fetch::fetch_groups(&proxy, &peer).await;
    (peer, answer)
}

impl FollowerState {
    /// Returns the peers whose discovery is to be fetched now, and marks it as being fetched.
    fn take_due(&mut self) -> impl Iterator<Item = Arc<RouteEntry>> {
        let now = Instant::now();
        self.peers.values_mut().filter_map(move |peer| {
            peer.next_fetch.take_if(|time| *time <= now)?;
            Some(Arc::clone(&peer.upstream))
        })
    }

    /// Time of the next fetch.
    fn next_fetch(&self) -> Option<Instant> {
        self.peers.values().filter_map(|peer| peer.next_fetch).min()
    }

    /// Keeps peers that were neither restarted nor moved, removes others, and adds new ones.
    fn update_peers(&mut self, addresses: &PeerAddresses, authority: &Bundle) {
        let mut peers = BTreeMap::new();
        for address in &addresses.peers {
            let existing = self.peers.remove(&address.name);
            let existing = existing.filter(|peer| peer.address == *address && peer.ca_hash == authority.hash);
            let peer = existing.unwrap_or_else(|| Peer {
                address: address.clone(),
                ca_hash: authority.hash.clone(),
                upstream: fetch::upstream(address, authority),
                groups: None,
                next_fetch: Some(Instant::now()),
                backoff: Backoff::new(BackoffPolicy::RECONNECT),
            });
            peers.insert(address.name.clone(), peer);
        }
        self.peers = peers;
    }
}

/// APIs served here, looked up once per group version.
struct LocalApis<'a> {
    follower: &'a PeerFollower,
    excluded: &'a mut ExcludedVersions,
    cache: HashMap<GroupVersion, Option<Vec<String>>>,
}

impl LocalApis<'_> {
    /// Built-in resources of a group version; `None` if the group version is never forwarded.
    async fn builtin_resources(&mut self, gv: &GroupVersion) -> Result<Option<&[String]>, DocumentError> {
        if !self.cache.contains_key(gv) {
            let apis = Arc::clone(&self.follower.configuration.active.load().apis);
            let served = self.follower.catalog.served_by(&apis, gv).await?;
            let is_shared = served == ServedBy::Objects;
            let own_resources = match served {
                _ if self.excluded.update(gv, is_shared, Instant::now()) => None,
                ServedBy::Builtin(resources) => Some(resources),
                ServedBy::NotServed | ServedBy::Objects => Some(Vec::new()),
            };
            self.cache.insert(gv.clone(), own_resources);
        }
        Ok(self.cache[gv].as_deref())
    }
}

/// Adds the resources of a group version that the peer serves and this server does not.
fn add_peer_resources(
    peer_routes: &mut PeerRoutes,
    gv: &GroupVersion,
    version: &VersionDiscovery,
    own_resources: &[String],
    peer: &Arc<RouteEntry>,
) {
    for resource in version.resources.iter().filter(|resource| !own_resources.contains(&resource.resource)) {
        peer_routes
            .entry(key(&gv.group, &gv.version, &resource.resource))
            .or_default()
            .push(Arc::clone(peer));
    }
}
