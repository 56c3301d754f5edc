//! The aggregated document of all servers behind one address, merged in upstream's order.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use portico_machinery::Status;
use portico_machinery::discovery::merge::merge_servers;
use portico_machinery::discovery::{GroupDiscovery, GroupDiscoveryList};
use tokio::sync::Mutex;

use super::AggregatedDocument;
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
pub(crate) struct PeerDocuments {
    groups: ArcSwap<PeerGroups>,
    newest: Mutex<Option<MergedWithPeers>>,
}

/// A merged document and its inputs.
struct MergedWithPeers {
    groups: Arc<PeerGroups>,
    own_document: Arc<AggregatedDocument>,
    document: Arc<AggregatedDocument>,
}

impl PeerDocuments {
    /// Replaces the APIs of peers.
    pub(crate) fn set(&self, groups: PeerGroups) {
        self.groups.store(Arc::new(groups));
    }

    /// Merges this server's document with the APIs of peers; returns it unchanged if there are none.
    pub(super) async fn merged_with(
        &self,
        workers: &Workers,
        own_document: Arc<AggregatedDocument>,
    ) -> Result<Arc<AggregatedDocument>, Box<Status>> {
        let groups = self.groups.load_full();
        if groups.others.is_empty() {
            return Ok(own_document);
        }
        let mut newest = self.newest.lock().await;
        let has_same_inputs = |merged: &&MergedWithPeers| {
            Arc::ptr_eq(&merged.groups, &groups) && Arc::ptr_eq(&merged.own_document, &own_document)
        };
        if let Some(merged) = newest.as_ref().filter(has_same_inputs) {
            return Ok(Arc::clone(&merged.document));
        }
        let inputs = (Arc::clone(&own_document), Arc::clone(&groups));
        let document = workers.compute(own_document.json.len(), move || merge(&inputs.0, &inputs.1)).await?;
        *newest = Some(MergedWithPeers { groups, own_document, document: Arc::clone(&document) });
        Ok(document)
    }
}

fn merge(own_document: &Arc<AggregatedDocument>, groups: &PeerGroups) -> Arc<AggregatedDocument> {
    let own_groups = match serde_json::from_slice::<GroupDiscoveryList>(&own_document.json) {
        Ok(list) => list.items,
        Err(error) => {
            tracing::warn!(%error, "cannot merge discovery with discovery of peers");
            return Arc::clone(own_document);
        }
    };
    let others = groups.others.iter().map(|(name, groups)| (name.as_str(), &groups[..]));
    let servers = others.chain([(groups.own_name.as_str(), &own_groups[..])]).collect();
    let all = merge_servers(&servers);
    if all == own_groups { Arc::clone(own_document) } else { Arc::new(AggregatedDocument::encode(all)) }
}
