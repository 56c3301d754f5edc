//! Lease: two numbers to check, two fields of a closed gate to drop.

use portico_machinery::Object;
use portico_machinery::field::Error;

use portico_registry::{Moment, Strategy};
use portico_validation::Errors;

/// Fields behind a gate that is off: kept only once stored.
const GATED: [&str; 2] = ["strategy", "preferredHolder"];

pub(crate) struct Lease;

impl Strategy for Lease {
    fn prepare_create(&self, new: &mut Object, _moment: Moment) {
        for field in GATED {
            new.remove(&["spec", field]);
        }
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: Moment) {
        for field in GATED {
            if !old.at(&["spec", field]).is_present() {
                new.remove(&["spec", field]);
            }
        }
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let (duration, transitions) =
            (new.at(&["spec", "leaseDurationSeconds"]), new.at(&["spec", "leaseTransitions"]));
        if let Some(seconds) = duration.i64().filter(|n| *n <= 0) {
            errors.push(Error::invalid(&duration.path(), seconds, "must be greater than 0"));
        }
        if let Some(count) = transitions.i64().filter(|n| *n < 0) {
            errors.push(Error::invalid(&transitions.path(), count, "must be greater than or equal to 0"));
        }
    }
}
