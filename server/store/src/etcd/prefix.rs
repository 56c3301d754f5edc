//! Prefix of etcd as used by copies, independent of control services that use it.

use super::client::Client;
use super::failure::EtcdFailure;
use super::gate::{self, Gate};
use super::keys::EtcdKeys;
use super::object_codec::ObjectCodec;
use super::open::{self, Meta, OpenFailure};
use super::reader::Reader;
use super::settings::EtcdSettings;
use super::values::ValueCodec;
use super::wire::RangeRequest;
use crate::copy::{CopyError, StoreExtent};

/// Prefix of etcd as used by copies.
pub(super) struct EtcdPrefix {
    pub(super) client: Client,
    pub(super) keys: EtcdKeys,
    pub(super) values: ValueCodec,
    pub(super) root: String,
    /// Name for messages.
    name: String,
}

impl EtcdPrefix {
    /// Connects to a running etcd.
    pub(super) async fn open(settings: &EtcdSettings, codec: ObjectCodec) -> Result<Self, CopyError> {
        let name = settings.place();
        let failed = |reason: String| CopyError::Store { place: name.clone(), reason };
        let client = Client::new(settings).map_err(|failure| failed(failure.log_text()))?;
        match open::check_version(&client).await {
            Ok(()) => {}
            Err(OpenFailure::TooOld(found)) => {
                return Err(failed(format!(
                    "version {found} is too old: version 3.5.13 or later is required"
                )));
            }
            Err(OpenFailure::HalfRestored) => return Err(CopyError::HalfRestored(name)),
            Err(OpenFailure::Failed(failure)) => return Err(failed(failure.first_request_text(settings))),
        }
        let keys = EtcdKeys::new(settings.root(), codec.layout.clone());
        let values = ValueCodec { layout: codec.layout, indexer: codec.indexer, seal: codec.seal };
        Ok(Self { client, keys, values, root: settings.root(), name })
    }

    /// Returns the prefix of a store in this process.
    pub(super) fn from_store(reader: &Reader, name: String) -> Self {
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

    pub(super) fn store_error(&self, reason: impl Into<String>) -> CopyError {
        CopyError::Store { place: self.name.clone(), reason: reason.into() }
    }

    pub(super) fn copy_error(&self, failure: EtcdFailure) -> CopyError {
        tracing::debug!(error = failure.log_text(), "etcd request of a copy failed");
        match failure {
            EtcdFailure::Sealed { key, reason } => CopyError::Unopened { key, reason },
            // Commands that copy stores print the cause too, such as a certificate that does not match.
            failure => self.store_error(failure.log_text()),
        }
    }

    /// Returns the identity of the store and the revision of etcd.
    pub(super) async fn meta(&self) -> Result<Meta, CopyError> {
        open::inspect(&self.client, &self.root).await.map_err(|failure| self.copy_error(failure))
    }

    /// Returns the identity, the revision, and the compaction point.
    pub(super) async fn extent(&self) -> Result<StoreExtent, CopyError> {
        let Meta { identity, revision, .. } = self.meta().await?;
        let oldest = open::compacted(&self.client, &self.root).await;
        let oldest = oldest.map_err(|failure| self.copy_error(failure))?;
        Ok(StoreExtent { identity, revision, oldest })
    }

    /// Returns the state of the gate for writes.
    pub(super) async fn gate(&self) -> Result<Gate, CopyError> {
        gate::read_gate(&self.client, &self.keys).await.map_err(|failure| self.copy_error(failure))
    }

    /// Returns true if any key exists under the prefix.
    pub(super) async fn is_used(&self) -> Result<bool, CopyError> {
        let (key, range_end) = self.keys.all();
        let request = RangeRequest { key, range_end, count_only: true, ..RangeRequest::default() };
        let response = self.client.range(request).await.map_err(|failure| self.copy_error(failure))?;
        Ok(response.count > 0)
    }
}
