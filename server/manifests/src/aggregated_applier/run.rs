//! Runs one pass over a group: its documents in order, then pruning.

use super::job::{GroupJob, GroupPass, GroupResult};
use super::pruning;
use crate::record::ResourceRecord;

/// Runs the pass.
pub(super) async fn run(job: &GroupJob) -> GroupResult {
    let record = match ResourceRecord::load_aggregated(&job.registry).await {
        Ok(record) => record,
        Err(status) => {
            let waiting = job.documents.iter().map(|document| document.fault(&status.message)).collect();
            return GroupResult { waiting, needs_retry: true, ..GroupResult::default() };
        }
    };
    let mut pass = GroupPass::new(job, record);
    for document in &job.documents {
        pass.apply_or_record(document).await;
    }
    // If a document is not applied, its resource may be unknown, so that objects without a manifest cannot be determined.
    if pass.result.waiting.is_empty() && pass.result.refused.is_empty() {
        pruning::clean_up(&mut pass).await;
    } else {
        pass.result.needs_retry = true;
    }
    let recorded = Some(pass.record.versions_of_group(&job.group));
    GroupResult { recorded, ..pass.result }
}
