//! Writes counts to a quota's status.

use jiff::Timestamp;
use portico_machinery::user::MASTERS;
use portico_machinery::{Object, Reason, Status, UserInfo};
use portico_registry::{Context, ObjectRef};

use super::counter::{CountResult, QuotaCounter};
use super::decision;
use super::quota_index::{QuotaKey, quotas};

/// User name of the writes.
const USER: &str = "system:serviceaccount:kube-system:resourcequota-controller";
/// User agent of the writes, which names the field manager.
const AGENT: &str = "kube-controller-manager";
/// Attempts to write the status of a quota while requests are charged to it.
///
/// Limit (Admission and quota): it is counted again after a delay.
const MAX_WRITES: usize = 16;
/// Attempts to count a quota while it changes.
///
/// Limit (Admission and quota): it is counted again after a delay.
const MAX_COUNTS: usize = 4;

/// Counts one quota and writes the result.
pub(super) struct QuotaWriter<'a> {
    pub(super) counter: &'a QuotaCounter,
    pub(super) key: &'a QuotaKey,
}

impl QuotaWriter<'_> {
    /// Counts and writes. Returns the time at which the usage changes without a write.
    ///
    /// # Errors
    /// Returns errors of counting, after the rest is written, and 409 if other writers change the quota continuously.
    pub(super) async fn write(&self) -> Result<Option<Timestamp>, Box<Status>> {
        for _ in 0..MAX_COUNTS {
            let Some(recount) = self.counter.count_quota(self.key).await? else { return Ok(None) };
            if self.write_counted(&recount).await? {
                let failed = recount.counted.iter().filter_map(|kind| kind.usage.as_ref().err());
                let failed: Vec<&str> = failed.map(String::as_str).collect();
                return match failed.is_empty() {
                    true => Ok(recount.changes_at),
                    false => Err(Box::new(Status::internal(failed.join(", ")))),
                };
            }
        }
        Err(self.conflict())
    }

    /// Writes the counts and the charges made since. Returns false if the count is outdated.
    async fn write_counted(&self, recount: &CountResult) -> Result<bool, Box<Status>> {
        let counted = recount.quota.object();
        let used = decision::merged_usage(counted, &recount.counted);
        let Some(mut updated) = decision::with_status(counted, &used) else { return Ok(true) };
        for _ in 0..MAX_WRITES {
            match self.update(updated).await {
                Ok(()) => return Ok(true),
                Err(status) if status.reason() == Reason::NotFound => return Ok(true),
                Err(status) if status.reason() != Reason::Conflict => return Err(status),
                Err(_) => {}
            }
            let Some(current) = self.current().await? else { return Ok(true) };
            let Some(used) = decision::with_new_charges(counted, &used, &current) else { return Ok(false) };
            match decision::with_status(&current, &used) {
                Some(next) => updated = next,
                None => return Ok(true),
            }
        }
        Err(self.conflict())
    }

    async fn update(&self, quota: Object) -> Result<(), Box<Status>> {
        let user = UserInfo::new(USER, [MASTERS]).with_authenticated_group();
        let context = Context::new(user, AGENT);
        self.counter.registry.update_status(&context, &quotas(), quota).await.map(drop)
    }

    async fn current(&self) -> Result<Option<Object>, Box<Status>> {
        let QuotaKey { namespace, name } = self.key.clone();
        let object_ref = ObjectRef { resource: quotas(), namespace, name };
        let stored = self.counter.registry.get_stored(&object_ref).await?;
        Ok(stored.map(|stored| stored.object().clone()))
    }

    fn conflict(&self) -> Box<Status> {
        let reason = "the quota changes faster than its usage is calculated";
        Box::new(Status::conflict(&quotas(), &self.key.name, reason))
    }
}
