//! Runs one pass over a group: its documents in order, then pruning.

use super::job::{Job, Visit, Visiting};
use super::left;
use crate::record::Record;

/// Runs the pass.
pub(super) async fn run(job: &Job) -> Visit {
    let record = match Record::load_aggregated(&job.registry).await {
        Ok(record) => record,
        Err(status) => {
            let waiting = job.documents.iter().map(|document| document.fault(&status.message)).collect();
            return Visit { waiting, has_undone: true, ..Visit::default() };
        }
    };
    let mut visiting = Visiting::new(job, record);
    for document in &job.documents {
        visiting.document(document).await;
    }
    // If a document is not applied, its resource may be unknown, so that objects without a manifest cannot be determined.
    if visiting.visit.waiting.is_empty() && visiting.visit.refused.is_empty() {
        left::clean_up(&mut visiting).await;
    } else {
        visiting.visit.has_undone = true;
    }
    let recorded = Some(visiting.record.versions_of_group(&job.group));
    Visit { recorded, ..visiting.visit }
}
