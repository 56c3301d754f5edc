//! Comparison of requirements beyond the type: reports those that became stricter.

use serde_json::Value;

use crate::structural::model::{Bound, Checks, SchemaNode};
use crate::structural::printed;

/// Reports requirements that became stricter; `node` is the new node with the checks.
pub(super) fn compare(old: &Checks, new: &Checks, node: &SchemaNode, report: &mut impl FnMut(String)) {
    required(old, new, node, report);
    enumeration(&old.enumeration, &new.enumeration, report);
    bounds(old, new, report);
    sizes(old, new, report);
    texts(old, new, report);
    if (&old.all_of, &old.any_of, &old.one_of, &old.not) != (&new.all_of, &new.any_of, &new.one_of, &new.not)
    {
        report("one of allOf, anyOf, oneOf and not changes: stored values may become invalid".to_owned());
    }
}

fn required(old: &Checks, new: &Checks, node: &SchemaNode, report: &mut impl FnMut(String)) {
    for name in new.required.iter().filter(|name| !old.required.contains(name)) {
        if node.property(name).is_none_or(|field| field.default.is_none()) {
            report(format!("requires {name}, which has no default: objects without it are refused"));
        }
    }
}

fn enumeration(old: &[Value], new: &[Value], report: &mut impl FnMut(String)) {
    if new.is_empty() {
        return;
    }
    if old.is_empty() {
        return report("is restricted to listed values".to_owned());
    }
    for removed in old.iter().filter(|value| !new.contains(value)) {
        report(format!("no longer allows {}", printed::print_value(removed)));
    }
}

fn bounds(old: &Checks, new: &Checks, report: &mut impl FnMut(String)) {
    let lower = |a: Bound, b: Bound| a.value < b.value || (a.value == b.value && a.exclusive && !b.exclusive);
    let higher =
        |a: Bound, b: Bound| a.value > b.value || (a.value == b.value && a.exclusive && !b.exclusive);
    if let Some(now) = new.maximum.filter(|now| old.maximum.is_none_or(|before| lower(*now, before))) {
        report(format!("has a lower maximum, {}", now.value));
    }
    if let Some(now) = new.minimum.filter(|now| old.minimum.is_none_or(|before| higher(*now, before))) {
        report(format!("has a higher minimum, {}", now.value));
    }
    if let Some(now) = new.multiple_of.filter(|now| old.multiple_of != Some(*now)) {
        report(format!("must be a multiple of {now}"));
    }
}

fn sizes(old: &Checks, new: &Checks, report: &mut impl FnMut(String)) {
    let maximums = [
        ("maxLength", old.max_length, new.max_length),
        ("maxItems", old.max_items, new.max_items),
        ("maxProperties", old.max_properties, new.max_properties),
    ];
    for (name, before, now) in maximums {
        if let Some(now) = now.filter(|now| before.is_none_or(|before| *now < before)) {
            report(format!("has a lower {name}, {now}"));
        }
    }
    let minimums = [
        ("minLength", old.min_length, new.min_length),
        ("minItems", old.min_items, new.min_items),
        ("minProperties", old.min_properties, new.min_properties),
    ];
    for (name, before, now) in minimums {
        if let Some(now) = now.filter(|now| *now > before.unwrap_or(0)) {
            report(format!("has a higher {name}, {now}"));
        }
    }
}

fn texts(old: &Checks, new: &Checks, report: &mut impl FnMut(String)) {
    if let Some(now) = new.pattern.as_ref().filter(|now| old.pattern.as_ref() != Some(now)) {
        report(format!("must match another pattern, {}", now.text()));
    }
    if new.format.is_some() && new.format != old.format {
        report("format changes: stored values may become invalid".to_owned());
    }
}
