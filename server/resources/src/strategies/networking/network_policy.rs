//! NetworkPolicy: allowed traffic of pods. All fields are mutable.

use std::collections::HashSet;

use ipnet::IpNet;
use portico_machinery::field::Error;
use portico_machinery::{Cursor, Object};

use portico_registry::{DecodeStrategy, RequestTime, Strategy};
use portico_validation::Errors;
use portico_validation::{checks, label_selector, ranges, values};

/// Directions of traffic: field of the rules, and field of the peers.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

pub(crate) struct NetworkPolicy;

impl DecodeStrategy for NetworkPolicy {
    fn default(&self, object: &mut Object, _moment: RequestTime) {
        for (direction, _) in DIRECTIONS {
            object.edit_each(&["spec", direction], |rule| {
                rule.edit_each(&["ports"], |port| {
                    if !port.at(&["protocol"]).is_present() {
                        port.set(&["protocol"], "TCP");
                    }
                });
            });
        }
        if object.at(&["spec", "policyTypes"]).is_empty() {
            let egress = !object.at(&["spec", "egress"]).is_empty();
            object.set(&["spec", "policyTypes"], &["Ingress", "Egress"][..if egress { 2 } else { 1 }]);
        }
    }
}

impl Strategy for NetworkPolicy {
    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate(new, &HashSet::new(), errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        let old_cidrs = blocks(old).flat_map(|block| cidrs(&block)).map(|at| at.str()).collect();
        validate(new, &old_cidrs, errors);
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        blocks(new).flat_map(|block| cidrs(&block)).flat_map(|at| ranges::warnings(&at)).collect()
    }
}

/// Returns all IP blocks of an object.
fn blocks(object: &Object) -> impl Iterator<Item = Cursor<'_>> {
    let peers = DIRECTIONS.into_iter().flat_map(|(direction, peers)| {
        let rules: Vec<_> = object.at(&["spec", direction]).items().collect();
        rules.into_iter().flat_map(move |rule| rule.field(peers).items().collect::<Vec<_>>())
    });
    peers.map(|peer| peer.field("ipBlock"))
}

/// Returns all CIDRs of a block, also the excluded ones.
fn cidrs<'a>(block: &Cursor<'a>) -> Vec<Cursor<'a>> {
    std::iter::once(block.field("cidr"))
        .filter(Cursor::is_present)
        .chain(block.field("except").items())
        .collect()
}

fn validate(new: &Object, old_cidrs: &HashSet<&str>, errors: &mut Errors) {
    let spec = new.at(&["spec"]);
    label_selector(&spec.field("podSelector"), errors);
    for (direction, peers) in DIRECTIONS {
        for rule in spec.field(direction).items() {
            rule.field("ports").items().for_each(|at| validate_port(&at, errors));
            rule.field(peers).items().for_each(|at| validate_peer(&at, old_cidrs, errors));
        }
    }
    let types = spec.field("policyTypes");
    if types.len() > 2 {
        errors.push(types.invalid("may not specify more than two policyTypes"));
        return;
    }
    for policy_type in types.items() {
        checks::one_of(&policy_type, &["Ingress", "Egress"], errors);
    }
}

fn validate_port(port: &Cursor<'_>, errors: &mut Errors) {
    let (number, end) = (port.field("port"), port.field("endPort"));
    checks::one_of(&port.field("protocol"), &["TCP", "UDP", "SCTP"], errors);
    match number.i64() {
        Some(first) => {
            values::port(&number, errors);
            let Some(last) = end.i64() else { return };
            if last < first {
                let text = "must be greater than or equal to `port`";
                errors.push(Error::invalid(&end.path(), first, text));
            }
            values::port(&end, errors);
        }
        None if number.is_present() => {
            if end.is_present() {
                errors.push(end.invalid("may not be specified when `port` is non-numeric"));
            }
            errors.extend(values::port_name(number.str()).iter().map(|m| number.invalid(m)));
        }
        None if end.is_present() => {
            errors.push(end.invalid("may not be specified when `port` is not specified"));
        }
        None => {}
    }
}

fn validate_peer(peer: &Cursor<'_>, old_cidrs: &HashSet<&str>, errors: &mut Errors) {
    let [pods, namespaces, block] = ["podSelector", "namespaceSelector", "ipBlock"].map(|f| peer.field(f));
    for selector in [&pods, &namespaces] {
        label_selector(selector, errors);
    }
    if block.is_present() {
        validate_ip_block(&block, old_cidrs, errors);
    }
    let selects = pods.is_present() || namespaces.is_present();
    if !selects && !block.is_present() {
        errors.push(peer.required("must specify a peer"));
    } else if selects && block.is_present() {
        errors.push(peer.forbidden("may not specify both ipBlock and another peer"));
    }
}

fn validate_ip_block(block: &Cursor<'_>, old_cidrs: &HashSet<&str>, errors: &mut Errors) {
    let cidr = block.field("cidr");
    if cidr.str().is_empty() {
        errors.push(cidr.required(""));
        return;
    }
    let Some(outer) = validate_range(&cidr, old_cidrs, errors) else { return };
    for except in block.field("except").items() {
        let Some(inner) = validate_range(&except, old_cidrs, errors) else { continue };
        if !outer.contains(&inner.trunc()) || outer.prefix_len() >= inner.prefix_len() {
            errors.push(except.invalid("must be a strict subset of `cidr`"));
        }
    }
}

/// Parses a CIDR. Adds an error if it is invalid and the old object does not contain it.
fn validate_range(at: &Cursor<'_>, old_cidrs: &HashSet<&str>, errors: &mut Errors) -> Option<IpNet> {
    if old_cidrs.contains(at.str()) {
        return ranges::parse_lenient(at.str()).map(|(range, _)| range);
    }
    ranges::cidr(at, errors)
}
