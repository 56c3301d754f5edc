//! IPAddress: allocated address, which is also its name, with a reference to the object that uses it.

use portico_machinery::table::Cell;
use portico_machinery::{Object, names};

use portico_registry::{Strategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::checks;

pub(crate) struct IpAddress;

impl Strategy for IpAddress {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let parent = new.at(&["spec", "parentRef"]);
        if !parent.is_present() {
            errors.push(parent.required(""));
            return;
        }
        checks::optional(&parent.field("group"), names::dns1123_subdomain, errors);
        checks::required(&parent.field("resource"), names::path_segment, errors);
        checks::required(&parent.field("name"), names::path_segment, errors);
        checks::optional(&parent.field("namespace"), names::path_segment, errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
        let parent = ["spec", "parentRef"];
        checks::unchanged(&new.at(&parent), &old.at(&parent), errors);
    }
}

impl TableStrategy for IpAddress {
    fn cell(&self, _function: &str, object: &Object) -> Cell {
        let parent = object.at(&["spec", "parentRef"]);
        if !parent.is_present() {
            return Cell::text("<none>");
        }
        let [group, resource, namespace, name] =
            ["group", "resource", "namespace", "name"].map(|field| parent.field(field).str());
        let resource = match group {
            "" => resource.to_lowercase(),
            group => format!("{resource}.{group}").to_lowercase(),
        };
        Cell::text(match namespace {
            "" => format!("{resource}/{name}"),
            namespace => format!("{resource}/{namespace}/{name}"),
        })
    }
}
