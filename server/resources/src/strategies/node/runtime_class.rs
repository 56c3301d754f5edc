//! RuntimeClass: which handler runs a pod, what that costs and where it can be done.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object, names};

use portico_registry::Strategy;
use portico_validation::Errors;
use portico_validation::{checks, node_labels, tolerations, validate_labels, values};

/// See the module.
pub(crate) struct RuntimeClass;

impl Strategy for RuntimeClass {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        checks::required(&new.at(&["handler"]), values::label, errors);
        overhead(&new.at(&["overhead", "podFixed"]), errors);
        let scheduling = new.at(&["scheduling"]);
        validate_labels(&scheduling.field("nodeSelector"), errors);
        let list = scheduling.field("tolerations");
        tolerations::tolerations(&list, errors);
        duplicates(&list, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
        checks::unchanged(&new.at(&["handler"]), &old.at(&["handler"]), errors);
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        let selector = new.at(&["scheduling", "nodeSelector"]);
        let warning = |(key, at): (&str, Cursor<'_>)| {
            Some(format!("{}: {}", at.path(), node_labels::deprecation(key)?))
        };
        selector.entries().filter_map(warning).collect()
    }
}

/// What upstream checks as the limits of a container, and reports so.
fn overhead(fixed: &Cursor<'_>, errors: &mut Errors) {
    let is_huge = |name: &str| name.starts_with("hugepages-");
    let (mut huge, mut other) = (false, false);
    for (name, quantity) in fixed.entries() {
        let path = portico_machinery::field::Path::new("overhead.limits").key(name);
        let diagnostics = names::qualified_name(name);
        if diagnostics.is_empty() && !name.contains('/') {
            let known = matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_huge(name);
            if !known {
                let text = "must be a standard resource type or fully qualified";
                errors.push(Error::invalid(&path, name, text));
                errors.push(Error::invalid(&path, name, "must be a standard resource for containers"));
            }
        }
        errors.extend(names::errors(&path, name, diagnostics));
        if quantity.str().starts_with('-') {
            let text = "must be greater than or equal to 0";
            errors.push(Error::invalid_printed(&path, &quantity.printed(), text));
        }
        huge |= is_huge(name);
        other |= matches!(name, "cpu" | "memory");
    }
    if huge && !other {
        errors.push(Error::forbidden(&"overhead".into(), "HugePages require cpu or memory"));
    }
}

fn duplicates(tolerations: &Cursor<'_>, errors: &mut Errors) {
    let mut seen: HashSet<[&str; 4]> = HashSet::new();
    for toleration in tolerations.items() {
        let content = ["key", "operator", "value", "effect"].map(|field| toleration.field(field).str());
        if !seen.insert(content) {
            let mut error = Error::duplicate(&toleration.path(), "");
            let texts = [("Key", "key"), ("Operator", "operator"), ("Value", "value"), ("Effect", "effect")];
            let printed =
                values::go_struct(&toleration, &texts, &[("TolerationSeconds", "tolerationSeconds")]);
            error.body = format!("Duplicate value: {printed}");
            errors.push(error);
        }
    }
}
