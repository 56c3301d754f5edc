//! Allocation and release of addresses in a write of a Service.

use std::net::IpAddr;

use portico_machinery::Object;
use portico_machinery::field::Error;

use super::allocation_failure::AllocationFailure;
use super::families;
use super::service_spec::ServiceSpec;
use crate::allocation::{AddressPool, IpFamily};

/// Allocates the addresses that the new Service needs. Returns the addresses to release.
pub(super) fn update_addresses(
    new: &mut Object,
    old: Option<&Object>,
    pool: &mut AddressPool<'_>,
) -> Result<Vec<String>, AllocationFailure> {
    let new_spec = ServiceSpec::of(new);
    let Some(old) = old else {
        allocate(new, pool)?;
        return Ok(Vec::new());
    };
    let old_spec = ServiceSpec::of(old);
    if families::keeps_dual_stack_preference(new, old) {
        return Ok(Vec::new());
    }
    if old_spec.is_external_name() {
        allocate(new, pool)?;
        return Ok(Vec::new());
    }
    if old_spec.is_headless() {
        return Ok(Vec::new());
    }
    let old_addresses: Vec<String> = old_spec.addresses().into_iter().map(str::to_owned).collect();
    if new_spec.is_external_name() {
        return Ok(old_addresses);
    }
    match (old_spec.families().len(), new_spec.families().len()) {
        (1, 2) => {
            let primary = new_spec.addresses().first().map(|ip| (*ip).to_owned());
            let second = new_spec.addresses().get(1).map(|ip| (*ip).to_owned());
            let family = new_spec.families().get(1).and_then(|name| IpFamily::from_name(name));
            let Some((primary, family)) = primary.zip(family) else { return Ok(Vec::new()) };
            let second = allocate_one(new, second.as_deref().unwrap_or_default(), family, pool)?;
            new.set(&["spec", "clusterIPs"], [primary, second]);
            Ok(Vec::new())
        }
        (2, 1) => Ok(old_addresses.into_iter().skip(1).collect()),
        _ => Ok(Vec::new()),
    }
}

/// Allocates one address for each family.
fn allocate(new: &mut Object, pool: &mut AddressPool<'_>) -> Result<(), AllocationFailure> {
    let spec = ServiceSpec::of(new);
    if !spec.needs_address() || spec.addresses().first() == Some(&"None") {
        return Ok(());
    }
    let requested: Vec<String> = spec.addresses().into_iter().map(str::to_owned).collect();
    let families: Vec<IpFamily> = spec.families().into_iter().filter_map(IpFamily::from_name).collect();
    let mut addresses = Vec::new();
    for (index, family) in families.into_iter().enumerate() {
        let requested_address = requested.get(index).map(String::as_str).unwrap_or_default();
        addresses.push(allocate_one(new, requested_address, family, pool)?);
    }
    new.set(&["spec", "clusterIP"], addresses.first());
    new.set(&["spec", "clusterIPs"], addresses);
    Ok(())
}

/// Allocates a specific address, or any address of the family if `requested` is empty.
fn allocate_one(
    new: &Object,
    requested: &str,
    family: IpFamily,
    pool: &mut AddressPool<'_>,
) -> Result<String, AllocationFailure> {
    if requested.is_empty() {
        return pool.allocate_next(family, rand::random()).map(|address| address.to_string()).map_err(
            |error| {
                AllocationFailure::Internal(format!(
                    "failed to allocate a serviceIP for Service {:?}: {error}",
                    new.name()
                ))
            },
        );
    }
    // Validation of the families has already refused invalid addresses.
    let Ok(address) = requested.parse::<IpAddr>() else { return Ok(requested.to_owned()) };
    pool.allocate(address).map(|()| requested.to_owned()).map_err(|error| {
        let text = format!("failed to allocate IP {requested}: {error}");
        AllocationFailure::Invalid(vec![Error::invalid(
            &"spec.clusterIPs".into(),
            [requested].as_slice(),
            &text,
        )])
    })
}
