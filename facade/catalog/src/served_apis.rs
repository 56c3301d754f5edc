//! The served APIs at one time. Immutable: a change creates a new value, which shares unchanged parts.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use crate::discovery::AddressRule;
use crate::snapshot::Snapshot;
use crate::state::{Change, EntryState};

/// APIs of one configuration, and the documents that were built for it so far.
#[derive(Default)]
pub struct ServedApis {
    state: EntryState,
    /// Additional address in `/api` for clients in a range.
    address_rule: Option<AddressRule>,
    /// Built for the first request.
    snapshot: OnceLock<Snapshot>,
}

impl ServedApis {
    /// Returns the APIs after these changes. Inexpensive, because documents are built on request.
    #[must_use]
    pub fn with_changes(self: &Arc<Self>, changes: impl IntoIterator<Item = Change>) -> Arc<Self> {
        let mut state = self.state.clone();
        let mut changed = false;
        for change in changes {
            changed |= state.apply(change);
        }
        if changed { Arc::new(self.with_state(state)) } else { Arc::clone(self) }
    }

    /// Returns other APIs instead of these; the priorities with which group versions first appeared are kept.
    #[must_use]
    pub fn replace_with(self: &Arc<Self>, entries: impl IntoIterator<Item = Change>) -> Arc<Self> {
        let mut state = EntryState::default();
        for entry in entries {
            state.apply_over(&self.state, entry);
        }
        let is_same = state.routes == self.state.routes && state.served == self.state.served;
        if is_same { Arc::clone(self) } else { Arc::new(self.with_state(state)) }
    }

    /// Returns the APIs with another additional address.
    #[must_use]
    pub fn with_address_rule(self: &Arc<Self>, rule: Option<AddressRule>) -> Arc<Self> {
        if rule == self.address_rule {
            return Arc::clone(self);
        }
        Arc::new(Self { state: self.state.clone(), address_rule: rule, snapshot: OnceLock::new() })
    }

    fn with_state(&self, state: EntryState) -> Self {
        Self { state, address_rule: self.address_rule.clone(), snapshot: OnceLock::new() }
    }

    /// Hashes of all documents that entries name, which a facade caches for times without a control service.
    #[must_use]
    pub fn documents(&self) -> BTreeSet<String> {
        self.state.served.values().flat_map(|served| served.documents()).map(str::to_owned).collect()
    }

    /// Hashes of the parts of aggregated discovery, which clients read first.
    #[must_use]
    pub fn discovery_documents(&self) -> BTreeSet<String> {
        let hashes = self.state.served.values().map(|served| served.discovery.clone());
        hashes.filter(|hash| !hash.is_empty()).collect()
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        self.snapshot.get_or_init(|| Snapshot::new(&self.state))
    }

    pub(crate) fn address_rule(&self) -> Option<&AddressRule> {
        self.address_rule.as_ref()
    }
}
