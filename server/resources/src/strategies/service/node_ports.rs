//! Allocation and release of node ports in a write of a Service.

use std::collections::{HashMap, HashSet};

use portico_machinery::Object;
use portico_machinery::field::{Error, Path};

use super::allocation_failure::AllocationFailure;
use super::service_spec::ServiceSpec;
use crate::allocation::{AllocationError, PortPool};

/// Allocates the node ports that the new Service needs. Returns the ports to release.
pub(super) fn update_node_ports(
    new: &mut Object,
    old: Option<&Object>,
    pool: &mut PortPool<'_>,
) -> Result<Vec<i64>, AllocationFailure> {
    let mut freed = Vec::new();
    let types = (
        old.is_some_and(|old| ServiceSpec::of(old).is_node_port_type()),
        ServiceSpec::of(new).is_node_port_type(),
    );
    match (old, types) {
        (None, (_, true)) => allocate_for_create(new, pool)?,
        (Some(old), (_, true)) => {
            allocate_for_update(new, &ServiceSpec::of(old).node_ports(), pool)?;
            let new_ports = ServiceSpec::of(new).node_ports();
            freed.extend(
                ServiceSpec::of(old).node_ports().into_iter().filter(|port| !new_ports.contains(port)),
            );
        }
        (Some(old), (true, false)) => freed.extend(ServiceSpec::of(old).node_ports()),
        (_, (_, false)) => {}
    }
    freed.extend(update_health_port(new, old, pool)?);
    freed.sort_unstable();
    freed.dedup();
    Ok(freed)
}

/// Allocates the node ports of a new Service. Ports with the same number, such as TCP and UDP, share a node port.
fn allocate_for_create(new: &mut Object, pool: &mut PortPool<'_>) -> Result<(), AllocationFailure> {
    let spec = ServiceSpec::of(new);
    let allocates = spec.allocates_node_ports();
    let numbers: Vec<(i64, i64)> = spec
        .ports()
        .map(|p| (p.field("port").i64().unwrap_or(0), p.field("nodePort").i64().unwrap_or(0)))
        .collect();
    let mut requested: HashMap<i64, i64> = HashMap::new();
    for (port, number) in numbers.iter().copied().filter(|(_, number)| *number != 0) {
        requested.entry(port).or_insert(number);
    }
    let mut shared: HashMap<i64, i64> = HashMap::new();
    let mut chosen = Vec::new();
    for (index, (port, node_port)) in numbers.iter().copied().enumerate() {
        let allocated = shared.get(&port).copied();
        let number = match (allocated, node_port) {
            (_, 0) if !allocates => 0,
            (Some(allocated), 0) => allocated,
            (Some(allocated), requested_number) if allocated == requested_number => allocated,
            (Some(_), other) => allocate_port(other, index, pool)?,
            (None, _) => match requested.get(&port).copied() {
                Some(number) => allocate_port(number, index, pool)?,
                None => allocate_any(pool)?,
            },
        };
        if number != 0 {
            shared.entry(port).or_insert(number);
        }
        chosen.push(number);
    }
    set_node_ports(new, &chosen);
    Ok(())
}

/// Allocates a separate node port for each port without one in an update.
fn allocate_for_update(
    new: &mut Object,
    old_ports: &[i64],
    pool: &mut PortPool<'_>,
) -> Result<(), AllocationFailure> {
    let spec = ServiceSpec::of(new);
    let allocates = spec.allocates_node_ports();
    let (mut chosen, mut seen, mut taken) = (Vec::new(), HashSet::new(), HashSet::new());
    for (index, port) in spec.ports().enumerate() {
        let (requested, protocol) = (port.field("nodePort").i64().unwrap_or(0), port.field("protocol").str());
        let number = match requested {
            0 if !allocates => 0,
            0 => allocate_any(pool)?,
            requested if old_ports.contains(&requested) || taken.contains(&requested) => requested,
            requested => {
                taken.insert(requested);
                allocate_port(requested, index, pool)?
            }
        };
        if number != 0 && !seen.insert((protocol, number)) {
            return Err(AllocationFailure::Invalid(vec![Error::duplicate(&node_port_path(index), number)]));
        }
        chosen.push(number);
    }
    set_node_ports(new, &chosen);
    Ok(())
}

/// Allocates the health check port if the update starts to need it. Returns the old one if it is no longer needed.
fn update_health_port(
    new: &mut Object,
    old: Option<&Object>,
    pool: &mut PortPool<'_>,
) -> Result<Option<i64>, AllocationFailure> {
    let before = old.map(ServiceSpec::of);
    let (old_needs_port, new_needs_port) = (
        before.as_ref().is_some_and(ServiceSpec::needs_health_port),
        ServiceSpec::of(new).needs_health_port(),
    );
    let requested = ServiceSpec::of(new).health_port();
    match (old_needs_port, new_needs_port) {
        (false, true) => {
            let refused = |error: AllocationError| {
                let text = format!("failed to allocate requested HealthCheck NodePort {requested}: {error}");
                AllocationFailure::Internal(text)
            };
            let number = match requested {
                0 => allocate_any(pool)?,
                requested => pool.allocate(requested).map(|()| requested).map_err(refused)?,
            };
            new.set(&["spec", "healthCheckNodePort"], number);
            Ok(None)
        }
        (true, false) => Ok(before.map(|before| before.health_port()).filter(|port| *port != 0)),
        _ => Ok(None),
    }
}

fn allocate_port(number: i64, at: usize, pool: &mut PortPool<'_>) -> Result<i64, AllocationFailure> {
    let refused = |error: AllocationError| {
        AllocationFailure::Invalid(vec![Error::invalid(&node_port_path(at), number, &error.to_string())])
    };
    pool.allocate(number).map(|()| number).map_err(refused)
}

fn allocate_any(pool: &mut PortPool<'_>) -> Result<i64, AllocationFailure> {
    let refused = |error: AllocationError| {
        AllocationFailure::Internal(format!("failed to allocate a nodePort: {error}"))
    };
    pool.allocate_next(rand::random()).map(i64::from).map_err(refused)
}

fn node_port_path(at: usize) -> Path {
    Path::new("spec.ports").index(at).child("nodePort")
}

fn set_node_ports(new: &mut Object, numbers: &[i64]) {
    let mut numbers = numbers.iter();
    new.edit_each(&["spec", "ports"], |port| {
        if let Some(number) = numbers.next().filter(|number| **number != 0) {
            port.set(&["nodePort"], number);
        }
    });
}
