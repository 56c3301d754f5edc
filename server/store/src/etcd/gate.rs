//! The key that is not there while writes are taken: every transaction that writes compares it, so that all servers of ours stop at
//! the same revision. kube-apiserver does not know it.

use super::client::Client;
use super::failure::Failure;
use super::keys::Keys;
use super::wire::RangeRequest;
use crate::read_only;

/// Whether writes are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// They are.
    Open,
    /// They are stopped since this revision.
    Stopped(i64),
    /// A restore that began at this revision has not come to its end: nothing that is there is whole.
    Restoring(i64),
}

impl Gate {
    /// The revision at which the key was written; 0 when it is not there.
    pub(super) fn revision(self) -> i64 {
        match self {
            Self::Open => 0,
            Self::Stopped(revision) | Self::Restoring(revision) => revision,
        }
    }
}

/// Where the key stands.
pub(super) fn place(keys: &Keys) -> Vec<u8> {
    keys.of(read_only::key()).into_bytes()
}

/// How it is now.
pub(super) async fn look(client: &Client, keys: &Keys) -> Result<Gate, Failure> {
    let request = RangeRequest { key: place(keys), ..RangeRequest::default() };
    let answer = client.probe(request).await?;
    Ok(answer.kvs.first().map_or(Gate::Open, |found| match read_only::is_of_restore(&found.value) {
        true => Gate::Restoring(found.mod_revision),
        false => Gate::Stopped(found.mod_revision),
    }))
}
