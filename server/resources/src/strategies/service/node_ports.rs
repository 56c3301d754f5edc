//! Which node ports a write takes and which it gives back.

use std::collections::{HashMap, HashSet};

use portico_machinery::Object;
use portico_machinery::field::{Error, Path};

use super::fault::Fault;
use super::view::View;
use crate::allocation::{PortPool, Refusal};

/// Takes what the new Service needs; the answer is what it no longer has.
pub(super) fn settle(
    new: &mut Object,
    old: Option<&Object>,
    pool: &mut PortPool<'_>,
) -> Result<Vec<i64>, Fault> {
    let mut freed = Vec::new();
    let types = (old.is_some_and(|old| View::of(old).is_node_port_type()), View::of(new).is_node_port_type());
    match (old, types) {
        (None, (_, true)) => take_new(new, pool)?,
        (Some(old), (_, true)) => {
            take_more(new, &View::of(old).node_ports(), pool)?;
            let kept = View::of(new).node_ports();
            freed.extend(View::of(old).node_ports().into_iter().filter(|port| !kept.contains(port)));
        }
        (Some(old), (true, false)) => freed.extend(View::of(old).node_ports()),
        (_, (_, false)) => {}
    }
    freed.extend(health_port(new, old, pool)?);
    freed.sort_unstable();
    freed.dedup();
    Ok(freed)
}

/// On creation ports of one number share a node port: the one that is given, or a new one.
fn take_new(new: &mut Object, pool: &mut PortPool<'_>) -> Result<(), Fault> {
    let spec = View::of(new);
    let allocates = spec.allocates_node_ports();
    let numbers: Vec<(i64, i64)> = spec
        .ports()
        .map(|p| (p.field("port").i64().unwrap_or(0), p.field("nodePort").i64().unwrap_or(0)))
        .collect();
    let mut given: HashMap<i64, i64> = HashMap::new();
    for (port, number) in numbers.iter().copied().filter(|(_, number)| *number != 0) {
        given.entry(port).or_insert(number);
    }
    let mut shared: HashMap<i64, i64> = HashMap::new();
    let mut chosen = Vec::new();
    for (at, (port, node_port)) in numbers.iter().copied().enumerate() {
        let known = shared.get(&port).copied();
        let number = match (known, node_port) {
            (_, 0) if !allocates => 0,
            (Some(known), 0) => known,
            (Some(known), same) if known == same => known,
            (Some(_), other) => claim(other, at, pool)?,
            (None, _) => match given.get(&port).copied() {
                Some(number) => claim(number, at, pool)?,
                None => next(pool)?,
            },
        };
        if number != 0 {
            shared.entry(port).or_insert(number);
        }
        chosen.push(number);
    }
    set(new, &chosen);
    Ok(())
}

/// On updates every port without a node port gets one of its own.
fn take_more(new: &mut Object, had: &[i64], pool: &mut PortPool<'_>) -> Result<(), Fault> {
    let spec = View::of(new);
    let allocates = spec.allocates_node_ports();
    let (mut chosen, mut seen, mut taken) = (Vec::new(), HashSet::new(), HashSet::new());
    for (at, port) in spec.ports().enumerate() {
        let (given, protocol) = (port.field("nodePort").i64().unwrap_or(0), port.field("protocol").str());
        let number = match given {
            0 if !allocates => 0,
            0 => next(pool)?,
            given if had.contains(&given) || taken.contains(&given) => given,
            given => {
                taken.insert(given);
                claim(given, at, pool)?
            }
        };
        if number != 0 && !seen.insert((protocol, number)) {
            return Err(Fault::Invalid(vec![Error::duplicate(&path(at), number)]));
        }
        chosen.push(number);
    }
    set(new, &chosen);
    Ok(())
}

/// Takes the port for health checks when it is needed now; the answer is the old one when it no longer is.
fn health_port(
    new: &mut Object,
    old: Option<&Object>,
    pool: &mut PortPool<'_>,
) -> Result<Option<i64>, Fault> {
    let before = old.map(View::of);
    let (needed, needs) =
        (before.as_ref().is_some_and(View::needs_health_port), View::of(new).needs_health_port());
    let given = View::of(new).health_port();
    match (needed, needs) {
        (false, true) => {
            let refused = |why: Refusal| {
                let text = format!("failed to allocate requested HealthCheck NodePort {given}: {why}");
                Fault::Internal(text)
            };
            let number = match given {
                0 => next(pool)?,
                given => pool.claim(given).map(|()| given).map_err(refused)?,
            };
            new.set(&["spec", "healthCheckNodePort"], number);
            Ok(None)
        }
        (true, false) => Ok(before.map(|before| before.health_port()).filter(|port| *port != 0)),
        _ => Ok(None),
    }
}

fn claim(number: i64, at: usize, pool: &mut PortPool<'_>) -> Result<i64, Fault> {
    let refused = |why: Refusal| Fault::Invalid(vec![Error::invalid(&path(at), number, &why.to_string())]);
    pool.claim(number).map(|()| number).map_err(refused)
}

fn next(pool: &mut PortPool<'_>) -> Result<i64, Fault> {
    let refused = |why: Refusal| Fault::Internal(format!("failed to allocate a nodePort: {why}"));
    pool.next(rand::random()).map(i64::from).map_err(refused)
}

fn path(at: usize) -> Path {
    Path::new("spec.ports").index(at).child("nodePort")
}

fn set(new: &mut Object, numbers: &[i64]) {
    let mut numbers = numbers.iter();
    new.edit_each(&["spec", "ports"], |port| {
        if let Some(number) = numbers.next().filter(|number| **number != 0) {
            port.set(&["nodePort"], number);
        }
    });
}
