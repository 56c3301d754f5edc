//! PodDisruptionBudget: minimum of available pods, or maximum of unavailable pods.

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

use portico_registry::{DecodeStrategy, RequestTime, Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::counts::{all_not_negative, at_most_100_percent, int_or_percent};
use portico_validation::{checks, label_selector, validate_conditions};

/// Label key that v1beta1 added to a selector that matches no pods.
const EMPTY_SELECTOR_KEY: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";

pub(crate) struct PodDisruptionBudget;

impl DecodeStrategy for PodDisruptionBudget {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        drop_empty_selector_key(object);
    }
}

impl Strategy for PodDisruptionBudget {
    fn compares_metadata_again(&self, _is_status: bool) -> bool {
        false
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        let (least, most) = (spec.field("minAvailable"), spec.field("maxUnavailable"));
        if least.is_present() && most.is_present() {
            errors.push(spec.invalid("minAvailable and maxUnavailable cannot be both set"));
        }
        for share in [least, most] {
            int_or_percent(&share, errors);
            at_most_100_percent(&share, errors);
        }
        label_selector(&spec.field("selector"), errors);
        checks::one_of(
            &spec.field("unhealthyPodEvictionPolicy"),
            &["AlwaysAllow", "IfHealthyBudget"],
            errors,
        );
    }
}

impl SubresourceStrategy for PodDisruptionBudget {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        const COUNTS: [&str; 4] = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
        let status = new.at(&["status"]);
        validate_conditions(&status.field("conditions"), errors);
        all_not_negative(&status, &COUNTS, errors);
    }
}

impl TableStrategy for PodDisruptionBudget {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        let field = match function {
            "poddisruptionbudget-min-available" => "minAvailable",
            _ => "maxUnavailable",
        };
        Cell::text(share(&object.at(&["spec", field])))
    }
}

fn share(share: &Cursor<'_>) -> String {
    match (share.opt_str(), share.i64()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(number)) => number.to_string(),
        (None, None) => "N/A".to_owned(),
    }
}

/// Removes the key of v1beta1 from the selector, unless the selector has nothing else.
fn drop_empty_selector_key(object: &mut Object) {
    const EXPRESSIONS: [&str; 3] = ["spec", "selector", "matchExpressions"];
    let is_mark = |e: &Cursor<'_>| e.field("key").str() == EMPTY_SELECTOR_KEY;
    let expressions = || object.at(&EXPRESSIONS).items();
    let is_only_expression = expressions().count() == 1
        && object.at(&["spec", "selector", "matchLabels"]).is_empty()
        && expressions().all(|e| is_mark(&e) && e.field("operator").str() == "Exists");
    if is_only_expression || !expressions().any(|e| is_mark(&e)) {
        return;
    }
    let remaining: Vec<_> =
        expressions().filter(|e| !is_mark(e)).filter_map(|e| e.node()).map(|node| node.0).collect();
    object.set(&EXPRESSIONS, remaining);
}
