//! The status of a job: a finished job stays finished, and its parts say the same.
//!
//! Most rules are asked only when what they are about has changed, so that a status that an older server left behind can
//! still be written.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object, time};

use super::indexes;
use crate::strategies::workload::invalid_or_null;
use portico_validation::Errors;
use portico_validation::checks::IMMUTABLE;
use portico_validation::counts::none_negative;

/// A state of the status, with what the rules ask of it.
struct State<'a> {
    spec: Cursor<'a>,
    status: Cursor<'a>,
    complete: bool,
    failed: bool,
    failing: bool,
    succeeding: bool,
    suspended: bool,
    resumed: bool,
}

impl<'a> State<'a> {
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

    fn finished(&self) -> bool {
        self.complete || self.failed
    }

    fn at(&self, field: &'static str) -> Cursor<'a> {
        self.status.field(field)
    }

    fn count(&self, field: &'static str) -> i64 {
        self.at(field).i64().unwrap_or(0)
    }

    fn indexed(&self) -> bool {
        self.spec.field("completionMode").str() == "Indexed"
    }
}

/// The new state, the old one, and where diagnostics go.
struct StatusValidator<'a, 'e> {
    new: State<'a>,
    old: State<'a>,
    errors: &'e mut Errors,
}

pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    const COUNTS: [&str; 5] = ["active", "succeeded", "failed", "ready", "terminating"];
    none_negative(&new.at(&["status"]), &COUNTS, errors);
    let mut validate = StatusValidator { new: State::of(new), old: State::of(old), errors };
    validate.uncounted_pods();
    validate.completion();
    validate.end_conditions();
    validate.finished_job();
    validate.index_lists();
    validate.counters();
    validate.success_criteria();
    validate.what_stays();
}

impl<'a> StatusValidator<'a, '_> {
    fn changed(&self, field: &'static str) -> bool {
        !self.new.at(field).same_as(&self.old.at(field))
    }

    fn changed_flag(&self, flag: impl Fn(&State<'a>) -> bool) -> bool {
        flag(&self.new) != flag(&self.old)
    }

    fn conditions(&mut self, text: &str) {
        let error = self.new.at("conditions").invalid_unprinted(text);
        self.errors.push(error);
    }

    fn invalid(&mut self, field: &'static str, text: &str) {
        let error = self.new.at(field).invalid(text);
        self.errors.push(error);
    }

    fn required(&mut self, field: &'static str, text: &str) {
        let error = self.new.at(field).required(text);
        self.errors.push(error);
    }

    fn uncounted_pods(&mut self) {
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

    fn completion(&mut self) {
        let completed = self.changed_flag(|s| s.complete);
        if (completed || self.changed_flag(|s| s.failed)) && self.new.complete && self.new.failed {
            self.conditions("cannot set Complete=True and Failed=true conditions");
        }
        if (completed || self.changed_flag(|s| s.failing)) && self.new.complete && self.new.failing {
            self.conditions("cannot set Complete=True and FailureTarget=true conditions");
        }
        if completed || self.changed("completionTime") {
            match (self.new.at("completionTime").is_present(), self.new.complete) {
                (true, false) => self.invalid(
                    "completionTime",
                    "cannot set completionTime when there is no Complete=True condition",
                ),
                (false, true) => {
                    self.required("completionTime", "completionTime is required for Complete jobs");
                }
                _ => {}
            }
        }
        if self.changed("startTime") || self.changed("completionTime") {
            let at = |field| time::parse(self.new.at(field).str());
            if at("completionTime").zip(at("startTime")).is_some_and(|(end, start)| end < start) {
                self.invalid("completionTime", "must be equal to or after `startTime`");
            }
        }
    }

    fn end_conditions(&mut self) {
        if (self.changed_flag(|s| s.failed) || self.changed("failedIndexes"))
            && self.new.failed
            && !self.new.failing
        {
            self.conditions("cannot set Failed=True condition without the FailureTarget=true condition");
        }
        if (self.changed_flag(|s| s.complete) || self.changed_flag(|s| s.succeeding))
            && self.new.complete
            && !self.new.succeeding
        {
            self.conditions(
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            );
        }
    }

    fn finished_job(&mut self) {
        let ended = self.changed_flag(State::finished);
        let finished = self.new.finished();
        if (ended || self.changed("active")) && finished && self.new.count("active") > 0 {
            self.invalid("active", "active>0 is invalid for finished job");
        }
        let never_ran =
            self.new.spec.field("suspend").bool() && self.new.spec.field("completions").i64() == Some(0);
        if (ended || self.changed("startTime"))
            && finished
            && !self.new.at("startTime").is_present()
            && !never_ran
        {
            self.required("startTime", "startTime is required for finished job");
        }
        let uncounted = self.new.at("uncountedTerminatedPods");
        let any = ["succeeded", "failed"].iter().any(|list| !uncounted.field(list).is_empty());
        if (ended || self.changed("uncountedTerminatedPods")) && finished && any {
            self.invalid("uncountedTerminatedPods", "must be empty for finished job");
        }
    }

    /// Reports a list of indexes that was changed and cannot be read.
    fn index_format(&mut self, field: &'static str, completions: i64) {
        if !self.changed(field) {
            return;
        }
        if let Err(error) = indexes::count(self.new.at(field).str(), completions) {
            self.invalid(field, &format!("error parsing {field}: {error}"));
        }
    }

    fn index_lists(&mut self) {
        let indexed = self.new.indexed();
        let per_index = self.new.spec.field("backoffLimitPerIndex").is_present();
        let completions = self.new.spec.field("completions").i64();
        if let Some(completions) = completions {
            self.index_format("completedIndexes", completions);
            if per_index {
                self.index_format("failedIndexes", completions);
            }
        }
        let listed = !self.new.at("completedIndexes").str().is_empty();
        if self.changed("completedIndexes") && !indexed && listed {
            self.invalid(
                "completedIndexes",
                "cannot set non-empty completedIndexes when non-indexed completion mode",
            );
        }
        if self.changed("failedIndexes") && !per_index && self.new.at("failedIndexes").is_present() {
            self.invalid(
                "failedIndexes",
                "cannot set non-null failedIndexes when backoffLimitPerIndex is null",
            );
        }
        if (self.changed("failedIndexes") || self.changed("completedIndexes"))
            && let Some(completions) = completions
            && let Some(index) = indexes::overlap(
                self.new.at("completedIndexes").str(),
                self.new.at("failedIndexes").str(),
                completions,
            )
        {
            let text = format!("failedIndexes and completedIndexes overlap at index: {index}");
            self.invalid("failedIndexes", &text);
        }
    }

    fn counters(&mut self) {
        let ended = self.changed_flag(State::finished);
        if (ended || self.changed("terminating")) && self.new.finished() && self.new.count("terminating") > 0
        {
            self.invalid("terminating", "terminating>0 is invalid for finished job");
        }
        if (self.changed("ready") || self.changed("active"))
            && self.new.at("ready").is_present()
            && self.new.count("ready") > self.new.count("active")
        {
            self.invalid("ready", "cannot set more ready pods than active");
        }
    }

    fn success_criteria(&mut self) {
        let State { complete, failed, failing, succeeding, .. } = self.new;
        if succeeding && failed {
            self.conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions");
        }
        if succeeding && failing {
            self.conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
        }
        if self.new.spec.field("successPolicy").is_present() && complete && !succeeding {
            self.conditions(
                "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
            );
        }
        if self.old.complete && !self.old.succeeding && succeeding {
            self.conditions(
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
            );
        }
    }

    fn what_stays(&mut self) {
        for (name, was, is) in [
            ("Failed", self.old.failed, self.new.failed),
            ("Complete", self.old.complete, self.new.complete),
            ("FailureTarget", self.old.failing, self.new.failing),
        ] {
            if was && !is {
                self.conditions(&format!("cannot disable the terminal {name}=True condition"));
            }
        }
        if self.old.succeeding && !self.new.succeeding {
            self.conditions("cannot disable the SuccessCriteriaMet=True condition");
        }
        self.counters_stay();
        self.times_stay();
    }

    fn counters_stay(&mut self) {
        if self.new.count("failed") < self.old.count("failed") {
            let error = Error::invalid(
                &self.new.at("failed").path(),
                self.new.count("failed"),
                "cannot decrease the failed counter",
            );
            self.errors.push(error);
        }
        let spec = &self.new.spec;
        let elastic = self.new.indexed()
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

    fn times_stay(&mut self) {
        let [completed, was_completed] = [&self.new, &self.old].map(|state| state.at("completionTime"));
        if completed.is_present() && was_completed.is_present() && !completed.same_as(&was_completed) {
            self.invalid("completionTime", IMMUTABLE);
        }
        let resumes = self.old.suspended && self.new.resumed;
        if self.changed("startTime")
            && self.old.at("startTime").is_present()
            && !self.new.spec.field("suspend").bool()
            && !resumes
        {
            let text = "field is immutable for unsuspended job once set";
            self.errors.push(invalid_or_null(&self.new.at("startTime"), text));
        }
    }
}

/// Whether the first condition of this type holds.
pub(super) fn holds(object: &Object, kind: &str) -> bool {
    let conditions = object.at(&["status", "conditions"]);
    let first = conditions.items().find(|c| c.field("type").str() == kind);
    first.is_some_and(|c| c.field("status").str() == "True")
}
