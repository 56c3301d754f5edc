//! The aggregated document of all servers behind one address: what they serve besides, in the place that upstream gives it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use portico_machinery::Status;
use portico_machinery::discovery::merge::merged;
use portico_machinery::discovery::{GroupDiscovery, GroupDiscoveryList};
use tokio::sync::Mutex;

use super::Aggregated;
use crate::workers::Workers;

/// What other servers serve, without core; by their names, since the one that sorts first decides what cannot be united.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerGroups {
    /// This server's name.
    pub own_name: String,
    /// The others' groups.
    pub others: BTreeMap<String, Vec<GroupDiscovery>>,
}

/// What is known of peers, and the newest document that was made of it.
#[derive(Default)]
pub(crate) struct Peers {
    groups: ArcSwap<PeerGroups>,
    newest: Mutex<Option<Merged>>,
}

/// A document, and what it was made of.
struct Merged {
    groups: Arc<PeerGroups>,
    own: Arc<Aggregated>,
    document: Arc<Aggregated>,
}

impl Peers {
    /// Knows of these from now on.
    pub(crate) fn set(&self, groups: PeerGroups) {
        self.groups.store(Arc::new(groups));
    }

    /// The own document with what peers serve besides; the own one while there is no such thing.
    pub(super) async fn merged_with(
        &self,
        workers: &Workers,
        own: Arc<Aggregated>,
    ) -> Result<Arc<Aggregated>, Box<Status>> {
        let groups = self.groups.load_full();
        if groups.others.is_empty() {
            return Ok(own);
        }
        let mut newest = self.newest.lock().await;
        let is_of_both =
            |known: &&Merged| Arc::ptr_eq(&known.groups, &groups) && Arc::ptr_eq(&known.own, &own);
        if let Some(known) = newest.as_ref().filter(is_of_both) {
            return Ok(Arc::clone(&known.document));
        }
        let both = (Arc::clone(&own), Arc::clone(&groups));
        let document = workers.compute(own.json.len(), move || merge(&both.0, &both.1)).await?;
        *newest = Some(Merged { groups, own, document: Arc::clone(&document) });
        Ok(document)
    }
}

fn merge(own: &Arc<Aggregated>, groups: &PeerGroups) -> Arc<Aggregated> {
    let own_groups = match serde_json::from_slice::<GroupDiscoveryList>(&own.json) {
        Ok(known) => known.items,
        Err(error) => {
            tracing::warn!(%error, "cannot merge discovery with discovery of peers");
            return Arc::clone(own);
        }
    };
    let others = groups.others.iter().map(|(name, groups)| (name.as_str(), &groups[..]));
    let servers = others.chain([(groups.own_name.as_str(), &own_groups[..])]).collect();
    let all = merged(&servers);
    if all == own_groups { Arc::clone(own) } else { Arc::new(Aggregated::of(all)) }
}
