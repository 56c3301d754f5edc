//! Key that is absent while writes are accepted. Every writing transaction compares it, so that all Portico servers stop at
//! the same revision. kube-apiserver does not use it.

use super::client::Client;
use super::failure::EtcdFailure;
use super::keys::EtcdKeys;
use super::wire::RangeRequest;
use crate::read_only;

/// State of the gate for writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// Writes are accepted.
    Open,
    /// Writes are stopped since this revision.
    Stopped(i64),
    /// A restore that began at this revision has not finished: the data is incomplete.
    Restoring(i64),
}

impl Gate {
    /// Returns the revision at which the key was written; 0 if it is absent.
    pub(super) fn revision(self) -> i64 {
        match self {
            Self::Open => 0,
            Self::Stopped(revision) | Self::Restoring(revision) => revision,
        }
    }
}

/// Returns the key in etcd.
pub(super) fn gate_key(keys: &EtcdKeys) -> Vec<u8> {
    keys.object_key(read_only::key()).into_bytes()
}

/// Reads the current state.
pub(super) async fn read_gate(client: &Client, keys: &EtcdKeys) -> Result<Gate, EtcdFailure> {
    let request = RangeRequest { key: gate_key(keys), ..RangeRequest::default() };
    let response = client.range_unchecked(request).await?;
    Ok(response.kvs.first().map_or(Gate::Open, |found| match read_only::is_restore_record(&found.value) {
        true => Gate::Restoring(found.mod_revision),
        false => Gate::Stopped(found.mod_revision),
    }))
}
