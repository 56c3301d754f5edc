//! Which addresses a write takes and which it gives back.

use std::net::IpAddr;

use portico_machinery::Object;
use portico_machinery::field::Error;

use super::families;
use super::fault::Fault;
use super::view::View;
use crate::allocation::{AddressPool, Family};

/// Takes what the new Service needs; the answer is what it no longer has.
pub(super) fn settle(
    new: &mut Object,
    old: Option<&Object>,
    pool: &mut AddressPool<'_>,
) -> Result<Vec<String>, Fault> {
    let now = View::of(new);
    let Some(old) = old else {
        allocate(new, pool)?;
        return Ok(Vec::new());
    };
    let then = View::of(old);
    if families::stays_preferring(new, old) {
        return Ok(Vec::new());
    }
    if then.is_external_name() {
        allocate(new, pool)?;
        return Ok(Vec::new());
    }
    if then.is_headless() {
        return Ok(Vec::new());
    }
    let had: Vec<String> = then.addresses().into_iter().map(str::to_owned).collect();
    if now.is_external_name() {
        return Ok(had);
    }
    match (then.families().len(), now.families().len()) {
        (1, 2) => {
            let primary = now.addresses().first().map(|ip| (*ip).to_owned());
            let second = now.addresses().get(1).map(|ip| (*ip).to_owned());
            let family = now.families().get(1).and_then(|name| Family::named(name));
            let Some((primary, family)) = primary.zip(family) else { return Ok(Vec::new()) };
            let second = take(new, second.as_deref().unwrap_or_default(), family, pool)?;
            new.set(&["spec", "clusterIPs"], [primary, second]);
            Ok(Vec::new())
        }
        (2, 1) => Ok(had.into_iter().skip(1).collect()),
        _ => Ok(Vec::new()),
    }
}

/// One address for each family.
fn allocate(new: &mut Object, pool: &mut AddressPool<'_>) -> Result<(), Fault> {
    let spec = View::of(new);
    if !spec.needs_address() || spec.addresses().first() == Some(&"None") {
        return Ok(());
    }
    let given: Vec<String> = spec.addresses().into_iter().map(str::to_owned).collect();
    let families: Vec<Family> = spec.families().into_iter().filter_map(Family::named).collect();
    let mut addresses = Vec::new();
    for (at, family) in families.into_iter().enumerate() {
        let wanted = given.get(at).map(String::as_str).unwrap_or_default();
        addresses.push(take(new, wanted, family, pool)?);
    }
    new.set(&["spec", "clusterIP"], addresses.first());
    new.set(&["spec", "clusterIPs"], addresses);
    Ok(())
}

/// This address, or any of the family when it is empty.
fn take(new: &Object, wanted: &str, family: Family, pool: &mut AddressPool<'_>) -> Result<String, Fault> {
    if wanted.is_empty() {
        return pool.next(family, rand::random()).map(|address| address.to_string()).map_err(|why| {
            Fault::Internal(format!("failed to allocate a serviceIP for Service {:?}: {why}", new.name()))
        });
    }
    // What is no address was refused with the families.
    let Ok(address) = wanted.parse::<IpAddr>() else { return Ok(wanted.to_owned()) };
    pool.claim(address).map(|()| wanted.to_owned()).map_err(|why| {
        let text = format!("failed to allocate IP {wanted}: {why}");
        Fault::Invalid(vec![Error::invalid(&"spec.clusterIPs".into(), [wanted].as_slice(), &text)])
    })
}
