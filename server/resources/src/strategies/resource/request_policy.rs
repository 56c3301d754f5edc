//! How much of a device's capacity may be asked for at once: one of a few amounts, or a range with a step.

use std::collections::HashSet;

use portico_machinery::Cursor;
use portico_machinery::field::Error;
use portico_machinery::quantity::Quantity;

use portico_validation::Errors;
use portico_validation::checks;

const VALUES_MAX: usize = 10;
const ONE_POLICY: &str =
    "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";

/// Validates the policy of a capacity; `multiple`: the device may be given to several claims at once.
pub(super) fn validate(capacity: &Cursor<'_>, multiple: bool, errors: &mut Errors) {
    let policy = capacity.field("requestPolicy");
    if !policy.is_present() {
        return;
    }
    if !multiple {
        errors.push(policy.forbidden("allowMultipleAllocations must be true"));
        return;
    }
    let most = capacity.field("value").quantity().unwrap_or_default();
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
                one_of(&values, &default, &most, errors);
            }
        }
        (false, true) => {
            if let Some(default) = default("validRange", errors) {
                within(&range, &default, &most, errors);
            }
        }
        (false, false) => {}
    }
}

/// Amounts in ascending order, none above the capacity, the default among them.
fn one_of(values: &Cursor<'_>, default: &Quantity, most: &Quantity, errors: &mut Errors) {
    let amounts: Vec<Quantity> = values.items().map(|at| at.quantity().unwrap_or_default()).collect();
    for (at, pair) in amounts.windows(2).enumerate() {
        if let [first, second] = pair
            && first > second
        {
            let path = values.path().index(at + 1);
            errors.push(Error::invalid(
                &path,
                second.to_string(),
                "values must be sorted in ascending order",
            ));
        }
    }
    if checks::at_most(values, VALUES_MAX, errors) {
        let mut seen = HashSet::new();
        for (at, amount) in amounts.iter().enumerate() {
            let path = values.path().index(at);
            if amount > most {
                let text = format!("option is larger than capacity value: {most}");
                errors.push(Error::invalid(&path, amount.to_string(), &text));
            }
            if !seen.insert(amount.value()) {
                errors.push(Error::duplicate(&path, amount.value().to_string()));
            }
        }
    }
    // Upstream looks for the default while it validates, which it does not do with too many values.
    if values.len() > VALUES_MAX || !amounts.contains(default) {
        let text = "default value is not valid according to the requestPolicy";
        errors.push(Error::invalid(&values.path(), default.to_string(), text));
    }
}

/// A range within the capacity and around the default.
fn within(range: &Cursor<'_>, default: &Quantity, capacity: &Quantity, errors: &mut Errors) {
    let [least_at, most_at, step_at] = ["min", "max", "step"].map(|field| range.field(field));
    let Some(least) = least_at.quantity() else {
        errors.push(least_at.required("required when validRange is defined"));
        return;
    };
    let most = most_at.quantity();
    let mut wrong = |when: bool, at: &Cursor<'_>, value: &Quantity, text: String| {
        if when {
            errors.push(Error::invalid(&at.path(), value.to_string(), &text));
        }
    };
    wrong(&least > capacity, &least_at, &least, format!("min is larger than capacity value: {capacity}"));
    wrong(default < &least, &least_at, default, format!("default is less than min: {least}"));
    if let Some(most) = &most {
        wrong(&least > most, &most_at, &least, format!("min is larger than max: {most}"));
        wrong(most > capacity, &most_at, most, format!("max is larger than capacity value: {capacity}"));
        wrong(default > most, &most_at, default, format!("default is more than max: {most}"));
    }
    if let Some(step) = step_at.quantity() {
        let once = least.plus(&step);
        let text = format!("one step {once} is larger than capacity value: {capacity}");
        wrong(&once > capacity, &step_at, &step, text);
        for value in [Some(default), most.as_ref()].into_iter().flatten() {
            let apart = value.value().wrapping_sub(least.value()).checked_rem(step.value());
            let text = format!("value is not a multiple of a given step ({step}) from ({least})");
            wrong(apart.is_some_and(|rest| rest != 0), &step_at, value, text);
        }
    }
}
