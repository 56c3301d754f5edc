//! What slices and their devices have alike: where they are, and counters.

use portico_machinery::field::Error;
use portico_machinery::{Cursor, names};

use super::names_of;
use portico_validation::Errors;
use portico_validation::{checks, node_selector};

const COUNTERS_MAX: usize = 32;

/// Where a slice or a device is: the fields that can name it, and the errors of wrong choices.
pub(super) struct Choice {
    pub(super) ways: &'static [&'static str],
    /// None is chosen.
    pub(super) none: &'static str,
    /// Several are.
    pub(super) several: &'static str,
    /// A node without a name.
    pub(super) nameless: &'static str,
    /// Whether a selector has exactly one term.
    pub(super) one_term: bool,
}

impl Choice {
    /// Exactly one field must name where the devices are.
    pub(super) fn validate(&self, holder: &Cursor<'_>, errors: &mut Errors) {
        let mut chosen = Vec::new();
        for way in self.ways {
            let at = holder.field(way);
            match (at.opt_str(), at.opt_bool()) {
                _ if !at.is_present() => continue,
                (Some(""), _) => {
                    errors.push(at.invalid(self.nameless));
                    continue;
                }
                (_, Some(false)) => {
                    errors.push(at.invalid("must be either unset or set to true"));
                    continue;
                }
                (Some(_), _) => checks::follows(&at, names::dns1123_subdomain, errors),
                _ if *way == "nodeSelector" => self.selector(&at, errors),
                _ => {}
            }
            chosen.push(format!("`{way}`"));
        }
        match chosen.len() {
            0 => errors.push(holder.required(self.none)),
            1 => {}
            _ => {
                let printed = format!("{{{}}}", chosen.join(", "));
                errors.push(Error::invalid(&holder.path(), printed, self.several));
            }
        }
    }

    fn selector(&self, at: &Cursor<'_>, errors: &mut Errors) {
        node_selector::validate(at, errors);
        let terms = at.field("nodeSelectorTerms");
        if self.one_term && terms.len() != 1 {
            errors.push(terms.invalid("must have exactly one node selector term"));
        }
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
