//! PriorityLevelConfiguration: seats of a priority level, and queuing or rejection when they are in use.

use portico_machinery::field::{Error, Path};
use portico_machinery::{Cursor, Object};

use portico_registry::{DecodeStrategy, RequestTime, Strategy, SubresourceStrategy};
use portico_validation::Errors;

const DEFAULT_SHARES: i64 = 30;
const QUEUES_MAX: i64 = 10_000_000;
/// Maximum entropy of shuffle sharding in bits. Upstream uses hashes of 64 bits and keeps a margin.
const ENTROPY_MAX: u32 = 60;
/// Annotation with which older versions distinguished zero from an absent value. This version does not allow it.
const PRESERVE: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

pub(crate) struct PriorityLevel;

impl DecodeStrategy for PriorityLevel {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        object.edit(&["spec", "limited"], |limited| {
            if !limited.at(&["nominalConcurrencyShares"]).is_present() {
                limited.set(&["nominalConcurrencyShares"], DEFAULT_SHARES);
            }
        });
    }
}

impl Strategy for PriorityLevel {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn compares_metadata_again(&self, _is_status: bool) -> bool {
        false
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        if new.annotation(PRESERVE).is_some() {
            let path = Path::new("metadata.annotations");
            errors.push(Error::forbidden(&path, &format!("annotation '{PRESERVE}' is forbidden")));
        }
        validate_spec(new, errors);
        let name = new.name();
        let (text, part): (String, &[&str]) = if name == "exempt" {
            let text = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value";
            (text.to_owned(), &["spec", "exempt"])
        } else {
            (format!("spec of '{name}' must equal the fixed value"), &[])
        };
        super::validate_mandatory(new, "PriorityLevelConfiguration", &text, part, errors);
        super::validate_status(new, errors);
    }
}

impl SubresourceStrategy for PriorityLevel {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        super::validate_status(new, errors);
    }
}

fn validate_spec(new: &Object, errors: &mut Errors) {
    let spec = new.at(&["spec"]);
    let (kind, limited, exempt) = (spec.field("type"), spec.field("limited"), spec.field("exempt"));
    if (new.name() == "exempt") != (kind.str() == "Exempt") {
        errors.push(kind.invalid("must be 'Exempt' if and only if `name` is 'exempt'"));
    }
    match kind.str() {
        "Exempt" => {
            if limited.is_present() {
                errors.push(limited.forbidden("must be nil if the type is not Limited"));
            }
            if exempt.is_present() {
                validate_shares(&exempt, errors);
            }
        }
        "Limited" => {
            if exempt.is_present() {
                errors.push(exempt.forbidden("must be nil if the type is Limited"));
            }
            if limited.is_present() {
                validate_limits(&limited, errors);
            } else {
                errors.push(limited.required("must not be empty when type is Limited"));
            }
        }
        "" => errors.push(kind.required("")),
        _ => errors.push(kind.not_supported(&["Exempt", "Limited"])),
    }
}

fn validate_shares(limited: &Cursor<'_>, errors: &mut Errors) {
    let (shares, percent) = (limited.field("nominalConcurrencyShares"), limited.field("lendablePercent"));
    if shares.i64().is_some_and(|n| n < 0) {
        errors.push(shares.invalid("must be a non-negative integer"));
    }
    if percent.i64().is_some_and(|n| !(0..=100).contains(&n)) {
        errors.push(percent.invalid("must be between 0 and 100, inclusive"));
    }
}

fn validate_limits(limited: &Cursor<'_>, errors: &mut Errors) {
    validate_shares(limited, errors);
    let borrowing = limited.field("borrowingLimitPercent");
    if borrowing.i64().is_some_and(|n| n < 0) {
        errors.push(borrowing.invalid("if specified, must be a non-negative integer"));
    }
    let response = limited.field("limitResponse");
    let (kind, queuing) = (response.field("type"), response.field("queuing"));
    match kind.str() {
        "Reject" if queuing.is_present() => {
            errors.push(queuing.forbidden("must be nil if limited.limitResponse.type is not Limited"));
        }
        "Reject" => {}
        "Queue" if queuing.is_present() => validate_queues(&queuing, errors),
        "Queue" => {
            errors.push(queuing.required("must not be empty if limited.limitResponse.type is Limited"));
        }
        "" => errors.push(kind.required("")),
        _ => errors.push(kind.not_supported(&["Queue", "Reject"])),
    }
}

fn validate_queues(queuing: &Cursor<'_>, errors: &mut Errors) {
    let [limit, queues, hand] = ["queueLengthLimit", "queues", "handSize"].map(|field| queuing.field(field));
    let number = |at: &Cursor<'_>| at.i64().unwrap_or(0);
    for at in [&limit, &queues] {
        if number(at) <= 0 {
            errors.push(at.invalid("must be positive"));
        }
    }
    let (deck, size) = (number(&queues), number(&hand));
    if deck > QUEUES_MAX {
        errors.push(queues.invalid(&format!("must not be greater than {QUEUES_MAX}")));
    }
    if size <= 0 {
        errors.push(hand.invalid("must be positive"));
    } else if size > deck {
        errors.push(hand.invalid(&format!("should not be greater than queues ({deck})")));
    } else if entropy_bits(deck, size) > ENTROPY_MAX {
        errors.push(hand.invalid(&format!(
            "required entropy bits of deckSize {deck} and handSize {size} should not be greater than {ENTROPY_MAX}"
        )));
    }
}

/// Returns the number of bits that select a hand: the logarithm of the falling factorial, rounded up.
fn entropy_bits(deck: i64, hand: i64) -> u32 {
    let bits: f64 = (0..hand.min(i64::from(ENTROPY_MAX) + 1)).map(|card| ((deck - card) as f64).log2()).sum();
    // The sum of few logarithms is never negative and far below the limits of both types.
    bits.ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_matches_upstream() {
        for (deck, hand, fits) in
            [(64, 8, true), (128, 6, true), (512, 6, true), (512, 8, false), (1, 1, true)]
        {
            assert_eq!(entropy_bits(deck, hand) <= ENTROPY_MAX, fits, "{deck} {hand}");
        }
    }
}
