//! ServiceCIDR: address ranges for Services. An update can only add a range of the second family.

use ipnet::IpNet;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

use portico_registry::{Strategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::{checks, ranges};

const TOO_MANY_OF_A_FAMILY: &str =
    "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";

pub(crate) struct ServiceCidr;

impl Strategy for ServiceCidr {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate_cidrs(&new.at(&["spec", "cidrs"]), errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        let (list, before) = (new.at(&["spec", "cidrs"]), old.at(&["spec", "cidrs"]));
        match (before.len(), list.len()) {
            (was, is) if was == is => {
                for (new_item, old_item) in list.items().zip(before.items()) {
                    checks::unchanged(&new_item, &old_item, errors);
                }
            }
            (1, 2) => {
                if let (Some(new_value), Some(old_value)) = (list.items().next(), before.items().next()) {
                    checks::unchanged(&new_value, &old_value, errors);
                }
                validate_cidrs(&list, errors);
            }
            _ => errors.push(checks::immutable_or_null(&list)),
        }
    }
}

impl TableStrategy for ServiceCidr {
    fn cell(&self, _function: &str, object: &Object) -> Cell {
        let cidrs: Vec<&str> = object.at(&["spec", "cidrs"]).items().map(|cidr| cidr.str()).collect();
        Cell::text(cidrs.join(","))
    }
}

fn validate_cidrs(list: &Cursor<'_>, errors: &mut Errors) {
    if list.is_empty() {
        errors.push(list.required("at least one CIDR required"));
        return;
    }
    if list.len() > 2 {
        errors.push(list.invalid("may only hold up to 2 values"));
        return;
    }
    let ranges: Vec<IpNet> = list.items().filter_map(|cidr| ranges::canonical_cidr(&cidr, errors)).collect();
    if let [a, b] = ranges.as_slice()
        && a.addr().is_ipv4() == b.addr().is_ipv4()
    {
        errors.push(list.invalid(TOO_MANY_OF_A_FAMILY));
    }
}
