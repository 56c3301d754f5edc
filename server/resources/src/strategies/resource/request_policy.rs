//! Validation of the request policy of a device capacity: a list of amounts, or a range with a step.

use std::collections::HashSet;

use portico_machinery::Cursor;
use portico_machinery::field::Error;
use portico_machinery::quantity::Quantity;

use portico_validation::Errors;
use portico_validation::checks;

const VALUES_MAX: usize = 10;
const ONE_POLICY: &str =
    "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";

/// Validates the policy of a capacity. `multiple`: several claims can share the device.
pub(super) fn validate(capacity: &Cursor<'_>, multiple: bool, errors: &mut Errors) {
    let policy = capacity.field("requestPolicy");
    if !policy.is_present() {
        return;
    }
    if !multiple {
        errors.push(policy.forbidden("allowMultipleAllocations must be true"));
        return;
    }
    let capacity_value = capacity.field("value").quantity().unwrap_or_default();
    let (values, range) = (policy.field("validValues"), policy.field("validRange"));
    let default = |list: &str, errors: &mut Errors| {
        let default = policy.field("default");
        if !default.is_present() {
            errors.push(default.required(&format!("required when {list} is defined")));
        }
        default.quantity()
    };
    match (!values.is_empty(), range.is_present()) {
        (true, true) => errors.push(policy.forbidden(ONE_POLICY)),
        (true, false) => {
            if let Some(default) = default("validValues", errors) {
                one_of(&values, &default, &capacity_value, errors);
            }
        }
        (false, true) => {
            if let Some(default) = default("validRange", errors) {
                check_range(&range, &default, &capacity_value, errors);
            }
        }
        (false, false) => {}
    }
}

/// Validates a list of amounts: ascending, at most the capacity, and including the default.
fn one_of(values: &Cursor<'_>, default: &Quantity, max: &Quantity, errors: &mut Errors) {
    let amounts: Vec<Quantity> = values.items().map(|at| at.quantity().unwrap_or_default()).collect();
    for (index, pair) in amounts.windows(2).enumerate() {
        if let [first, second] = pair
            && first > second
        {
            let path = values.path().index(index + 1);
            errors.push(Error::invalid(
                &path,
                second.to_string(),
                "values must be sorted in ascending order",
            ));
        }
    }
    if checks::max_items(values, VALUES_MAX, errors) {
        let mut seen = HashSet::new();
        for (index, amount) in amounts.iter().enumerate() {
            let path = values.path().index(index);
            if amount > max {
                let text = format!("option is larger than capacity value: {max}");
                errors.push(Error::invalid(&path, amount.to_string(), &text));
            }
            if !seen.insert(amount.value()) {
                errors.push(Error::duplicate(&path, amount.value().to_string()));
            }
        }
    }
    // Upstream searches for the default while it validates the amounts, and validates none if there are too many.
    if values.len() > VALUES_MAX || !amounts.contains(default) {
        let text = "default value is not valid according to the requestPolicy";
        errors.push(Error::invalid(&values.path(), default.to_string(), text));
    }
}

/// Validates a range, which must be within the capacity and contain the default.
fn check_range(range: &Cursor<'_>, default: &Quantity, capacity: &Quantity, errors: &mut Errors) {
    let [min_field, max_field, step_field] = ["min", "max", "step"].map(|field| range.field(field));
    let Some(min) = min_field.quantity() else {
        errors.push(min_field.required("required when validRange is defined"));
        return;
    };
    let max = max_field.quantity();
    let mut report_if = |condition: bool, at: &Cursor<'_>, value: &Quantity, text: String| {
        if condition {
            errors.push(Error::invalid(&at.path(), value.to_string(), &text));
        }
    };
    report_if(&min > capacity, &min_field, &min, format!("min is larger than capacity value: {capacity}"));
    report_if(default < &min, &min_field, default, format!("default is less than min: {min}"));
    if let Some(max) = &max {
        report_if(&min > max, &max_field, &min, format!("min is larger than max: {max}"));
        report_if(max > capacity, &max_field, max, format!("max is larger than capacity value: {capacity}"));
        report_if(default > max, &max_field, default, format!("default is more than max: {max}"));
    }
    if let Some(step) = step_field.quantity() {
        let first_step = min.plus(&step);
        let text = format!("one step {first_step} is larger than capacity value: {capacity}");
        report_if(&first_step > capacity, &step_field, &step, text);
        for value in [Some(default), max.as_ref()].into_iter().flatten() {
            let remainder = value.value().wrapping_sub(min.value()).checked_rem(step.value());
            let text = format!("value is not a multiple of a given step ({step}) from ({min})");
            report_if(remainder.is_some_and(|rest| rest != 0), &step_field, value, text);
        }
    }
}
