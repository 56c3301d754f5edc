//! The status of a claim: allocation, users, what drivers report of the devices, and who may write which of these.

use std::collections::{BTreeSet, HashSet};

use portico_machinery::field::Error;
use portico_machinery::{Attributes, Cursor, GroupResource, Object};

use super::{claim, names_of, parts};
use portico_registry::{Objects, Write};
use portico_validation::Errors;
use portico_validation::{checks, node_selector, ranges, validate_conditions};

const RESERVED_MAX: usize = 256;
const CONFIG_MAX: usize = 64;
const ALLOCATION: [&str; 2] = ["status", "allocation"];
const RESERVED: [&str; 2] = ["status", "reservedFor"];
const REPORTED: [&str; 2] = ["status", "devices"];

/// What names a device.
fn device_of<'a>(at: &Cursor<'a>) -> [&'a str; 4] {
    ["driver", "pool", "device", "shareID"].map(|field| at.field(field).str())
}

fn allocated(object: &Object) -> Vec<[&str; 4]> {
    object.at(&["status", "allocation", "devices", "results"]).items().map(|at| device_of(&at)).collect()
}

/// What drivers reported of devices that the claim no longer has goes with them.
pub(super) fn drop_deallocated(new: &mut Object, old: &Object) {
    let kept: HashSet<[&str; 4]> = allocated(new).into_iter().collect();
    let gone: HashSet<[String; 4]> = allocated(old)
        .into_iter()
        .filter(|device| !kept.contains(device))
        .map(|device| device.map(str::to_owned))
        .collect();
    let devices = new.at(&REPORTED);
    let is_gone = |at: &Cursor<'_>| gone.contains(&device_of(at).map(str::to_owned));
    let left: Vec<_> =
        devices.items().filter(|at| !is_gone(at)).filter_map(|at| Some(at.node()?.0)).collect();
    if left.len() < devices.len() {
        drop(devices);
        new.set(&REPORTED, left);
    }
}

/// Validates a new status.
pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let (allocation, before) = (new.at(&ALLOCATION), old.at(&ALLOCATION));
    reserved(new, old, errors);
    if before.is_present() && allocation.is_present() {
        checks::unchanged(&allocation, &before, errors);
    } else if allocation.is_present() {
        self::allocation(new, &allocation, errors);
    }
    reported(new, errors);
}

fn reserved(new: &Object, old: &Object, errors: &mut Errors) {
    let list = new.at(&RESERVED);
    if checks::at_most(&list, RESERVED_MAX, errors) {
        let mut seen = HashSet::new();
        for user in list.items() {
            for field in ["resource", "name", "uid"].map(|field| user.field(field)) {
                if field.str().is_empty() {
                    errors.push(field.required(""));
                }
            }
            if !seen.insert(user.field("uid").str()) {
                errors.push(Error::duplicate(&user.path(), user.field("uid").str()));
            }
        }
    }
    if !list.is_empty() && !new.at(&ALLOCATION).is_present() {
        errors.push(list.forbidden("may not be specified when `allocated` is not set"));
    }
    let before = old.at(&RESERVED);
    let known: HashSet<&str> = before.items().map(|user| user.field("uid").str()).collect();
    let added = list.items().any(|user| !known.contains(user.field("uid").str()));
    if added && new.deletion_timestamp().is_some() {
        errors.push(list.forbidden(
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set",
        ));
    }
}

fn allocation(new: &Object, allocation: &Cursor<'_>, errors: &mut Errors) {
    let devices = allocation.field("devices");
    let (results, config) = (devices.field("results"), devices.field("config"));
    let spec = new.at(&["spec", "devices"]);
    let known = claim::references(&spec);
    if checks::at_most(&results, parts::LIST_MAX, errors) {
        for result in results.items() {
            claim::refers_to(&result.field("request"), &known, errors);
            names_of::driver(&result.field("driver"), errors);
            names_of::pool(&result.field("pool"), errors);
            names_of::label(&result.field("device"), errors);
            parts::binding_conditions(&result, errors);
            share_id(&result.field("shareID"), errors);
        }
    }
    if checks::at_most(&config, CONFIG_MAX, errors) {
        for entry in config.items() {
            let source = entry.field("source");
            match source.str() {
                "" => errors.push(source.required("")),
                _ => checks::one_of(&source, &["FromClass", "FromClaim"], errors),
            }
            claim::refers(&entry.field("requests"), &known, errors);
            parts::opaque(&entry, errors);
        }
    }
    let selector = allocation.field("nodeSelector");
    if selector.is_present() {
        node_selector::validate(&selector, errors);
    }
}

fn share_id(at: &Cursor<'_>, errors: &mut Errors) {
    let text = at.str();
    let lower = !text.bytes().any(|b| b.is_ascii_uppercase());
    let uuid = text.len() == 36 && lower && uuid::Uuid::parse_str(text).is_ok();
    if at.is_present() && !uuid {
        errors.push(at.invalid("must be a lowercase UUID in 8-4-4-4-12 format"));
    }
}

fn reported(new: &Object, errors: &mut Errors) {
    const CONDITIONS_MAX: usize = 8;
    const INTERFACE_MAX: usize = 256;
    const HARDWARE_MAX: usize = 128;
    const ADDRESSES_MAX: usize = 16;
    let (known, mut seen) = (allocated(new).into_iter().collect::<HashSet<_>>(), HashSet::new());
    for device in new.at(&REPORTED).items() {
        names_of::driver(&device.field("driver"), errors);
        names_of::pool(&device.field("pool"), errors);
        names_of::label(&device.field("device"), errors);
        let id = device_of(&device);
        if !seen.insert(id) {
            errors.push(Error::duplicate(&device.path(), id[..3].join("/")));
        }
        if !known.contains(&id) {
            let text = "must be an allocated device in the claim";
            errors.push(Error::invalid(&device.path(), id[..3].join("/"), text));
        }
        let conditions = device.field("conditions");
        if checks::at_most(&conditions, CONDITIONS_MAX, errors) {
            validate_conditions(&conditions, errors);
        }
        parts::raw(&device.field("data"), false, errors);
        let network = device.field("networkData");
        checks::no_longer(&network.field("interfaceName"), INTERFACE_MAX, errors);
        checks::no_longer(&network.field("hardwareAddress"), HARDWARE_MAX, errors);
        let addresses = network.field("ips");
        if checks::at_most(&addresses, ADDRESSES_MAX, errors) {
            let mut seen = HashSet::new();
            for address in addresses.items() {
                ranges::interface_address(&address, errors);
                checks::unique(&mut seen, &address, errors);
            }
        }
    }
}

/// Permissions that a change of the allocation needs, and that each driver's reports need.
pub(super) async fn denied(objects: &Objects, write: Write<'_>) -> Errors {
    let Some(old) = write.old else { return Vec::new() };
    let (new, mut errors) = (write.new, Vec::new());
    let changed = |path: &[&str]| !checks::same(&new.at(path), &old.at(path));
    if changed(&ALLOCATION) || changed(&RESERVED) {
        let question = Attributes::resource(write.user.clone(), write.verb, &resource_claims(), "", "")
            .with_subresource("binding");
        if let Err(status) = objects.authorizer.decide(&question).await.permit(&question) {
            let text = format!(
                "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", verb=\"{}\" permission: {}",
                write.verb, status.message
            );
            errors.push(new.at(&ALLOCATION).forbidden(&text));
        }
    }
    if new.at(&ALLOCATION).is_present() && changed(&REPORTED) {
        errors.extend(denied_driver(objects, write, old).await);
    }
    errors
}

/// The first driver whose reports change without permission.
async fn denied_driver(objects: &Objects, write: Write<'_>, old: &Object) -> Option<Error> {
    let verb = format!("arbitrary-node:{}", write.verb);
    for driver in changed_drivers(write.new, old) {
        let (user, namespace) = (write.user.clone(), write.new.namespace());
        let question = Attributes::resource(user, &verb, &resource_claims(), namespace, &driver)
            .with_subresource("driver");
        if let Err(status) = objects.authorizer.decide(&question).await.permit(&question) {
            return Some(write.new.at(&REPORTED).forbidden(&format!(
                "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{verb}]\" permission: {}",
                status.message
            )));
        }
    }
    None
}

fn changed_drivers(new: &Object, old: &Object) -> BTreeSet<String> {
    let (now, then) = (new.at(&REPORTED), old.at(&REPORTED));
    let is_in = |list: &Cursor<'_>, at: &Cursor<'_>| list.items().any(|other| other.same_as(at));
    let added = now.items().filter(|at| !is_in(&then, at));
    let changed = added.chain(then.items().filter(|at| !is_in(&now, at)));
    changed.map(|at| at.field("driver").str().to_owned()).collect()
}

fn resource_claims() -> GroupResource {
    GroupResource::new("resource.k8s.io", "resourceclaims")
}
