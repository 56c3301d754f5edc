//! Lease and LeaseCandidate.

use portico_gostd::apimachinery::validation::qualified_name;
use portico_machinery::Object;
use portico_machinery::field::Error;
use portico_machinery::object::Cursor;
use portico_registry::Strategy;
use portico_validation::Errors;
use semver::Version;

/// Election strategy that Kubernetes defines.
const OLDEST_EMULATION_VERSION: &str = "OldestEmulationVersion";
const NO_VERSION: &str = "must be a valid semantic version";

pub(crate) struct Lease;

impl Strategy for Lease {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        let (duration, transitions) =
            (new.at(&["spec", "leaseDurationSeconds"]), new.at(&["spec", "leaseTransitions"]));
        if let Some(seconds) = duration.i64().filter(|n| *n <= 0) {
            errors.push(Error::invalid(&duration.path(), seconds, "must be greater than 0"));
        }
        if let Some(count) = transitions.i64().filter(|n| *n < 0) {
            errors.push(Error::invalid(&transitions.path(), count, "must be greater than or equal to 0"));
        }
        let (strategy, preferred) = (new.at(&["spec", "strategy"]), new.at(&["spec", "preferredHolder"]));
        if strategy.is_present() {
            check_strategy(&strategy, errors);
        }
        if !preferred.str().is_empty() && strategy.str().is_empty() {
            errors.push(preferred.forbidden("may only be specified if `strategy` is defined"));
        }
    }
}

pub(crate) struct LeaseCandidate;

impl Strategy for LeaseCandidate {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        let (emulation, binary) = (new.at(&["spec", "emulationVersion"]), new.at(&["spec", "binaryVersion"]));
        let strategy = new.at(&["spec", "strategy"]);
        let (emulated, built) = (validate_version(&emulation, errors), validate_version(&binary, errors));
        if !binary.str().is_empty() && !emulation.str().is_empty() && built.cmp_precedence(&emulated).is_lt()
        {
            errors.push(binary.invalid("must be greater than or equal to `emulationVersion`"));
        }
        if strategy.str().is_empty() {
            return;
        }
        if strategy.str() == OLDEST_EMULATION_VERSION && emulated == ZERO {
            let text = "must be specified when `strategy` is 'OldestEmulationVersion'";
            errors.push(emulation.required(text));
        }
        check_strategy(&strategy, errors);
    }
}

const ZERO: Version = Version::new(0, 0, 0);

/// Parses a version. Adds an error and returns 0.0.0 if it is invalid.
fn validate_version(at: &Cursor<'_>, errors: &mut Errors) -> Version {
    if at.str().is_empty() {
        return ZERO;
    }
    at.str().parse().unwrap_or_else(|_| {
        errors.push(at.invalid(NO_VERSION));
        ZERO
    })
}

/// Validates a strategy. Mirrors upstream's `ValidateCoordinatedLeaseStrategy`, which repeats the field name in the path.
fn check_strategy(at: &Cursor<'_>, errors: &mut Errors) {
    let (path, strategy) = (at.path().child("strategy"), at.str());
    if strategy.contains('/') {
        errors.extend(qualified_name(strategy).iter().map(|text| Error::invalid(&path, strategy, text)));
    } else if strategy != OLDEST_EMULATION_VERSION {
        errors.push(Error::not_supported(&path, strategy, &[OLDEST_EMULATION_VERSION]));
    }
}
