//! Status of a claim: allocation, consumers, device status from drivers, and permissions to write them.

use std::collections::{BTreeSet, HashSet};

use portico_machinery::field::Error;
use portico_machinery::{Attributes, Cursor, GroupResource, Object};

use super::{claim, naming, shared_fields};
use portico_registry::{Objects, Write};
use portico_validation::Errors;
use portico_validation::{checks, node_selector, ranges, validate_conditions};

const RESERVED_MAX: usize = 256;
const CONFIG_MAX: usize = 64;
const ALLOCATION: [&str; 2] = ["status", "allocation"];
const RESERVED: [&str; 2] = ["status", "reservedFor"];
const DEVICE_STATUS: [&str; 2] = ["status", "devices"];

/// Returns the fields that identify a device.
fn device_id<'a>(at: &Cursor<'a>) -> [&'a str; 4] {
    ["driver", "pool", "device", "shareID"].map(|field| at.field(field).str())
}

fn list_allocated(object: &Object) -> Vec<[&str; 4]> {
    object.at(&["status", "allocation", "devices", "results"]).items().map(|at| device_id(&at)).collect()
}

/// Drops the driver status of devices that are no longer allocated.
pub(super) fn drop_deallocated(new: &mut Object, old: &Object) {
    let allocated_devices: HashSet<[&str; 4]> = list_allocated(new).into_iter().collect();
    let deallocated: HashSet<[String; 4]> = list_allocated(old)
        .into_iter()
        .filter(|device| !allocated_devices.contains(device))
        .map(|device| device.map(str::to_owned))
        .collect();
    let devices = new.at(&DEVICE_STATUS);
    let is_gone = |at: &Cursor<'_>| deallocated.contains(&device_id(at).map(str::to_owned));
    let remaining: Vec<_> =
        devices.items().filter(|at| !is_gone(at)).filter_map(|at| Some(at.node()?.0)).collect();
    if remaining.len() < devices.len() {
        drop(devices);
        new.set(&DEVICE_STATUS, remaining);
    }
}

/// Validates a new status.
pub(super) fn validate(new: &Object, old: &Object, errors: &mut Errors) {
    let (allocation, before) = (new.at(&ALLOCATION), old.at(&ALLOCATION));
    check_reserved(new, old, errors);
    if before.is_present() && allocation.is_present() {
        checks::unchanged(&allocation, &before, errors);
    } else if allocation.is_present() {
        self::validate_allocation(new, &allocation, errors);
    }
    validate_device_status(new, errors);
}

fn check_reserved(new: &Object, old: &Object, errors: &mut Errors) {
    let list = new.at(&RESERVED);
    if checks::max_items(&list, RESERVED_MAX, errors) {
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
    let old_uids: HashSet<&str> = before.items().map(|user| user.field("uid").str()).collect();
    let added = list.items().any(|user| !old_uids.contains(user.field("uid").str()));
    if added && new.deletion_timestamp().is_some() {
        errors.push(list.forbidden(
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set",
        ));
    }
}

fn validate_allocation(new: &Object, allocation: &Cursor<'_>, errors: &mut Errors) {
    let devices = allocation.field("devices");
    let (results, config) = (devices.field("results"), devices.field("config"));
    let spec = new.at(&["spec", "devices"]);
    let request_names = claim::references(&spec);
    if checks::max_items(&results, shared_fields::LIST_MAX, errors) {
        for result in results.items() {
            claim::validate_reference(&result.field("request"), &request_names, errors);
            naming::validate_driver(&result.field("driver"), errors);
            naming::validate_pool(&result.field("pool"), errors);
            naming::validate_label(&result.field("device"), errors);
            shared_fields::validate_binding_conditions(&result, errors);
            validate_share_id(&result.field("shareID"), errors);
        }
    }
    if checks::max_items(&config, CONFIG_MAX, errors) {
        for entry in config.items() {
            let source = entry.field("source");
            match source.str() {
                "" => errors.push(source.required("")),
                _ => checks::one_of(&source, &["FromClass", "FromClaim"], errors),
            }
            claim::validate_references(&entry.field("requests"), &request_names, errors);
            shared_fields::validate_opaque(&entry, errors);
        }
    }
    let selector = allocation.field("nodeSelector");
    if selector.is_present() {
        node_selector::validate(&selector, errors);
    }
}

fn validate_share_id(at: &Cursor<'_>, errors: &mut Errors) {
    let text = at.str();
    let lower = !text.bytes().any(|b| b.is_ascii_uppercase());
    let uuid = text.len() == 36 && lower && uuid::Uuid::parse_str(text).is_ok();
    if at.is_present() && !uuid {
        errors.push(at.invalid("must be a lowercase UUID in 8-4-4-4-12 format"));
    }
}

fn validate_device_status(new: &Object, errors: &mut Errors) {
    const CONDITIONS_MAX: usize = 8;
    const INTERFACE_MAX: usize = 256;
    const HARDWARE_MAX: usize = 128;
    const ADDRESSES_MAX: usize = 16;
    let (allocated_devices, mut seen) =
        (list_allocated(new).into_iter().collect::<HashSet<_>>(), HashSet::new());
    for device in new.at(&DEVICE_STATUS).items() {
        naming::validate_driver(&device.field("driver"), errors);
        naming::validate_pool(&device.field("pool"), errors);
        naming::validate_label(&device.field("device"), errors);
        let id = device_id(&device);
        if !seen.insert(id) {
            errors.push(Error::duplicate(&device.path(), id[..3].join("/")));
        }
        if !allocated_devices.contains(&id) {
            let text = "must be an allocated device in the claim";
            errors.push(Error::invalid(&device.path(), id[..3].join("/"), text));
        }
        let conditions = device.field("conditions");
        if checks::max_items(&conditions, CONDITIONS_MAX, errors) {
            validate_conditions(&conditions, errors);
        }
        shared_fields::validate_raw(&device.field("data"), false, errors);
        let network = device.field("networkData");
        checks::max_bytes(&network.field("interfaceName"), INTERFACE_MAX, errors);
        checks::max_bytes(&network.field("hardwareAddress"), HARDWARE_MAX, errors);
        let addresses = network.field("ips");
        if checks::max_items(&addresses, ADDRESSES_MAX, errors) {
            let mut seen = HashSet::new();
            for address in addresses.items() {
                ranges::interface_address(&address, errors);
                checks::unique(&mut seen, &address, errors);
            }
        }
    }
}

/// Returns errors for missing permissions: to change the allocation, and to change the device status of each driver.
pub(super) async fn missing_permissions(objects: &Objects, write: Write<'_>) -> Errors {
    let Some(old) = write.old else { return Vec::new() };
    let (new, mut errors) = (write.new, Vec::new());
    let changed = |path: &[&str]| !checks::is_same(&new.at(path), &old.at(path));
    if changed(&ALLOCATION) || changed(&RESERVED) {
        let attributes = Attributes::resource(write.user.clone(), write.verb, &resource_claims(), "", "")
            .with_subresource("binding");
        if let Err(status) = objects.authorizer.decide(&attributes).await.to_result(&attributes) {
            let text = format!(
                "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", verb=\"{}\" permission: {}",
                write.verb, status.message
            );
            errors.push(new.at(&ALLOCATION).forbidden(&text));
        }
    }
    if new.at(&ALLOCATION).is_present() && changed(&DEVICE_STATUS) {
        errors.extend(denied_driver(objects, write, old).await);
    }
    errors
}

/// Returns an error for the first driver whose device status changes without permission.
async fn denied_driver(objects: &Objects, write: Write<'_>, old: &Object) -> Option<Error> {
    let verb = format!("arbitrary-node:{}", write.verb);
    for driver in changed_drivers(write.new, old) {
        let (user, namespace) = (write.user.clone(), write.new.namespace());
        let attributes = Attributes::resource(user, &verb, &resource_claims(), namespace, &driver)
            .with_subresource("driver");
        if let Err(status) = objects.authorizer.decide(&attributes).await.to_result(&attributes) {
            return Some(write.new.at(&DEVICE_STATUS).forbidden(&format!(
                "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{verb}]\" permission: {}",
                status.message
            )));
        }
    }
    None
}

fn changed_drivers(new: &Object, old: &Object) -> BTreeSet<String> {
    let (new_value, old_value) = (new.at(&DEVICE_STATUS), old.at(&DEVICE_STATUS));
    let is_in = |list: &Cursor<'_>, at: &Cursor<'_>| list.items().any(|other| other.same_as(at));
    let added = new_value.items().filter(|at| !is_in(&old_value, at));
    let changed = added.chain(old_value.items().filter(|at| !is_in(&new_value, at)));
    changed.map(|at| at.field("driver").str().to_owned()).collect()
}

fn resource_claims() -> GroupResource {
    GroupResource::new("resource.k8s.io", "resourceclaims")
}
