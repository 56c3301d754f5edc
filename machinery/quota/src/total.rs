//! What all objects of a kind need together (upstream's `CalculateUsageStats`).

use std::borrow::Borrow;

use jiff::Timestamp;
use portico_machinery::{Object, Quantity};
use portico_validation::pod_spec::totals::{Amounts, add};

use crate::evaluator::Evaluator;
use crate::requirement::Requirement;
use crate::scopes::matches;

/// What those of the objects that are in all of these scopes need of these resources; nothing of a resource is zero.
#[must_use]
pub fn total<O: Borrow<Object>>(
    evaluator: &dyn Evaluator,
    resources: &[&str],
    scopes: &[Requirement<'_>],
    objects: impl IntoIterator<Item = O>,
    now: Timestamp,
) -> Amounts {
    let mut sums: Amounts = resources.iter().map(|name| ((*name).to_owned(), Quantity::ZERO)).collect();
    for object in objects {
        let object = object.borrow();
        if matches(scopes, object, evaluator) {
            add(&mut sums, &evaluator.usage(object, now));
        }
    }
    sums.retain(|name, _| resources.contains(&name.as_str()));
    sums
}
