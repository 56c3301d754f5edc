//! CSINode: CSI drivers on a node. The data that a driver has reported is immutable.

use std::collections::{HashMap, HashSet};

use portico_machinery::{Cursor, Object, names};

use portico_registry::Strategy;
use portico_validation::Errors;
use portico_validation::{checks, values};

const NODE_ID_MAX: usize = 256;

pub(crate) struct CsiNode;

impl Strategy for CsiNode {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn compares_metadata_again(&self, _is_status: bool) -> bool {
        false
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let drivers = new.at(&["spec", "drivers"]);
        let mut seen = HashSet::new();
        for driver in drivers.items() {
            validate_driver(&driver, errors);
            checks::unique(&mut seen, &driver.field("name"), errors);
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        let (drivers, before) = (new.at(&["spec", "drivers"]), old.at(&["spec", "drivers"]));
        let mut by_name = HashMap::new();
        for driver in drivers.items() {
            by_name.entry(driver.field("name").str()).or_insert(driver);
        }
        for old_driver in before.items() {
            let new_driver = by_name.get(old_driver.field("name").str());
            let is_unchanged = |new_driver: &Cursor<'_>| {
                ["nodeID", "topologyKeys"]
                    .iter()
                    .all(|f| checks::is_same(&new_driver.field(f), &old_driver.field(f)))
            };
            if new_driver.is_some_and(|new_driver| !is_unchanged(new_driver)) {
                errors.push(drivers.invalid(checks::IMMUTABLE));
            }
        }
        self.validate(new, errors);
    }
}

fn validate_driver(driver: &Cursor<'_>, errors: &mut Errors) {
    values::driver_name(&driver.field("name"), errors);
    let node = driver.field("nodeID");
    match node.str().len() {
        0 => errors.push(node.required("")),
        length if length > NODE_ID_MAX => errors.push(node.invalid("must be 256 characters or less")),
        _ => {}
    }
    checks::not_negative(&driver.field("allocatable").field("count"), errors);
    let mut seen = HashSet::new();
    for key in driver.field("topologyKeys").items() {
        // As upstream, the error has the path of the driver.
        let path = driver.path();
        if key.str().is_empty() {
            errors.push(portico_machinery::field::Error::required(&path, ""));
        }
        if !seen.insert(key.str()) {
            errors.push(portico_machinery::field::Error::duplicate(&path, key.str()));
        }
        errors.extend(names::to_field_errors(&path, key.str(), names::qualified_name(key.str())));
    }
}
