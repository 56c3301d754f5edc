//! PodDisruptionBudget: how many pods must stay, or how many may go.

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

use portico_registry::{DecodeStrategy, Moment, Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::counts::{at_most_all, int_or_percent, none_negative};
use portico_validation::{checks, label_selector, validate_conditions};

/// A key by which v1beta1 marked a selector that matches nothing.
const MATCHES_NOTHING: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";

pub(crate) struct PodDisruptionBudget;

impl DecodeStrategy for PodDisruptionBudget {
    fn default(&self, object: &mut Object, _moment: Moment) {
        drop_mark(object);
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
            at_most_all(&share, errors);
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
        none_negative(&status, &COUNTS, errors);
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

/// The mark goes, unless it is all that the selector has.
fn drop_mark(object: &mut Object) {
    const EXPRESSIONS: [&str; 3] = ["spec", "selector", "matchExpressions"];
    let is_mark = |e: &Cursor<'_>| e.field("key").str() == MATCHES_NOTHING;
    let expressions = || object.at(&EXPRESSIONS).items();
    let alone = expressions().count() == 1
        && object.at(&["spec", "selector", "matchLabels"]).is_empty()
        && expressions().all(|e| is_mark(&e) && e.field("operator").str() == "Exists");
    if alone || !expressions().any(|e| is_mark(&e)) {
        return;
    }
    let kept: Vec<_> =
        expressions().filter(|e| !is_mark(e)).filter_map(|e| e.node()).map(|node| node.0).collect();
    object.set(&EXPRESSIONS, kept);
}
