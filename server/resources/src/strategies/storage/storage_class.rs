//! StorageClass: who makes volumes and how; most of it never changes.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object, names};

use portico_registry::{Strategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::{checks, node_labels};

const DEFAULT_MARKS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// See the module.
pub(crate) struct StorageClass;

impl Strategy for StorageClass {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        super::provisioner(&new.at(&["provisioner"]), errors);
        super::parameters(&new.at(&["parameters"]), true, errors);
        let reclaim = new.at(&["reclaimPolicy"]);
        if !reclaim.str().is_empty() {
            checks::one_of(&reclaim, &["Delete", "Retain"], errors);
        }
        checks::one_of(&new.at(&["volumeBindingMode"]), &["Immediate", "WaitForFirstConsumer"], errors);
        topologies(&new.at(&["allowedTopologies"]), errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            checks::unchanged(&new.at(&[field]), &old.at(&[field]), errors);
        }
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        let topologies = new.at(&["allowedTopologies"]);
        let expressions = topologies.items().flat_map(|term| term.field("matchLabelExpressions").items());
        let keys = expressions.map(|expression| expression.field("key"));
        keys.filter_map(|key| Some(format!("{}: {}", key.path(), node_labels::deprecation(key.str())?)))
            .collect()
    }
}

impl TableStrategy for StorageClass {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        match function {
            "storageclass-name" => {
                let marked = DEFAULT_MARKS.iter().any(|mark| object.annotation(mark) == Some("true"));
                Cell::text(format!("{}{}", object.name(), if marked { " (default)" } else { "" }))
            }
            _ => Cell::Bool(object.at(&["allowVolumeExpansion"]).bool()),
        }
    }
}

fn topologies(terms: &Cursor<'_>, errors: &mut Errors) {
    let mut seen: HashSet<Vec<(&str, Vec<&str>)>> = HashSet::new();
    for term in terms.items() {
        let expressions = term.field("matchLabelExpressions");
        let content = topology(&expressions, errors);
        // Upstream reports a term without expressions, too, as a duplicate.
        if content.is_empty() || !seen.insert(content) {
            errors.push(Error::duplicate(&expressions.path(), ""));
        }
    }
}

fn topology<'a>(expressions: &Cursor<'a>, errors: &mut Errors) -> Vec<(&'a str, Vec<&'a str>)> {
    let (mut keys, mut content) = (HashSet::new(), Vec::new());
    for expression in expressions.items() {
        let (key, values) = (expression.field("key"), expression.field("values"));
        if values.is_empty() {
            errors.push(values.required(""));
        }
        let mut seen = HashSet::new();
        for value in values.items() {
            checks::unique(&mut seen, &value, errors);
        }
        checks::follows(&key, names::qualified_name, errors);
        checks::unique(&mut keys, &key, errors);
        let mut values: Vec<&str> = seen.into_iter().collect();
        values.sort_unstable();
        content.push((key.str(), values));
    }
    content.sort_unstable();
    content
}
