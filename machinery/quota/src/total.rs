//! Total usage of all objects of a kind (upstream's `CalculateUsageStats`).

use std::borrow::Borrow;

use jiff::Timestamp;
use portico_machinery::{Object, Quantity};
use portico_validation::pod_spec::totals::{ResourceList, add_resources};

use crate::evaluator::Evaluator;
use crate::requirement::ScopeRequirement;
use crate::scopes::matches_scopes;

/// Returns the usage of these quota resources by the objects that are in all scopes. A resource that is not used is zero.
#[must_use]
pub fn total_usage<O: Borrow<Object>>(
    evaluator: &dyn Evaluator,
    resources: &[&str],
    scopes: &[ScopeRequirement<'_>],
    objects: impl IntoIterator<Item = O>,
    now: Timestamp,
) -> ResourceList {
    let mut sums: ResourceList = resources.iter().map(|name| ((*name).to_owned(), Quantity::ZERO)).collect();
    for object in objects {
        let object = object.borrow();
        if matches_scopes(scopes, object, evaluator) {
            add_resources(&mut sums, &evaluator.usage(object, now));
        }
    }
    sums.retain(|name, _| resources.contains(&name.as_str()));
    sums
}
