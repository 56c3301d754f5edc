//! Group batch: pods that run to completion, once or on a schedule.

mod cron_job;
mod job;

pub(crate) use cron_job::CronJob;
pub(crate) use job::Job;

use portico_machinery::{Cursor, Object};

use super::workload::template_warnings;

/// Returns warnings about a job spec at `path`.
fn job_warnings(new: &Object, old: Option<&Object>, path: &[&str]) -> Vec<String> {
    let spec = new.at(path);
    let mut warnings = Vec::new();
    let changed = old.is_none_or(|old| !new.at(&["spec"]).same_as(&old.at(&["spec"])));
    if changed && is_too_wide(&spec) {
        warnings.push(format!(
            "{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail",
            spec.path()
        ));
    }
    let template: Vec<&str> = path.iter().copied().chain(["template"]).collect();
    warnings.extend(template_warnings(new, old, &template));
    warnings
}

fn is_too_wide(spec: &Cursor<'_>) -> bool {
    let number = |field| spec.field(field).i64().unwrap_or(0);
    spec.field("completionMode").str() == "Indexed"
        && number("completions") > 100_000
        && number("parallelism") > 10_000
}
