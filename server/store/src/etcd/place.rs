//! Prefix of etcd as used by copies, independent of control services that use it.

use super::client::Client;
use super::failure::Failure;
use super::gate::{self, Gate};
use super::keys::Keys;
use super::known::Known;
use super::open::{self, Meta, OpenFailure};
use super::read::Reader;
use super::settings::EtcdSettings;
use super::values::Values;
use super::wire::RangeRequest;
use crate::copy::{CopyError, Extent};

/// Prefix of etcd as used by copies.
pub(super) struct Place {
    pub(super) client: Client,
    pub(super) keys: Keys,
    pub(super) values: Values,
    pub(super) root: String,
    /// Name for messages.
    name: String,
}

impl Place {
    /// Connects to a running etcd.
    pub(super) async fn open(settings: &EtcdSettings, known: Known) -> Result<Self, CopyError> {
        let name = settings.place();
        let failed = |reason: String| CopyError::Store { place: name.clone(), reason };
        let client = Client::new(settings).map_err(|failure| failed(failure.logged()))?;
        match open::check_version(&client).await {
            Ok(()) => {}
            Err(OpenFailure::TooOld(found)) => {
                return Err(failed(format!(
                    "version {found} is too old: version 3.5.13 or later is required"
                )));
            }
            Err(OpenFailure::HalfRestored) => return Err(CopyError::HalfRestored(name)),
            Err(OpenFailure::Failed(failure)) => return Err(failed(failure.of_first(settings))),
        }
        let keys = Keys::new(settings.root(), known.layout.clone());
        let values = Values { layout: known.layout, indexer: known.indexer, seal: known.seal };
        Ok(Self { client, keys, values, root: settings.root(), name })
    }

    /// Returns the prefix of a store in this process.
    pub(super) fn of_store(reader: &Reader, name: String) -> Self {
        Self {
            client: reader.client.clone(),
            keys: reader.keys.clone(),
            values: reader.values.clone(),
            root: reader.root.clone(),
            name,
        }
    }

    /// Returns the name for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn store(&self, reason: impl Into<String>) -> CopyError {
        CopyError::Store { place: self.name.clone(), reason: reason.into() }
    }

    pub(super) fn failed(&self, failure: Failure) -> CopyError {
        tracing::debug!(error = failure.logged(), "etcd request of a copy failed");
        match failure {
            Failure::Sealed { key, reason } => CopyError::Unopened { key, reason },
            // Commands that copy stores print the cause too, such as a certificate that does not match.
            failure => self.store(failure.logged()),
        }
    }

    /// Returns the identity of the store and the revision of etcd.
    pub(super) async fn meta(&self) -> Result<Meta, CopyError> {
        open::look(&self.client, &self.root).await.map_err(|failure| self.failed(failure))
    }

    /// Returns the identity, the revision, and the compaction point.
    pub(super) async fn extent(&self) -> Result<Extent, CopyError> {
        let Meta { identity, revision, .. } = self.meta().await?;
        let oldest = open::compacted(&self.client, &self.root).await;
        let oldest = oldest.map_err(|failure| self.failed(failure))?;
        Ok(Extent { identity, revision, oldest })
    }

    /// Returns the state of the gate for writes.
    pub(super) async fn gate(&self) -> Result<Gate, CopyError> {
        gate::look(&self.client, &self.keys).await.map_err(|failure| self.failed(failure))
    }

    /// Returns true if any key exists under the prefix.
    pub(super) async fn is_used(&self) -> Result<bool, CopyError> {
        let (key, range_end) = self.keys.all();
        let request = RangeRequest { key, range_end, count_only: true, ..RangeRequest::default() };
        let answer = self.client.range(request).await.map_err(|failure| self.failed(failure))?;
        Ok(answer.count > 0)
    }
}
