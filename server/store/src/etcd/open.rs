//! Identity of a store in etcd: a record of Portico next to kube-apiserver's keys, bound to its cluster.

use std::time::Duration;

use portico_gostd::time::format_duration;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until};

use super::client::Client;
use super::failure::EtcdFailure;
use super::gate::{self, Gate};
use super::keys::EtcdKeys;
use super::settings::EtcdSettings;
use super::wire::{Compare, Header, KeyValue, RangeRequest, RequestOp, TxnRequest};
use crate::identity::Identity;
use crate::outage_log::OutageLog;

/// Delay between attempts to reach etcd.
pub(super) const RETRY_DELAY: Duration = Duration::from_millis(250);
/// Prefix of Portico's own keys, which are not objects.
const OWN_KEY_PREFIX: &str = "/portico.dev/store";
/// Oldest releases of each line with reliable progress notifications of watches (upstream's `feature_support_checker`).
const MIN_RELEASES: [(u32, u32, u32); 2] = [(3, 4, 31), (3, 5, 13)];

/// Reason why a store in etcd could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// etcd cannot be reached, or rejects the connection.
    #[error("{place}: {reason}")]
    Unreachable {
        /// Addresses of the members.
        place: String,
        reason: String,
    },
    /// The version of etcd has unreliable watches.
    #[error("{place} runs version {found}: version 3.5.13 or later is required")]
    TooOld {
        /// Addresses of the members.
        place: String,
        /// Version of etcd.
        found: String,
    },
    /// The store contains an incomplete restore.
    #[error("{place} contains an incomplete restore or move: repeat the command with --force")]
    HalfRestored {
        /// Addresses of the members.
        place: String,
    },
}

/// Record of the identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct IdentityRecord {
    store_id: String,
    epoch: i64,
    /// ID of the cluster in which this epoch began.
    cluster_id: String,
}

/// State of a store when it is opened or read again.
#[derive(Clone, Debug)]
pub(super) struct Meta {
    pub(super) identity: Identity,
    pub(super) cluster_id: u64,
    /// Newest revision of etcd, including keys outside of the store.
    pub(super) revision: i64,
    /// Revision of the record; 0 if the store was never opened.
    record_revision: i64,
}

impl Meta {
    /// True if a control service has ever opened the store.
    pub(super) fn was_opened(&self) -> bool {
        self.record_revision > 0
    }
}

/// Returns the key of the record of the store under a prefix.
pub(super) fn record_key(root: &str) -> Vec<u8> {
    format!("{OWN_KEY_PREFIX}{root}identity").into_bytes()
}

/// Opens a store, waiting for an unavailable etcd. Returns its state and the compaction point.
pub(super) async fn open(
    client: &Client,
    settings: &EtcdSettings,
    keys: &EtcdKeys,
) -> Result<(Meta, i64), EtcdError> {
    let deadline = Instant::now() + settings.connect_timeout;
    let place = settings.place();
    let mut outage = OutageLog::default();
    loop {
        let failure = match try_open(client, &settings.root(), keys).await {
            Ok(opened) => {
                if let Some(outage_seconds) = outage.record_success() {
                    tracing::info!(outage_seconds, "etcd available");
                }
                break Ok(opened);
            }
            Err(OpenFailure::TooOld(found)) => break Err(EtcdError::TooOld { place, found }),
            Err(OpenFailure::HalfRestored) => break Err(EtcdError::HalfRestored { place }),
            Err(OpenFailure::Failed(failure)) => failure,
        };
        if failure.is_permanent() || Instant::now() + RETRY_DELAY >= deadline {
            break Err(EtcdError::Unreachable { place, reason: failure.first_request_text(settings) });
        }
        if let Some(outage_seconds) = outage.record_failure() {
            let timeout = format_duration(settings.connect_timeout);
            let error = failure.log_text();
            tracing::warn!(%place, error, outage_seconds, timeout, "cannot open etcd, retrying");
        }
        sleep_until(Instant::now() + RETRY_DELAY).await;
    }
}

/// Reason why a store in etcd is not opened.
pub(super) enum OpenFailure {
    TooOld(String),
    HalfRestored,
    Failed(EtcdFailure),
}

impl From<EtcdFailure> for OpenFailure {
    fn from(failure: EtcdFailure) -> Self {
        Self::Failed(failure)
    }
}

/// Rejects an etcd with unreliable watches.
pub(super) async fn check_version(client: &Client) -> Result<(), OpenFailure> {
    let version = client.status().await?.version;
    if is_too_old(&version) { Err(OpenFailure::TooOld(version)) } else { Ok(()) }
}

async fn try_open(client: &Client, root: &str, keys: &EtcdKeys) -> Result<(Meta, i64), OpenFailure> {
    check_version(client).await?;
    if matches!(gate::read_gate(client, keys).await?, Gate::Restoring(_)) {
        return Err(OpenFailure::HalfRestored);
    }
    loop {
        let found = read(client, root).await?;
        let (record_revision, next) = match found {
            (Some((meta, mark)), cluster_id) if mark.cluster_id == format_cluster_id(cluster_id) => {
                return Ok((meta, compacted(client, root).await?));
            }
            // The data comes from another cluster: clients with its revisions must list again.
            (Some((meta, mark)), cluster_id) => {
                let epoch = mark.epoch + 1;
                (
                    meta.record_revision,
                    IdentityRecord { epoch, cluster_id: format_cluster_id(cluster_id), ..mark },
                )
            }
            (None, cluster_id) => {
                let store_id = uuid::Uuid::new_v4().to_string();
                (0, IdentityRecord { store_id, epoch: 1, cluster_id: format_cluster_id(cluster_id) })
            }
        };
        // Only one of several concurrent processes succeeds.
        write_record(client, root, record_revision, &next).await?;
    }
}

fn format_cluster_id(cluster_id: u64) -> String {
    format!("{cluster_id:x}")
}

fn is_too_old(version: &str) -> bool {
    let mut parts = version.split(['.', '-']).map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) = (parts.next(), parts.next(), parts.next())
    else {
        // A version that cannot be parsed is accepted.
        return false;
    };
    match MIN_RELEASES.iter().find(|min_release| (min_release.0, min_release.1) == (major, minor)) {
        Some(min_release) => patch < min_release.2,
        None => (major, minor) < (MIN_RELEASES[0].0, MIN_RELEASES[0].1),
    }
}

/// Reads the state of the store; `None` if the record is missing.
async fn read(client: &Client, root: &str) -> Result<(Option<(Meta, IdentityRecord)>, u64), EtcdFailure> {
    let response =
        client.range_unchecked(RangeRequest { key: record_key(root), ..RangeRequest::default() }).await?;
    let header = response.header.unwrap_or_default();
    let Some(found) = response.kvs.first() else { return Ok((None, header.cluster_id)) };
    let mark = parse(found)?;
    let meta = Meta {
        identity: Identity { store_id: mark.store_id.clone(), epoch: mark.epoch },
        cluster_id: header.cluster_id,
        revision: header.revision,
        record_revision: found.mod_revision,
    };
    Ok((Some((meta, mark)), header.cluster_id))
}

fn parse(found: &KeyValue) -> Result<IdentityRecord, EtcdFailure> {
    let unreadable = |reason: &str| {
        let key = String::from_utf8_lossy(&found.key).into_owned();
        EtcdFailure::Settings(format!("{key} cannot be read: {reason}"))
    };
    let mark: IdentityRecord = serde_json::from_slice(&found.value)
        .map_err(|error| unreadable(&portico_gostd::json::error_text(&error)))?;
    // Leaves room for another epoch.
    if !(1..i64::MAX).contains(&mark.epoch) {
        return Err(unreadable("the epoch is out of range"));
    }
    Ok(mark)
}

/// Reads the state of a store; `None` if its record is missing.
pub(super) async fn meta(client: &Client, root: &str) -> Result<Option<Meta>, EtcdFailure> {
    Ok(read(client, root).await?.0.map(|(meta, _)| meta))
}

/// Begins a new epoch with the state of etcd, unless another process has done so.
pub(super) async fn begin_epoch(client: &Client, root: &str, epoch: i64) -> Result<(), EtcdFailure> {
    match read(client, root).await? {
        (Some((meta, mark)), cluster_id) if mark.epoch == epoch => {
            let next = IdentityRecord { epoch: epoch + 1, cluster_id: format_cluster_id(cluster_id), ..mark };
            write_record(client, root, meta.record_revision, &next).await
        }
        _ => Ok(()),
    }
}

async fn write_record(
    client: &Client,
    root: &str,
    record_revision: i64,
    mark: &IdentityRecord,
) -> Result<(), EtcdFailure> {
    let compare = Compare::is_at(record_key(root), record_revision);
    let put = put_record(root, mark)?;
    let request = TxnRequest { compare: vec![compare], success: vec![put], failure: Vec::new() };
    client.txn_unchecked(request).await.map(drop)
}

fn put_record(root: &str, mark: &IdentityRecord) -> Result<RequestOp, EtcdFailure> {
    let value = serde_json::to_vec(mark).map_err(|error| EtcdFailure::Settings(error.to_string()))?;
    Ok(RequestOp::put(record_key(root), value, 0))
}

/// Returns the operation that writes the identity of a store in this cluster.
pub(super) fn put_identity(
    root: &str,
    identity: Identity,
    cluster_id: u64,
) -> Result<RequestOp, EtcdFailure> {
    let Identity { store_id, epoch } = identity;
    put_record(root, &IdentityRecord { store_id, epoch, cluster_id: format_cluster_id(cluster_id) })
}

/// Reads the state of a store without opening it. A store that was never opened has an ID derived from its cluster. If the
/// cluster differs from the record, the next epoch is reported.
pub(super) async fn inspect(client: &Client, root: &str) -> Result<Meta, EtcdFailure> {
    let response =
        client.range_unchecked(RangeRequest { key: record_key(root), ..RangeRequest::default() }).await?;
    let Header { cluster_id, revision } = response.header.unwrap_or_default();
    let Some(found) = response.kvs.first() else {
        let identity = Identity { store_id: format!("etcd-{}", format_cluster_id(cluster_id)), epoch: 1 };
        return Ok(Meta { identity, cluster_id, revision, record_revision: 0 });
    };
    let mark = parse(found)?;
    let epoch = if mark.cluster_id == format_cluster_id(cluster_id) { mark.epoch } else { mark.epoch + 1 };
    let identity = Identity { store_id: mark.store_id, epoch };
    Ok(Meta { identity, cluster_id, revision, record_revision: found.mod_revision })
}

/// Returns the oldest readable revision; 0 if nothing was compacted.
pub(super) async fn compacted(client: &Client, root: &str) -> Result<i64, EtcdFailure> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match compacted_of_member(client, root).await {
            // Retries with the watch of another member.
            Err(failure) if failure.is_member_failure() && attempts < client.members() => {}
            compacted => return compacted,
        }
    }
}

/// Returns the oldest readable revision of the current member.
async fn compacted_of_member(client: &Client, root: &str) -> Result<i64, EtcdFailure> {
    let key = record_key(root);
    let range_end = [&*key, b"\0"].concat();
    let mut watch = client.watch((key, range_end), 1).await?;
    loop {
        let response =
            client.with_timeout(watch.next_or_progress()).await.inspect_err(|_| watch.switch_member())?;
        match response {
            response if response.canceled => return Ok(response.compact_revision),
            response if response.created => watch.request_progress(),
            _ => return Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_record_is_reported() {
        let read = |value: &str| {
            let key = record_key("/registry/");
            let found = KeyValue { key, value: value.as_bytes().to_vec(), ..KeyValue::default() };
            parse(&found).map(|mark| mark.epoch).map_err(|failure| failure.reason())
        };
        let mark = |epoch: i64| format!(r#"{{"storeId":"s","epoch":{epoch},"clusterId":"c"}}"#);
        assert_eq!(read(&mark(7)), Ok(7));
        let named = "/portico.dev/store/registry/identity cannot be read: ";
        for damaged in [mark(i64::MAX), mark(0), "{".to_owned()] {
            let reason = read(&damaged).unwrap_err();
            assert!(reason.starts_with(named), "{damaged}: {reason}");
        }
    }

    #[test]
    fn releases_with_wrong_progress_notifications_are_rejected() {
        for old in ["3.4.23", "3.4.30", "3.5.12", "3.3.99", "2.9.9"] {
            assert!(is_too_old(old), "{old}");
        }
        for good in ["3.4.31", "3.5.13", "3.6.0", "3.6.8", "3.7.0-rc.0", "4.0.0", "unknown"] {
            assert!(!is_too_old(good), "{good}");
        }
    }
}
