//! CSIStorageCapacity: free capacity of a storage class in a topology. Both are immutable.

use portico_machinery::{Cursor, Object, names};

use portico_registry::Strategy;
use portico_validation::Errors;
use portico_validation::{checks, label_selector, node_labels};

pub(crate) struct CsiStorageCapacity;

impl Strategy for CsiStorageCapacity {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        checks::matches_rule(&new.at(&["storageClassName"]), names::dns1123_subdomain, errors);
        let capacity = new.at(&["capacity"]);
        if capacity.str().starts_with('-') {
            errors.push(capacity.invalid("must be greater than or equal to 0"));
        }
        label_selector(&new.at(&["nodeTopology"]), errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
        for field in ["nodeTopology", "storageClassName"] {
            checks::unchanged(&new.at(&[field]), &old.at(&[field]), errors);
        }
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        let topology = new.at(&["nodeTopology"]);
        let expression = |expression: Cursor<'_>| {
            let key = expression.field("key");
            let text = node_labels::deprecation(key.str())?;
            Some(format!("{}: {} is {text}", key.path(), key.str()))
        };
        let label = |(key, _): (&str, Cursor<'_>)| {
            Some(format!("nodeTopology.matchLabels.{key}: {}", node_labels::deprecation(key)?))
        };
        let mut warnings: Vec<String> =
            topology.field("matchExpressions").items().filter_map(expression).collect();
        warnings.extend(topology.field("matchLabels").entries().filter_map(label));
        warnings
    }
}
