//! LimitRange: defaults that follow from each other, and bounds that must leave room.

use std::collections::{BTreeSet, HashSet};

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object, Quantity, names};

use portico_registry::{DecodeStrategy, Moment, Strategy};
use portico_validation::Errors;
use portico_validation::checks;
use portico_validation::pod_spec::{container_resource_name, resource_name, round_to_milli};

const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

pub(crate) struct LimitRange;

impl DecodeStrategy for LimitRange {
    fn default(&self, object: &mut Object, _moment: Moment) {
        object.edit_each(&["spec", "limits"], |item| {
            for list in LISTS {
                round_to_milli(item, &[list]);
            }
            if item.str_at("type") == "Container" {
                for (to, from) in
                    [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")]
                {
                    inherit(item, to, from);
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

    fn prepare_create(&self, new: &mut Object, _moment: Moment) {
        if new.name().is_empty() && new.generate_name().is_empty() {
            new.set(&["metadata", "name"], uuid::Uuid::new_v4().to_string());
        }
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let mut kinds = HashSet::new();
        for item in new.at(&["spec", "limits"]).items() {
            let kind = item.field("type");
            limit_type(&kind, errors);
            if !kinds.insert(kind.str()) {
                errors.push(kind.duplicate());
            }
            validate_item(&item, kind.str(), errors);
        }
    }
}

/// Takes over what another list has and this one lacks.
fn inherit(item: &mut Object, to: &str, from: &str) {
    let there: Vec<(String, String)> =
        item.at(&[from]).entries().map(|(name, value)| (name.to_owned(), value.str().to_owned())).collect();
    for (name, value) in there {
        if item.at(&[to]).entry_str(&name).is_none() {
            item.set(&[to, &name], value);
        }
    }
}

fn limit_type(kind: &Cursor<'_>, errors: &mut Errors) {
    let before = errors.len();
    checks::follows(kind, names::qualified_name, errors);
    let known = matches!(kind.str(), "Pod" | "Container" | "PersistentVolumeClaim");
    if errors.len() == before && !kind.str().contains('/') && !known {
        errors.push(kind.invalid("must be a standard limit type or fully qualified"));
    }
}

fn validate_item(item: &Cursor<'_>, kind: &str, errors: &mut Errors) {
    for list in ["max", "min"] {
        names_of(&item.field(list), kind, errors);
    }
    for list in ["default", "defaultRequest"] {
        let here = item.field(list);
        if kind == "Pod" {
            if !here.is_empty() {
                errors.push(here.forbidden("may not be specified when `type` is 'Pod'"));
            }
        } else {
            names_of(&here, kind, errors);
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
        relations(item, resource, errors);
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

/// A ratio, and the one of two quantities, as upstream's ValidateLimitRange computes them.
#[expect(clippy::cast_precision_loss, reason = "upstream compares ratios as such numbers")]
fn ratios(ratio: &Quantity, max: &Quantity, min: &Quantity) -> (f64, f64) {
    if [ratio, max, min].iter().all(|quantity| quantity.value() < Quantity::MAX_MILLI) {
        let of = |quantity: &Quantity| quantity.milli_value() as f64;
        (of(ratio) / 1000.0, of(max) / of(min))
    } else {
        let of = |quantity: &Quantity| quantity.value() as f64;
        (of(ratio), of(max) / of(min))
    }
}

/// How the five values of one resource must stand to each other.
fn relations(item: &Cursor<'_>, resource: &str, errors: &mut Errors) {
    let [max, min, default, request, ratio] = LISTS.map(|list| item.field(list).field(resource).quantity());
    let [max, min, default, request] = [&max, &min, &default, &request].map(Option::as_ref);
    let mut more = |first: Option<&Quantity>,
                    second: Option<&Quantity>,
                    at: &str,
                    shown: Option<&Quantity>,
                    words: [&str; 2]| {
        if let (Some(first), Some(second)) = (first, second)
            && first > second
        {
            let text = format!("{} value {first} is greater than {} value {second}", words[0], words[1]);
            let path = item.path().child(at).key(resource);
            errors.push(Error::invalid(&path, shown.unwrap_or(first).to_string(), &text));
        }
    };
    more(min, max, "min", None, ["min", "max"]);
    more(min, request, "defaultRequest", request, ["min", "default request"]);
    more(request, max, "defaultRequest", None, ["default request", "max"]);
    more(request, default, "defaultRequest", None, ["default request", "default limit"]);
    more(min, default, "default", None, ["min", "default"]);
    more(default, max, "default", max, ["default", "max"]);
    let at = |list: &str| item.path().child(list).key(resource);
    if let Some(ratio) = ratio {
        let shown = ratio.to_string();
        if ratio < Quantity::whole(1) {
            errors.push(Error::invalid(
                &at("maxLimitRequestRatio"),
                &shown,
                &format!("ratio {ratio} is less than 1"),
            ));
        }
        if let (Some(max), Some(min)) = (max, min) {
            let (allowed, room) = ratios(&ratio, max, min);
            if allowed > room {
                let text = format!("ratio {ratio} is greater than max/min = {room:.6}");
                errors.push(Error::invalid(&at("maxLimitRequestRatio"), &shown, &text));
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
