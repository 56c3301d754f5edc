//! LimitRange: defaults derived from other limits, and validation of limits against each other.

use std::collections::{BTreeSet, HashSet};

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object, Quantity, names};

use portico_registry::{DecodeStrategy, RequestTime, Strategy};
use portico_validation::Errors;
use portico_validation::checks;
use portico_validation::pod_spec::{container_resource_name, resource_name, round_to_milli};

const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

pub(crate) struct LimitRange;

impl DecodeStrategy for LimitRange {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        object.edit_each(&["spec", "limits"], |item| {
            for list in LISTS {
                round_to_milli(item, &[list]);
            }
            if item.str_at("type") == "Container" {
                for (target, source) in
                    [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")]
                {
                    copy_missing(item, target, source);
                }
            }
        });
    }
}

impl Strategy for LimitRange {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn compares_metadata_again(&self, _is_status: bool) -> bool {
        false
    }

    fn prepare_create(&self, new: &mut Object, _moment: RequestTime) {
        if new.name().is_empty() && new.generate_name().is_empty() {
            new.set(&["metadata", "name"], uuid::Uuid::new_v4().to_string());
        }
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let mut kinds = HashSet::new();
        for item in new.at(&["spec", "limits"]).items() {
            let kind = item.field("type");
            validate_limit_type(&kind, errors);
            if !kinds.insert(kind.str()) {
                errors.push(kind.duplicate());
            }
            validate_item(&item, kind.str(), errors);
        }
    }
}

/// Copies the entries of list `source` that list `target` lacks.
fn copy_missing(item: &mut Object, target: &str, source: &str) {
    let defaults: Vec<(String, String)> =
        item.at(&[source]).entries().map(|(name, value)| (name.to_owned(), value.str().to_owned())).collect();
    for (name, value) in defaults {
        if item.at(&[target]).entry_str(&name).is_none() {
            item.set(&[target, &name], value);
        }
    }
}

fn validate_limit_type(kind: &Cursor<'_>, errors: &mut Errors) {
    let before = errors.len();
    checks::matches_rule(kind, names::qualified_name, errors);
    let is_standard = matches!(kind.str(), "Pod" | "Container" | "PersistentVolumeClaim");
    if errors.len() == before && !kind.str().contains('/') && !is_standard {
        errors.push(kind.invalid("must be a standard limit type or fully qualified"));
    }
}

fn validate_item(item: &Cursor<'_>, kind: &str, errors: &mut Errors) {
    for list in ["max", "min"] {
        names_of(&item.field(list), kind, errors);
    }
    for list in ["default", "defaultRequest"] {
        let amounts = item.field(list);
        if kind == "Pod" {
            if !amounts.is_empty() {
                errors.push(amounts.forbidden("may not be specified when `type` is 'Pod'"));
            }
        } else {
            names_of(&amounts, kind, errors);
        }
    }
    if kind == "PersistentVolumeClaim" {
        let has = |list: &'static str| item.field(list).entry_str("storage").is_some();
        if !has("min") && !has("max") {
            let text = "either minimum or maximum storage value is required, but neither was provided";
            errors.push(Error::required(&item.path().child("limits"), text));
        }
    }
    names_of(&item.field("maxLimitRequestRatio"), kind, errors);
    let mut resources = BTreeSet::new();
    for list in LISTS {
        resources.extend(item.field(list).entries().map(|(name, _)| name));
    }
    for resource in resources {
        validate_relations(item, resource, errors);
    }
}

fn names_of(list: &Cursor<'_>, kind: &str, errors: &mut Errors) {
    for (name, value) in list.entries() {
        if matches!(kind, "Pod" | "Container") {
            container_resource_name(name, &value.path(), errors);
        } else {
            resource_name(name, &value.path(), errors);
        }
    }
}

/// Returns a ratio, and the ratio of two quantities, computed as in upstream's ValidateLimitRange.
#[expect(clippy::cast_precision_loss, reason = "upstream compares ratios as such numbers")]
fn ratios(ratio: &Quantity, max: &Quantity, min: &Quantity) -> (f64, f64) {
    if [ratio, max, min].iter().all(|quantity| quantity.value() < Quantity::MAX_MILLI) {
        let amount_of = |quantity: &Quantity| quantity.milli_value() as f64;
        (amount_of(ratio) / 1000.0, amount_of(max) / amount_of(min))
    } else {
        let amount_of = |quantity: &Quantity| quantity.value() as f64;
        (amount_of(ratio), amount_of(max) / amount_of(min))
    }
}

/// Validates the five values of one resource against each other.
fn validate_relations(item: &Cursor<'_>, resource: &str, errors: &mut Errors) {
    let [max, min, default, request, ratio] = LISTS.map(|list| item.field(list).field(resource).quantity());
    let [max, min, default, request] = [&max, &min, &default, &request].map(Option::as_ref);
    let mut check_at_most = |first: Option<&Quantity>,
                             second: Option<&Quantity>,
                             at: &str,
                             printed: Option<&Quantity>,
                             names: [&str; 2]| {
        if let (Some(first), Some(second)) = (first, second)
            && first > second
        {
            let text = format!("{} value {first} is greater than {} value {second}", names[0], names[1]);
            let path = item.path().child(at).key(resource);
            errors.push(Error::invalid(&path, printed.unwrap_or(first).to_string(), &text));
        }
    };
    check_at_most(min, max, "min", None, ["min", "max"]);
    check_at_most(min, request, "defaultRequest", request, ["min", "default request"]);
    check_at_most(request, max, "defaultRequest", None, ["default request", "max"]);
    check_at_most(request, default, "defaultRequest", None, ["default request", "default limit"]);
    check_at_most(min, default, "default", None, ["min", "default"]);
    check_at_most(default, max, "default", max, ["default", "max"]);
    let at = |list: &str| item.path().child(list).key(resource);
    if let Some(ratio) = ratio {
        let printed = ratio.to_string();
        if ratio < Quantity::whole(1) {
            errors.push(Error::invalid(
                &at("maxLimitRequestRatio"),
                &printed,
                &format!("ratio {ratio} is less than 1"),
            ));
        }
        if let (Some(max), Some(min)) = (max, min) {
            let (allowed, room) = ratios(&ratio, max, min);
            if allowed > room {
                let text = format!("ratio {ratio} is greater than max/min = {room:.6}");
                errors.push(Error::invalid(&at("maxLimitRequestRatio"), &printed, &text));
            }
        }
    }
    let overcommitted = !resource.contains('/') && !resource.starts_with("hugepages-");
    if let (Some(default), Some(request)) = (default, request)
        && !overcommitted
        && default != request
    {
        let text =
            format!("default value {default} must equal to defaultRequest value {request} in {resource}");
        errors.push(Error::invalid(&at("defaultRequest"), request.to_string(), &text));
    }
}
