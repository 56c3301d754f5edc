//! Tracks the APIs of peers: fetches the discovery of each peer once per start of the peer, retries after failures, and compares
//! it with the APIs served here whenever either changes.

use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt};
use portico_facade_catalog::{Catalog, DocumentError, PeerGroups, ServedApis, ServedBy};
use portico_kit::backoff::{Backoff, Policy};
use portico_machinery::GroupVersion;
use portico_machinery::discovery::{GroupDiscovery, VersionDiscovery};
use portico_machinery::peer_addresses::{PeerAddress, PeerAddresses};
use portico_machinery::resolve::{Bundle, CaBundle};
use portico_proxy::{Proxy, Upstream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::excluded::Excluded;
use super::fetch::{self, FetchError};
use super::{Peers, Serving, key};
use crate::configuration::Configuration;
use crate::in_force::InForce;

/// Task that tracks the APIs of peers.
pub struct Follow {
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
    authority: Arc<str>,
    upstream: Arc<Upstream>,
    /// All groups, including core; `None` before the first response.
    groups: Option<Vec<GroupDiscovery>>,
    /// Time of the next fetch; `None` during a fetch, and after a successful one.
    due: Option<Instant>,
    backoff: Backoff,
}

/// State of the follower.
struct Known {
    peers: BTreeMap<String, Peer>,
    excluded: Excluded,
    /// Backoff between comparisons with the APIs served here.
    backoff: Backoff,
    /// APIs of peers that were last published.
    shown: PeerGroups,
    /// Inputs of the last comparison; `None` if a peer has responded since, or the comparison failed.
    compared: Option<Compared>,
}

/// Inputs of a comparison, except the APIs of peers.
struct Compared {
    apis: Arc<ServedApis>,
    peers: Arc<PeerAddresses>,
    authority: Arc<str>,
}

impl Compared {
    /// True if a comparison with these inputs would have the same result.
    fn is_current(&self, current: &InForce, authority: &Bundle) -> bool {
        Arc::ptr_eq(&self.apis, &current.apis)
            && Arc::ptr_eq(&self.peers, &current.peers)
            && self.authority == authority.hash
    }
}

impl Follow {
    /// Runs until canceled. A peer that does not respond delays no other.
    pub async fn run(mut self) {
        let mut changed = self.configuration.subscribe();
        let mut known = Known {
            peers: BTreeMap::new(),
            excluded: Excluded::default(),
            backoff: Backoff::new(Policy::RECONNECT),
            shown: PeerGroups::default(),
            compared: None,
        };
        let mut asked = FuturesUnordered::new();
        loop {
            changed.mark_unchanged();
            let again = self.look(&mut known).await;
            asked.extend(known.due().map(|peer| ask(self.proxy.clone(), peer)));
            let again = async {
                match again.into_iter().chain(known.next_due()).min() {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                // Both senders outlive this task.
                _ = changed.changed() => {}
                _ = self.authority.changed() => {}
                () = again => {}
                Some((peer, answer)) = asked.next() => self.answered(&mut known, &peer, answer),
            }
        }
    }

    /// Updates the peers and compares. Returns the time of the next comparison, if one is needed without a change.
    async fn look(&mut self, known: &mut Known) -> Option<Instant> {
        let current = self.configuration.current.load_full();
        let authority = self.authority.borrow_and_update().clone();
        let ended = known.excluded.next_end().is_some_and(|end| end <= Instant::now());
        if !ended && known.compared.as_ref().is_some_and(|compared| compared.is_current(&current, &authority))
        {
            return known.excluded.next_end();
        }
        known.keep(&current.peers, &authority);
        known.compared = None;
        let compared = match self.show(&current.peers.own_name, known).await {
            Ok(()) => {
                known.backoff.reset();
                let (apis, peers) = (Arc::clone(&current.apis), Arc::clone(&current.peers));
                known.compared = Some(Compared { apis, peers, authority: authority.hash.clone() });
                None
            }
            Err(error) => {
                tracing::debug!(%error, "cannot compare discovery with peers, retrying");
                Some(Instant::now() + known.backoff.next_wait())
            }
        };
        compared.into_iter().chain(known.excluded.next_end()).min()
    }

    /// Stores the response of a peer. Ignored if the peer was removed, moved or restarted during the fetch.
    fn answered(&self, known: &mut Known, upstream: &Arc<Upstream>, answer: Answer) {
        let Some(peer) = known.peers.values_mut().find(|peer| Arc::ptr_eq(&peer.upstream, upstream)) else {
            return;
        };
        match answer {
            Ok(groups) => {
                peer.groups = Some(groups);
                known.compared = None;
            }
            Err(error) => {
                self.peers.metrics.unread();
                peer.due = Some(Instant::now() + peer.backoff.next_wait());
                let PeerAddress { name, address, .. } = &peer.address;
                tracing::warn!(peer = name, %address, %error, "cannot fetch discovery from a peer, retrying");
            }
        }
    }

    /// Compares with the APIs served here, and publishes the result to request forwarding and to discovery.
    async fn show(&self, own_name: &str, known: &mut Known) -> Result<(), DocumentError> {
        let mut serving = Serving::new();
        let mut shown = PeerGroups { own_name: own_name.to_owned(), others: BTreeMap::new() };
        let mut here = Here { follow: self, excluded: &mut known.excluded, known: HashMap::new() };
        for (name, peer) in &known.peers {
            let mut groups = Vec::new();
            for group in peer.groups.iter().flatten() {
                let mut versions = Vec::new();
                for version in &group.versions {
                    let gv = GroupVersion::new(&group.metadata.name, &version.version);
                    let Some(own) = here.builtin(&gv).await? else { continue };
                    add(&mut serving, &gv, version, own, &peer.upstream);
                    versions.push(version.clone());
                }
                // The document does not contain core.
                if !versions.is_empty() && !group.metadata.name.is_empty() {
                    groups.push(GroupDiscovery { metadata: group.metadata.clone(), versions });
                }
            }
            shown.others.insert(name.clone(), groups);
        }
        shown.others.retain(|_, groups| !groups.is_empty());
        self.peers.set(serving);
        if known.shown != shown {
            known.shown = shown.clone();
            self.catalog.set_peers(shown);
        }
        Ok(())
    }
}

/// Discovery of a peer.
type Answer = Result<Vec<GroupDiscovery>, FetchError>;

async fn ask(proxy: Proxy, peer: Arc<Upstream>) -> (Arc<Upstream>, Answer) {
    let answer = fetch::groups(&proxy, &peer).await;
    (peer, answer)
}

impl Known {
    /// Returns the peers whose discovery is to be fetched now, and marks it as being fetched.
    fn due(&mut self) -> impl Iterator<Item = Arc<Upstream>> {
        let now = Instant::now();
        self.peers.values_mut().filter_map(move |peer| {
            peer.due.take_if(|due| *due <= now)?;
            Some(Arc::clone(&peer.upstream))
        })
    }

    /// Time of the next fetch.
    fn next_due(&self) -> Option<Instant> {
        self.peers.values().filter_map(|peer| peer.due).min()
    }

    /// Keeps peers that were neither restarted nor moved, removes others, and adds new ones.
    fn keep(&mut self, addresses: &PeerAddresses, authority: &Bundle) {
        let mut kept = BTreeMap::new();
        for address in &addresses.others {
            let known = self.peers.remove(&address.name);
            let known = known.filter(|peer| peer.address == *address && peer.authority == authority.hash);
            let peer = known.unwrap_or_else(|| Peer {
                address: address.clone(),
                authority: authority.hash.clone(),
                upstream: fetch::upstream(address, authority),
                groups: None,
                due: Some(Instant::now()),
                backoff: Backoff::new(Policy::RECONNECT),
            });
            kept.insert(address.name.clone(), peer);
        }
        self.peers = kept;
    }
}

/// APIs served here, looked up once per group version.
struct Here<'a> {
    follow: &'a Follow,
    excluded: &'a mut Excluded,
    known: HashMap<GroupVersion, Option<Vec<String>>>,
}

impl Here<'_> {
    /// Built-in resources of a group version; `None` if the group version is never forwarded.
    async fn builtin(&mut self, gv: &GroupVersion) -> Result<Option<&[String]>, DocumentError> {
        if !self.known.contains_key(gv) {
            let apis = Arc::clone(&self.follow.configuration.current.load().apis);
            let served = self.follow.catalog.served_by(&apis, gv).await?;
            let is_shared = served == ServedBy::Objects;
            let own = match served {
                _ if self.excluded.looked_at(gv, is_shared, Instant::now()) => None,
                ServedBy::Server(resources) => Some(resources),
                ServedBy::Nobody | ServedBy::Objects => Some(Vec::new()),
            };
            self.known.insert(gv.clone(), own);
        }
        Ok(self.known[gv].as_deref())
    }
}

/// Adds the resources of a group version that the peer serves and this server does not.
fn add(
    serving: &mut Serving,
    gv: &GroupVersion,
    version: &VersionDiscovery,
    own: &[String],
    peer: &Arc<Upstream>,
) {
    for resource in version.resources.iter().filter(|resource| !own.contains(&resource.resource)) {
        serving.entry(key(&gv.group, &gv.version, &resource.resource)).or_default().push(Arc::clone(peer));
    }
}
