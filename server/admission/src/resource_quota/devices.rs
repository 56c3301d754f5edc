//! ResourceClaims: how many, and how many devices of each class at the most.

use jiff::Timestamp;
use portico_machinery::{Cursor, Object, Quantity};

use super::counts::{is_main, one_of};
use super::evaluator::Evaluator;
use portico_registry::Write;
use portico_validation::pod_spec::totals::{Amounts, add};

const COUNT: &str = "count/resourceclaims.resource.k8s.io";
/// Behind the name of a class.
const OF_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// As many as can be allocated at all: what "all" may come to.
const MOST: i64 = 32;

pub(super) struct ResourceClaims;

impl Evaluator for ResourceClaims {
    fn handles(&self, write: &Write<'_>) -> bool {
        is_main(write)
    }

    fn counts(&self, resource: &str) -> bool {
        resource == COUNT || resource.ends_with(OF_CLASS)
    }

    fn usage(&self, claim: &Object, _now: Timestamp) -> Amounts {
        let mut usage = one_of([COUNT]);
        for request in claim.at(&["spec", "devices", "requests"]).items() {
            let exactly = request.field("exactly");
            if exactly.is_present() {
                add(&mut usage, &Amounts::from([devices(&exactly)]));
            } else {
                // One of them: the most that may be of each class.
                let mut most = Amounts::new();
                for (class, count) in request.field("firstAvailable").items().map(|one| devices(&one)) {
                    let kept = most.entry(class).or_default();
                    *kept = std::mem::take(kept).max(count);
                }
                add(&mut usage, &most);
            }
        }
        usage
    }
}

fn devices(request: &Cursor<'_>) -> (String, Quantity) {
    let count = match request.field("allocationMode").str() {
        "ExactCount" => request.field("count").i64().unwrap_or(0),
        "All" => MOST,
        _ => 0,
    };
    (format!("{}{OF_CLASS}", request.field("deviceClassName").str()), Quantity::whole(count))
}
