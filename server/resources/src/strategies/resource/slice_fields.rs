//! Validation of fields that slices and their devices share: node selection and counters.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use super::naming;
use portico_validation::Errors;
use portico_validation::{checks, node_selector};

const COUNTERS_MAX: usize = 32;

/// Fields that select the nodes of a slice or device, and the errors of an invalid selection.
pub(super) struct NodeChoice {
    pub(super) fields: &'static [&'static str],
    /// Error if no field is set.
    pub(super) none_error: &'static str,
    /// Error if several fields are set.
    pub(super) several_error: &'static str,
    /// Error if the node name is empty.
    pub(super) empty_name_error: &'static str,
    /// True if a selector must have exactly one term.
    pub(super) requires_one_term: bool,
}

impl NodeChoice {
    /// Checks that exactly one field selects the nodes.
    pub(super) fn validate(&self, holder: &Cursor<'_>, errors: &mut Errors) {
        let mut chosen = Vec::new();
        for field in self.fields {
            let at = holder.field(field);
            match (at.opt_str(), at.opt_bool()) {
                _ if !at.is_present() => continue,
                (Some(""), _) => {
                    errors.push(at.invalid(self.empty_name_error));
                    continue;
                }
                (_, Some(false)) => {
                    errors.push(at.invalid("must be either unset or set to true"));
                    continue;
                }
                (Some(_), _) => checks::matches_rule(&at, names::dns1123_subdomain, errors),
                _ if *field == "nodeSelector" => self.validate_selector(&at, errors),
                _ => {}
            }
            chosen.push(format!("`{field}`"));
        }
        match chosen.len() {
            0 => errors.push(holder.required(self.none_error)),
            1 => {}
            _ => {
                let printed = format!("{{{}}}", chosen.join(", "));
                errors.push(Error::invalid(&holder.path(), printed, self.several_error));
            }
        }
    }

    fn validate_selector(&self, at: &Cursor<'_>, errors: &mut Errors) {
        node_selector::validate(at, errors);
        let terms = at.field("nodeSelectorTerms");
        if self.requires_one_term && terms.len() != 1 {
            errors.push(terms.invalid("must have exactly one node selector term"));
        }
    }
}

/// Validates counters by name.
pub(super) fn validate_counters(counters: &Cursor<'_>, errors: &mut Errors) {
    if counters.is_empty() {
        errors.push(counters.required(""));
    } else if checks::max_items(counters, COUNTERS_MAX, errors) {
        naming::validate_label_keys(counters, errors);
    }
}
