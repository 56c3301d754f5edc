//! CronJob: creates jobs on a schedule.

mod schedule;

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

use super::{job, job_warnings};
use portico_registry::{DecodeStrategy, RequestTime, Strategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::counts::all_not_negative;
use portico_validation::pod_spec;

/// Maximum length of the name, which leaves ten characters for the suffix that the controller appends.
const NAME_MAX: usize = 52;
const JOB_SPEC: [&str; 3] = ["spec", "jobTemplate", "spec"];

pub(crate) struct CronJob;

impl DecodeStrategy for CronJob {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        object.edit(&["spec", "jobTemplate", "spec", "template"], pod_spec::default_template);
    }
}

impl Strategy for CronJob {
    fn compares_metadata_again(&self, is_status: bool) -> bool {
        !is_status
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate_spec(new, None, errors);
        if new.name().len() > NAME_MAX {
            let text = format!("must be no more than {NAME_MAX} characters");
            errors.push(new.at(&["metadata", "name"]).invalid(&text));
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        validate_spec(new, Some(old), errors);
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let mut warnings = Vec::new();
        let Some(before) = old else {
            warnings.extend(pod_spec::name_warning(new, pod_spec::POD_NAMES_AND_HOSTNAMES));
            warnings.extend(job_warnings(new, None, &JOB_SPEC));
            return warnings;
        };
        if new.at(&["spec"]).same_as(&before.at(&["spec"])) {
            return warnings;
        }
        warnings.extend(job_warnings(new, old, &JOB_SPEC));
        if new.at(&["spec", "schedule"]).str().contains("TZ") {
            warnings.push(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                    .to_owned(),
            );
        }
        warnings
    }
}

impl TableStrategy for CronJob {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        match function {
            "cronjob-suspend" => Cell::text(match object.at(&["spec", "suspend"]).opt_bool() {
                Some(true) => "True",
                Some(false) => "False",
                None => "<unset>",
            }),
            _ => match object.at(&["status", "lastScheduleTime"]).opt_str() {
                Some(time) => Cell::Age(Some(time.to_owned())),
                None => Cell::text("<none>"),
            },
        }
    }
}

fn validate_spec(new: &Object, old: Option<&Object>, errors: &mut Errors) {
    const LIMITS: [&str; 2] = ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
    let spec = new.at(&["spec"]);
    validate_schedule(&spec, old, errors);
    all_not_negative(&spec, &["startingDeadlineSeconds"], errors);
    let zone = spec.field("timeZone");
    if old.is_none_or(|old| !zone.same_as(&old.at(&["spec", "timeZone"]))) {
        validate_time_zone(&zone, errors);
    }
    let policy = spec.field("concurrencyPolicy");
    match policy.str() {
        "" => errors.push(policy.required("")),
        "Allow" | "Forbid" | "Replace" => {}
        _ => errors.push(policy.not_supported(&["Allow", "Forbid", "Replace"])),
    }
    validate_job_template(&new.at(&JOB_SPEC), errors);
    all_not_negative(&spec, &LIMITS, errors);
}

fn validate_schedule(spec: &Cursor<'_>, old: Option<&Object>, errors: &mut Errors) {
    let schedule = spec.field("schedule");
    let text = schedule.str();
    if text.is_empty() {
        errors.push(schedule.required(""));
        return;
    }
    if let Err(error) = schedule::check(text) {
        errors.push(schedule.invalid(&error));
    }
    if !text.contains("TZ") {
        return;
    }
    if !old.is_some_and(|old| old.at(&["spec", "schedule"]).str().contains("TZ")) {
        let text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(schedule.invalid(text));
    } else if spec.field("timeZone").is_present() {
        let text = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        errors.push(schedule.invalid(text));
    }
}

fn validate_time_zone(zone: &Cursor<'_>, errors: &mut Errors) {
    let Some(name) = zone.opt_str() else { return };
    if name.is_empty() {
        errors.push(zone.invalid("timeZone must be nil or non-empty string"));
        return;
    }
    let unknown = format!("unknown time zone {name}");
    for part in name.split('/') {
        let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'+' | b'-');
        let is_invalid = matches!(part, "." | "..") || part.starts_with('-');
        if is_invalid || !(1..=14).contains(&part.len()) || !part.bytes().all(legal) {
            errors.push(zone.invalid(&unknown));
            return;
        }
    }
    if name.eq_ignore_ascii_case("Local") {
        let text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(zone.invalid(text));
    }
    if name != "Local" && !schedule::is_time_zone(name) {
        errors.push(zone.invalid(&unknown));
    }
}

/// Validates the spec of the jobs. Their selectors are generated when the jobs are created.
fn validate_job_template(spec: &Cursor<'_>, errors: &mut Errors) {
    job::validate_spec(spec, errors);
    let (selector, manual) = (spec.field("selector"), spec.field("manualSelector"));
    if selector.is_present() {
        errors.push(selector.invalid("`selector` will be auto-generated"));
    }
    if manual.bool() {
        errors.push(portico_machinery::field::Error {
            kind: portico_machinery::field::ErrorType::NotSupported,
            path: manual.path(),
            body: "Unsupported value: true: supported values: nil, false".to_owned(),
        });
    }
}
