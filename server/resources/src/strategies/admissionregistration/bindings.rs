//! MutatingAdmissionPolicyBinding and ValidatingAdmissionPolicyBinding: bind a policy to resources and parameters.

use std::collections::HashSet;

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object, names};

use super::match_resources;
use portico_registry::{Strategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::{checks, label_selector};

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
const DENY_AND_WARN: &str = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";

/// Strategy of both kinds of bindings.
pub(crate) struct Binding {
    /// True if the policy is a MutatingAdmissionPolicy. Such bindings have no validation actions.
    pub(crate) mutates: bool,
}

impl Strategy for Binding {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn compares_metadata_again(&self, _is_status: bool) -> bool {
        false
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        checks::required(&spec.field("policyName"), names::dns1123_subdomain, errors);
        let reference = spec.field("paramRef");
        if reference.is_present() {
            validate_param_ref(&reference, errors);
        }
        let resources = spec.field("matchResources");
        if resources.is_present() {
            match_resources::validate_match_resources(&resources, self.mutates, errors);
        }
        if !self.mutates {
            validate_actions(&spec.field("validationActions"), errors);
        }
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        super::warnings(new)
    }
}

impl TableStrategy for Binding {
    fn cell(&self, _function: &str, object: &Object) -> Cell {
        let reference = object.at(&["spec", "paramRef"]);
        let (name, namespace) = (reference.field("name").str(), reference.field("namespace").str());
        Cell::text(if !reference.is_present() {
            "<unset>".to_owned()
        } else if name.is_empty() {
            format_go_selector(&reference.field("selector"))
        } else {
            format!("{}/{name}", if namespace.is_empty() { "*" } else { namespace })
        })
    }
}

/// Formats a label selector as Go prints the struct, which upstream shows.
fn format_go_selector(selector: &Cursor<'_>) -> String {
    if !selector.is_present() {
        return "<unset>".to_owned();
    }
    let labels = selector.field("matchLabels");
    let mut labels: Vec<String> =
        labels.entries().map(|(key, value)| format!("{key}: {},", value.str())).collect();
    labels.sort_unstable();
    let requirement = |expression: Cursor<'_>| {
        let values: Vec<&str> = expression.field("values").items().map(|value| value.str()).collect();
        let (key, operator) = (expression.field("key").str(), expression.field("operator").str());
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},", values.join(" "))
    };
    let expressions: String = selector.field("matchExpressions").items().map(requirement).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}",
        labels.concat()
    )
}

fn validate_param_ref(reference: &Cursor<'_>, errors: &mut Errors) {
    let (name, selector) = (reference.field("name"), reference.field("selector"));
    if !name.str().is_empty() {
        checks::matches_rule(&name, names::path_segment, errors);
        if selector.is_present() {
            let text = "name and selector are mutually exclusive";
            errors.extend([name.forbidden(text), selector.forbidden(text)]);
        }
    }
    if selector.is_present() {
        label_selector(&selector, errors);
    } else if name.str().is_empty() {
        errors.push(reference.required("one of name or selector must be specified"));
    }
    let action = reference.field("parameterNotFoundAction");
    match action.str() {
        "" => errors.push(action.required("")),
        _ => checks::one_of(&action, &["Deny", "Allow"], errors),
    }
}

fn validate_actions(actions: &Cursor<'_>, errors: &mut Errors) {
    if actions.is_empty() {
        errors.push(actions.required("at least one validation action is required"));
    }
    let mut seen = HashSet::new();
    for action in actions.items() {
        checks::one_of(&action, &ACTIONS, errors);
        checks::unique(&mut seen, &action, errors);
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        errors.push(actions.invalid(DENY_AND_WARN));
    }
}
