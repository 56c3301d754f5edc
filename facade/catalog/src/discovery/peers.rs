//! The aggregated document of all servers behind one address, merged in upstream's order.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use portico_machinery::Status;
use portico_machinery::discovery::merge::merged;
use portico_machinery::discovery::{GroupDiscovery, GroupDiscoveryList};
use tokio::sync::Mutex;

use super::Aggregated;
use crate::workers::Workers;

/// APIs of other servers, without core, by server name: where they conflict, the server whose name sorts first takes precedence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerGroups {
    /// Name of this server.
    pub own_name: String,
    /// Groups of the other servers.
    pub others: BTreeMap<String, Vec<GroupDiscovery>>,
}

/// APIs of peers, and the latest document that was merged from them.
#[derive(Default)]
pub(crate) struct Peers {
    groups: ArcSwap<PeerGroups>,
    newest: Mutex<Option<Merged>>,
}

/// A merged document and its inputs.
struct Merged {
    groups: Arc<PeerGroups>,
    own: Arc<Aggregated>,
    document: Arc<Aggregated>,
}

impl Peers {
    /// Replaces the APIs of peers.
    pub(crate) fn set(&self, groups: PeerGroups) {
        self.groups.store(Arc::new(groups));
    }

    /// Merges this server's document with the APIs of peers; returns it unchanged if there are none.
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
