//! Keeps up to date what peers serve: asks each one once for every start of it, again after failures, and compares that with what
//! is served here whenever either changes.

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

/// See the module.
pub struct Follow {
    /// What is kept up to date.
    pub peers: Arc<Peers>,
    /// What is served here; shows what peers serve besides.
    pub catalog: Arc<Catalog>,
    /// Where peers are.
    pub configuration: Arc<Configuration>,
    /// To them.
    pub proxy: Proxy,
    /// What their certificates are checked against.
    pub authority: watch::Receiver<CaBundle>,
}

/// A peer as it was found.
struct Peer {
    address: PeerAddress,
    /// Of the CAs that it is trusted by.
    authority: Arc<str>,
    upstream: Arc<Upstream>,
    /// All groups, core among them; nothing before it has answered.
    groups: Option<Vec<GroupDiscovery>>,
    /// When to ask it; nothing while it is asked, or once it has answered.
    due: Option<Instant>,
    backoff: Backoff,
}

/// What is known between two looks.
struct Known {
    peers: BTreeMap<String, Peer>,
    excluded: Excluded,
    /// Of comparing with what is served here.
    backoff: Backoff,
    /// What was last shown.
    shown: PeerGroups,
    /// Inputs of the last comparison; `None` if a peer has answered since, or the comparison failed.
    compared: Option<Compared>,
}

/// Inputs of a comparison, but for what peers answer.
struct Compared {
    apis: Arc<ServedApis>,
    peers: Arc<PeerAddresses>,
    authority: Arc<str>,
}

impl Compared {
    /// True if a comparison with these inputs would show the same.
    fn is_current(&self, current: &InForce, authority: &Bundle) -> bool {
        Arc::ptr_eq(&self.apis, &current.apis)
            && Arc::ptr_eq(&self.peers, &current.peers)
            && self.authority == authority.hash
    }
}

impl Follow {
    /// Follows for as long as it is polled. A peer that does not answer holds up nothing but itself.
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
                // Neither sender is gone before this is.
                _ = changed.changed() => {}
                _ = self.authority.changed() => {}
                () = again => {}
                Some((peer, answer)) = asked.next() => self.answered(&mut known, &peer, answer),
            }
        }
    }

    /// Looks at everything, and says when to look again although nothing changes.
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

    /// Nothing, when the peer has gone, moved or been started again meanwhile.
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

    /// Has requests sent to peers for what only they serve, and discovery show it.
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
                // Core is no part of the document.
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

/// What a peer says that it serves.
type Answer = Result<Vec<GroupDiscovery>, FetchError>;

async fn ask(proxy: Proxy, peer: Arc<Upstream>) -> (Arc<Upstream>, Answer) {
    let answer = fetch::groups(&proxy, &peer).await;
    (peer, answer)
}

impl Known {
    /// Peers that are to be asked now, each once.
    fn due(&mut self) -> impl Iterator<Item = Arc<Upstream>> {
        let now = Instant::now();
        self.peers.values_mut().filter_map(move |peer| {
            peer.due.take_if(|due| *due <= now)?;
            Some(Arc::clone(&peer.upstream))
        })
    }

    /// When the next one is to be asked.
    fn next_due(&self) -> Option<Instant> {
        self.peers.values().filter_map(|peer| peer.due).min()
    }

    /// Keeps those that are there and have not been started again or moved, and adds the new ones.
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

/// What is served here, looked at once for each group version.
struct Here<'a> {
    follow: &'a Follow,
    excluded: &'a mut Excluded,
    known: HashMap<GroupVersion, Option<Vec<String>>>,
}

impl Here<'_> {
    /// The resources of a group version that are built in here; nothing where it is none of a peer's.
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

/// What the peer serves of a group version and this server does not.
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
