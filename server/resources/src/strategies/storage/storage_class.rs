//! StorageClass: provisioner and parameters of volumes. Most fields are immutable.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object, names};

use portico_registry::{Strategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::{checks, node_labels};

const DEFAULT_ANNOTATIONS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

pub(crate) struct StorageClass;

impl Strategy for StorageClass {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        super::validate_provisioner(&new.at(&["provisioner"]), errors);
        super::validate_parameters(&new.at(&["parameters"]), true, errors);
        let reclaim = new.at(&["reclaimPolicy"]);
        if !reclaim.str().is_empty() {
            checks::one_of(&reclaim, &["Delete", "Retain"], errors);
        }
        checks::one_of(&new.at(&["volumeBindingMode"]), &["Immediate", "WaitForFirstConsumer"], errors);
        validate_topologies(&new.at(&["allowedTopologies"]), errors);
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
                let marked = DEFAULT_ANNOTATIONS.iter().any(|mark| object.annotation(mark) == Some("true"));
                Cell::text(format!("{}{}", object.name(), if marked { " (default)" } else { "" }))
            }
            _ => Cell::Bool(object.at(&["allowVolumeExpansion"]).bool()),
        }
    }
}

fn validate_topologies(terms: &Cursor<'_>, errors: &mut Errors) {
    let mut seen: HashSet<Vec<(&str, Vec<&str>)>> = HashSet::new();
    for term in terms.items() {
        let expressions = term.field("matchLabelExpressions");
        let content = validate_topology(&expressions, errors);
        // As upstream, a term without expressions is also reported as a duplicate.
        if content.is_empty() || !seen.insert(content) {
            errors.push(Error::duplicate(&expressions.path(), ""));
        }
    }
}

fn validate_topology<'a>(expressions: &Cursor<'a>, errors: &mut Errors) -> Vec<(&'a str, Vec<&'a str>)> {
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
        checks::matches_rule(&key, names::qualified_name, errors);
        checks::unique(&mut keys, &key, errors);
        let mut values: Vec<&str> = seen.into_iter().collect();
        values.sort_unstable();
        content.push((key.str(), values));
    }
    content.sort_unstable();
    content
}
