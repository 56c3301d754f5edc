//! What slices and their devices have alike: where they are, and counters.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use super::names_of;
use portico_validation::Errors;
use portico_validation::{checks, node_selector};

const COUNTERS_MAX: usize = 32;

/// Exactly one way to say where the devices are.
pub(super) fn choice(holder: &Cursor<'_>, ways: &[&str], required: &str, errors: &mut Errors) {
    let mut chosen = Vec::new();
    for way in ways {
        let at = holder.field(way);
        if !at.is_present() {
            continue;
        }
        chosen.push(format!("`{way}`"));
        match (at.opt_str(), at.opt_bool()) {
            (Some(""), _) => errors.push(at.invalid("must be either unset or set to a non-empty string")),
            (_, Some(false)) => errors.push(at.invalid("must be either unset or set to true")),
            (Some(_), _) => checks::follows(&at, names::dns1123_subdomain, errors),
            _ if *way == "nodeSelector" => selector(&at, errors),
            _ => {}
        }
    }
    match chosen.len() {
        0 => errors.push(holder.required(required)),
        1 => {}
        _ => {
            let printed = format!("{{{}}}", chosen.join(", "));
            let text = format!("{required}, but multiple fields are set");
            errors.push(Error::invalid(&holder.path(), printed, &text));
        }
    }
}

fn selector(at: &Cursor<'_>, errors: &mut Errors) {
    node_selector::validate(at, errors);
    let terms = at.field("nodeSelectorTerms");
    if terms.len() > 1 {
        errors.push(terms.invalid("must have exactly one node selector term"));
    }
}

/// Counters by name.
pub(super) fn counters(counters: &Cursor<'_>, errors: &mut Errors) {
    if counters.is_empty() {
        errors.push(counters.required(""));
    } else if checks::at_most(counters, COUNTERS_MAX, errors) {
        names_of::label_keys(counters, errors);
    }
}
