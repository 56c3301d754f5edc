//! RuntimeClass: container runtime handler, its overhead and scheduling constraints.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use portico_registry::Strategy;
use portico_validation::Errors;
use portico_validation::pod_spec::runtime_overhead;
use portico_validation::{checks, node_labels, tolerations, validate_labels, values};

pub(crate) struct RuntimeClass;

impl Strategy for RuntimeClass {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        checks::required(&new.at(&["handler"]), values::label, errors);
        runtime_overhead(&new.at(&["overhead", "podFixed"]), &"overhead".into(), errors);
        let scheduling = new.at(&["scheduling"]);
        validate_labels(&scheduling.field("nodeSelector"), errors);
        let list = scheduling.field("tolerations");
        tolerations::tolerations(&list, errors);
        check_duplicates(&list, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
        checks::unchanged(&new.at(&["handler"]), &old.at(&["handler"]), errors);
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        let selector = new.at(&["scheduling", "nodeSelector"]);
        // As upstream, the path names the map and not the key.
        let warning = |text| format!("{}: {text}", selector.path());
        selector.entries().filter_map(|(key, _)| node_labels::deprecation(key)).map(warning).collect()
    }
}

fn check_duplicates(tolerations: &Cursor<'_>, errors: &mut Errors) {
    let mut seen: HashSet<[&str; 4]> = HashSet::new();
    for toleration in tolerations.items() {
        let content = ["key", "operator", "value", "effect"].map(|field| toleration.field(field).str());
        if !seen.insert(content) {
            let mut error = Error::duplicate(&toleration.path(), "");
            let texts = [("Key", "key"), ("Operator", "operator"), ("Value", "value"), ("Effect", "effect")];
            let printed =
                values::format_go_struct(&toleration, &texts, &[("TolerationSeconds", "tolerationSeconds")]);
            error.body = format!("Duplicate value: {printed}");
            errors.push(error);
        }
    }
}
