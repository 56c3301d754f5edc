//! One visit to the servers of a group: its documents in order, then what left the folder.

use super::job::{Job, Visit, Visiting};
use super::left;
use crate::record::Record;

/// Makes the visit.
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
    // Where a document is not applied, its resource may not be known, and so nobody knows what has left.
    if visiting.visit.waiting.is_empty() && visiting.visit.refused.is_empty() {
        left::clean_up(&mut visiting).await;
    } else {
        visiting.visit.has_undone = true;
    }
    let recorded = Some(visiting.record.versions_of_group(&job.group));
    Visit { recorded, ..visiting.visit }
}
