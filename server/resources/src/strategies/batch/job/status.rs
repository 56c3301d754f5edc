//! Validation of the status of a job: a finished job remains finished, and fields must be consistent.
//!
//! Most rules apply only if the fields they check have changed, so that a status written by an older server can still be updated.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object, time};

use super::indexes;
use crate::strategies::workload::invalid_or_null;
use portico_validation::Errors;
use portico_validation::checks::IMMUTABLE;
use portico_validation::counts::all_not_negative;

/// State of a job with the facts that the rules use.
struct JobState<'a> {
    spec: Cursor<'a>,
    status: Cursor<'a>,
    complete: bool,
    failed: bool,
    failing: bool,
    succeeding: bool,
    suspended: bool,
    resumed: bool,
}

impl<'a> JobState<'a> {
    fn of(object: &'a Object) -> Self {
        let status = object.at(&["status"]);
        let conditions = status.field("conditions");
        let has = |kind: &str, status: &str| {
            conditions.items().any(|c| c.field("type").str() == kind && c.field("status").str() == status)
        };
        let is = |kind: &str| has(kind, "True");
        Self {
            complete: is("Complete"),
            failed: is("Failed"),
            failing: is("FailureTarget"),
            succeeding: is("SuccessCriteriaMet"),
            suspended: is("Suspended"),
            resumed: has("Suspended", "False"),
            spec: object.at(&["spec"]),
            status,
        }
    }

    fn is_finished(&self) -> bool {
        self.complete || self.failed
    }

    fn at(&self, field: &'static str) -> Cursor<'a> {
        self.status.field(field)
    }

    fn count(&self, field: &'static str) -> i64 {
        self.at(field).i64().unwrap_or(0)
    }

    fn is_indexed(&self) -> bool {
        self.spec.field("completionMode").str() == "Indexed"
    }
}

/// Validator with the new state, the old state and the errors.
struct StatusValidator<'a, 'e> {
    new: JobState<'a>,
    old: JobState<'a>,
    errors: &'e mut Errors,
}

pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    const COUNTS: [&str; 5] = ["active", "succeeded", "failed", "ready", "terminating"];
    all_not_negative(&new.at(&["status"]), &COUNTS, errors);
    let mut validator = StatusValidator { new: JobState::of(new), old: JobState::of(old), errors };
    validator.validate_uncounted_pods();
    validator.validate_completion();
    validator.validate_end_conditions();
    validator.validate_finished_job();
    validator.validate_index_lists();
    validator.validate_counters();
    validator.validate_success_criteria();
    validator.validate_immutable_fields();
}

impl<'a> StatusValidator<'a, '_> {
    fn has_changed(&self, field: &'static str) -> bool {
        !self.new.at(field).same_as(&self.old.at(field))
    }

    fn has_flag_changed(&self, flag: impl Fn(&JobState<'a>) -> bool) -> bool {
        flag(&self.new) != flag(&self.old)
    }

    fn push_condition_error(&mut self, text: &str) {
        let error = self.new.at("conditions").invalid_unprinted(text);
        self.errors.push(error);
    }

    fn push_invalid(&mut self, field: &'static str, text: &str) {
        let error = self.new.at(field).invalid(text);
        self.errors.push(error);
    }

    fn push_required(&mut self, field: &'static str, text: &str) {
        let error = self.new.at(field).required(text);
        self.errors.push(error);
    }

    fn validate_uncounted_pods(&mut self) {
        let mut seen = HashSet::new();
        for list in ["succeeded", "failed"] {
            for uid in self.new.at("uncountedTerminatedPods").field(list).items() {
                if uid.str().is_empty() {
                    self.errors.push(uid.invalid("must not be empty"));
                } else if !seen.insert(uid.str()) {
                    self.errors.push(Error::duplicate(&uid.path(), uid.str()));
                }
            }
        }
    }

    fn validate_completion(&mut self) {
        let completed = self.has_flag_changed(|s| s.complete);
        if (completed || self.has_flag_changed(|s| s.failed)) && self.new.complete && self.new.failed {
            self.push_condition_error("cannot set Complete=True and Failed=true conditions");
        }
        if (completed || self.has_flag_changed(|s| s.failing)) && self.new.complete && self.new.failing {
            self.push_condition_error("cannot set Complete=True and FailureTarget=true conditions");
        }
        if completed || self.has_changed("completionTime") {
            match (self.new.at("completionTime").is_present(), self.new.complete) {
                (true, false) => self.push_invalid(
                    "completionTime",
                    "cannot set completionTime when there is no Complete=True condition",
                ),
                (false, true) => {
                    self.push_required("completionTime", "completionTime is required for Complete jobs");
                }
                _ => {}
            }
        }
        if self.has_changed("startTime") || self.has_changed("completionTime") {
            let at = |field| time::parse(self.new.at(field).str());
            if at("completionTime").zip(at("startTime")).is_some_and(|(end, start)| end < start) {
                self.push_invalid("completionTime", "must be equal to or after `startTime`");
            }
        }
    }

    fn validate_end_conditions(&mut self) {
        if (self.has_flag_changed(|s| s.failed) || self.has_changed("failedIndexes"))
            && self.new.failed
            && !self.new.failing
        {
            self.push_condition_error(
                "cannot set Failed=True condition without the FailureTarget=true condition",
            );
        }
        if (self.has_flag_changed(|s| s.complete) || self.has_flag_changed(|s| s.succeeding))
            && self.new.complete
            && !self.new.succeeding
        {
            self.push_condition_error(
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            );
        }
    }

    fn validate_finished_job(&mut self) {
        let finish_changed = self.has_flag_changed(JobState::is_finished);
        let finished = self.new.is_finished();
        if (finish_changed || self.has_changed("active")) && finished && self.new.count("active") > 0 {
            self.push_invalid("active", "active>0 is invalid for finished job");
        }
        let never_ran =
            self.new.spec.field("suspend").bool() && self.new.spec.field("completions").i64() == Some(0);
        if (finish_changed || self.has_changed("startTime"))
            && finished
            && !self.new.at("startTime").is_present()
            && !never_ran
        {
            self.push_required("startTime", "startTime is required for finished job");
        }
        let uncounted = self.new.at("uncountedTerminatedPods");
        let has_uncounted = ["succeeded", "failed"].iter().any(|list| !uncounted.field(list).is_empty());
        if (finish_changed || self.has_changed("uncountedTerminatedPods")) && finished && has_uncounted {
            self.push_invalid("uncountedTerminatedPods", "must be empty for finished job");
        }
    }

    /// Validates the format of a changed list of indexes.
    fn validate_index_format(&mut self, field: &'static str, completions: i64) {
        if !self.has_changed(field) {
            return;
        }
        if let Err(error) = indexes::count(self.new.at(field).str(), completions) {
            self.push_invalid(field, &format!("error parsing {field}: {error}"));
        }
    }

    fn validate_index_lists(&mut self) {
        let indexed = self.new.is_indexed();
        let per_index = self.new.spec.field("backoffLimitPerIndex").is_present();
        let completions = self.new.spec.field("completions").i64();
        if let Some(completions) = completions {
            self.validate_index_format("completedIndexes", completions);
            if per_index {
                self.validate_index_format("failedIndexes", completions);
            }
        }
        let listed = !self.new.at("completedIndexes").str().is_empty();
        if self.has_changed("completedIndexes") && !indexed && listed {
            self.push_invalid(
                "completedIndexes",
                "cannot set non-empty completedIndexes when non-indexed completion mode",
            );
        }
        if self.has_changed("failedIndexes") && !per_index && self.new.at("failedIndexes").is_present() {
            self.push_invalid(
                "failedIndexes",
                "cannot set non-null failedIndexes when backoffLimitPerIndex is null",
            );
        }
        if (self.has_changed("failedIndexes") || self.has_changed("completedIndexes"))
            && let Some(completions) = completions
            && let Some(index) = indexes::overlap(
                self.new.at("completedIndexes").str(),
                self.new.at("failedIndexes").str(),
                completions,
            )
        {
            let text = format!("failedIndexes and completedIndexes overlap at index: {index}");
            self.push_invalid("failedIndexes", &text);
        }
    }

    fn validate_counters(&mut self) {
        let finish_changed = self.has_flag_changed(JobState::is_finished);
        if (finish_changed || self.has_changed("terminating"))
            && self.new.is_finished()
            && self.new.count("terminating") > 0
        {
            self.push_invalid("terminating", "terminating>0 is invalid for finished job");
        }
        if (self.has_changed("ready") || self.has_changed("active"))
            && self.new.at("ready").is_present()
            && self.new.count("ready") > self.new.count("active")
        {
            self.push_invalid("ready", "cannot set more ready pods than active");
        }
    }

    fn validate_success_criteria(&mut self) {
        let JobState { complete, failed, failing, succeeding, .. } = self.new;
        if succeeding && failed {
            self.push_condition_error("cannot set SuccessCriteriaMet=True and Failed=true conditions");
        }
        if succeeding && failing {
            self.push_condition_error("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
        }
        if self.new.spec.field("successPolicy").is_present() && complete && !succeeding {
            self.push_condition_error(
                "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
            );
        }
        if self.old.complete && !self.old.succeeding && succeeding {
            self.push_condition_error(
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
            );
        }
    }

    fn validate_immutable_fields(&mut self) {
        for (name, had_condition, has_condition) in [
            ("Failed", self.old.failed, self.new.failed),
            ("Complete", self.old.complete, self.new.complete),
            ("FailureTarget", self.old.failing, self.new.failing),
        ] {
            if had_condition && !has_condition {
                self.push_condition_error(&format!("cannot disable the terminal {name}=True condition"));
            }
        }
        if self.old.succeeding && !self.new.succeeding {
            self.push_condition_error("cannot disable the SuccessCriteriaMet=True condition");
        }
        self.check_counters_monotonic();
        self.check_times_immutable();
    }

    fn check_counters_monotonic(&mut self) {
        if self.new.count("failed") < self.old.count("failed") {
            let error = Error::invalid(
                &self.new.at("failed").path(),
                self.new.count("failed"),
                "cannot decrease the failed counter",
            );
            self.errors.push(error);
        }
        let spec = &self.new.spec;
        let elastic = self.new.is_indexed()
            && spec.field("completions").is_present()
            && spec.field("completions").i64() == spec.field("parallelism").i64();
        if self.new.count("succeeded") < self.old.count("succeeded") && !elastic {
            let error = Error::invalid(
                &self.new.at("succeeded").path(),
                self.new.count("succeeded"),
                "cannot decrease the succeeded counter",
            );
            self.errors.push(error);
        }
    }

    fn check_times_immutable(&mut self) {
        let [completed, was_completed] = [&self.new, &self.old].map(|state| state.at("completionTime"));
        if completed.is_present() && was_completed.is_present() && !completed.same_as(&was_completed) {
            self.push_invalid("completionTime", IMMUTABLE);
        }
        let resumes = self.old.suspended && self.new.resumed;
        if self.has_changed("startTime")
            && self.old.at("startTime").is_present()
            && !self.new.spec.field("suspend").bool()
            && !resumes
        {
            let text = "field is immutable for unsuspended job once set";
            self.errors.push(invalid_or_null(&self.new.at("startTime"), text));
        }
    }
}

/// True if the first condition of this type has the status `True`.
pub(super) fn is_condition_true(object: &Object, kind: &str) -> bool {
    let conditions = object.at(&["status", "conditions"]);
    let first = conditions.items().find(|c| c.field("type").str() == kind);
    first.is_some_and(|c| c.field("status").str() == "True")
}
