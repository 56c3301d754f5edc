//! ValidatingAdmissionPolicy and MutatingAdmissionPolicy: their common fields (kind of the parameters, match rules, match
//! conditions and variables).

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object, names};

use super::expressions::ExpressionValidator;
use super::{match_resources, mutating_policy, validating_policy};
use portico_registry::{Strategy, SubresourceStrategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::checks;

/// Strategy of both kinds of policies.
pub(crate) struct Policy {
    /// True for MutatingAdmissionPolicy.
    pub(crate) mutates: bool,
}

impl Strategy for Policy {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn compares_metadata_again(&self, _is_status: bool) -> bool {
        false
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        self.validate_spec(new, true, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        let is_unchanged = |field: &str| new.at(&["spec", field]).same_as(&old.at(&["spec", field]));
        self.validate_spec(new, !(is_unchanged("paramKind") && is_unchanged("matchConditions")), errors);
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        super::warnings(new)
    }
}

impl SubresourceStrategy for Policy {
    fn validate_status(&self, new: &Object, _old: &Object, errors: &mut Errors) {
        if !self.mutates {
            validating_policy::validate_status(&new.at(&["status"]), errors);
        }
    }
}

impl TableStrategy for Policy {
    fn cell(&self, _function: &str, object: &Object) -> Cell {
        param_kind_cell(object)
    }
}

impl Policy {
    fn validate_spec(&self, new: &Object, conditions_changed: bool, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        let composes = self.mutates || !spec.field("variables").is_empty();
        let params = spec.field("paramKind").is_present();
        let expressions = ExpressionValidator::for_policy(params, composes, conditions_changed);
        validate_common_spec(&spec, self.mutates, &expressions, errors);
        if self.mutates {
            mutating_policy::validate_spec(&spec, &expressions, errors);
        } else {
            validating_policy::validate_spec(new, &spec, &expressions, errors);
        }
    }
}

/// Validates the fields that both kinds of policies have.
fn validate_common_spec(
    spec: &Cursor<'_>,
    mutates: bool,
    expressions: &ExpressionValidator,
    errors: &mut Errors,
) {
    checks::one_of(&spec.field("failurePolicy"), &["Fail", "Ignore"], errors);
    let kind = spec.field("paramKind");
    if kind.is_present() {
        validate_param_kind(&kind, errors);
    }
    let constraints = spec.field("matchConstraints");
    if constraints.is_present() {
        match_resources::validate_match_resources(&constraints, mutates, errors);
        let rules = constraints.field("resourceRules");
        if rules.is_empty() {
            errors.push(rules.required(""));
        }
    } else {
        errors.push(constraints.required(""));
    }
    expressions.validate_match_conditions(&spec.field("matchConditions"), errors);
    spec.field("variables").items().for_each(|at| validate_variable(&at, expressions, errors));
}

fn validate_param_kind(at: &Cursor<'_>, errors: &mut Errors) {
    let (version, kind) = (at.field("apiVersion"), at.field("kind"));
    if version.str().is_empty() {
        errors.push(version.required(""));
    } else {
        validate_group_version(&version, errors);
    }
    if kind.str().is_empty() {
        errors.push(kind.required(""));
    } else {
        let diagnostics = names::dns1035_label(&kind.str().to_lowercase());
        if !diagnostics.is_empty() {
            let text = diagnostics.join(",");
            errors.push(kind.invalid(&format!("may have mixed case, but should otherwise match: {text}")));
        }
    }
}

fn validate_group_version(at: &Cursor<'_>, errors: &mut Errors) {
    let (group, version) = match at.str().split('/').collect::<Vec<_>>()[..] {
        [version] => ("", version),
        [group, version] => (group, version),
        _ => {
            errors.push(at.invalid(&format!("unexpected GroupVersion string: {}", at.str())));
            return;
        }
    };
    let diagnostics = if group.is_empty() { Vec::new() } else { names::dns1123_subdomain(group) };
    errors.extend(names::to_field_errors(&at.path(), group, diagnostics));
    if version.is_empty() {
        errors.push(at.invalid("version must be specified"));
    } else {
        errors.extend(names::to_field_errors(&at.path(), version, names::dns1035_label(version)));
    }
}

fn validate_variable(variable: &Cursor<'_>, expressions: &ExpressionValidator, errors: &mut Errors) {
    let name = variable.field("name");
    if name.str().trim().is_empty() {
        errors.push(name.required("name is not specified"));
    } else if !is_identifier(name.str()) {
        errors.push(name.invalid("must be a valid CEL identifier"));
    }
    expressions.validate_variable(name.str(), &variable.field("expression"), errors);
}

fn is_identifier(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(letter)
        && text.chars().all(|c| letter(c) || c.is_ascii_digit())
        && !portico_cel::RESERVED.contains(&text)
}

/// Cell with `apiVersion/kind` of the parameters.
fn param_kind_cell(object: &Object) -> Cell {
    let kind = object.at(&["spec", "paramKind"]);
    Cell::text(if kind.is_present() {
        format!("{}/{}", kind.field("apiVersion").str(), kind.field("kind").str())
    } else {
        "<unset>".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_no_identifiers() {
        for (text, good) in
            [("a", true), ("_a1", true), ("1a", false), ("a-b", false), ("for", false), ("", false)]
        {
            assert_eq!(is_identifier(text), good, "{text}");
        }
    }
}
