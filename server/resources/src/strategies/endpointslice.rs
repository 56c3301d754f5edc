//! EndpointSlice: addresses of one family, and named ports.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object, names};

use super::join_with_limit;
use portico_registry::{RequestTime, Strategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::values;

const ENDPOINTS_MAX: usize = 1_000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
const HINTS_MAX: usize = 8;
const MANAGERS: [&str; 2] = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];

pub(crate) struct EndpointSlice;

impl Strategy for EndpointSlice {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn compares_metadata_again(&self, _is_status: bool) -> bool {
        false
    }

    fn prepare_create(&self, new: &mut Object, _moment: RequestTime) {
        drop_topology(new);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: RequestTime) {
        if !new.at(&["endpoints"]).same_as(&old.at(&["endpoints"])) {
            drop_topology(new);
        }
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        validate_family(new, errors);
        validate_ports(&new.at(&["ports"]), errors);
        validate_endpoints(new, new.at(&["addressType"]).str(), errors);
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        let (family, before) = (new.at(&["addressType"]), old.at(&["addressType"]));
        validate_family(new, errors);
        validate_ports(&new.at(&["ports"]), errors);
        // Unchanged endpoints need not satisfy rules that were added later.
        if !new.at(&["endpoints"]).same_as(&old.at(&["endpoints"])) {
            validate_endpoints(new, family.str(), errors);
        }
        if !family.same_as(&before) {
            errors.push(family.invalid("field is immutable"));
        }
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let mut warnings = Vec::new();
        if old.is_none() && new.at(&["addressType"]).str() == "FQDN" {
            warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
        if !new.label("endpointslice.kubernetes.io/managed-by").is_some_and(|m| MANAGERS.contains(&m)) {
            let endpoints = new.at(&["endpoints"]);
            let addresses = endpoints.items().flat_map(|e| e.field("addresses").items());
            warnings.extend(addresses.filter_map(|a| values::ip_warning(&a)));
        }
        warnings
    }
}

impl TableStrategy for EndpointSlice {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        let texts: Vec<String> = match function {
            "endpointslice-ports" => object.at(&["ports"]).items().map(|p| port_text(&p)).collect(),
            _ => object
                .at(&["endpoints"])
                .items()
                .flat_map(|e| e.field("addresses").items())
                .map(|a| a.str().to_owned())
                .collect(),
        };
        Cell::text(if texts.is_empty() { "<unset>".to_owned() } else { join_with_limit(&texts, 3) })
    }
}

fn port_text(port: &Cursor<'_>) -> String {
    match (port.field("port").i64(), port.field("name").str()) {
        (Some(number), _) => number.to_string(),
        (None, "") => "*".to_owned(),
        (None, name) => name.to_owned(),
    }
}

fn validate_family(new: &Object, errors: &mut Errors) {
    let family = new.at(&["addressType"]);
    match family.str() {
        "" => errors.push(family.required("")),
        "IPv4" | "IPv6" | "FQDN" => {}
        _ => errors.push(family.not_supported(&["FQDN", "IPv4", "IPv6"])),
    }
}

fn drop_topology(object: &mut Object) {
    let present = object.at(&["endpoints"]).items().any(|e| e.field("deprecatedTopology").is_present());
    if !present {
        return;
    }
    let endpoints: Vec<_> = object
        .at(&["endpoints"])
        .items()
        .filter_map(|e| Object::from_node(e.node()?).ok())
        .map(|mut endpoint| {
            endpoint.remove(&["deprecatedTopology"]);
            endpoint.into_node().0
        })
        .collect();
    object.set(&["endpoints"], endpoints);
}

fn validate_endpoints(new: &Object, family: &str, errors: &mut Errors) {
    let endpoints = new.at(&["endpoints"]);
    if endpoints.len() > ENDPOINTS_MAX {
        errors.push(Error::too_many(&endpoints.path(), endpoints.len(), ENDPOINTS_MAX));
        return;
    }
    for endpoint in endpoints.items() {
        let addresses = endpoint.field("addresses");
        if addresses.is_empty() {
            errors.push(addresses.required("must contain at least 1 address"));
        } else if addresses.len() > ADDRESSES_MAX {
            errors.push(Error::too_many(&addresses.path(), addresses.len(), ADDRESSES_MAX));
        }
        for address in addresses.items() {
            validate_address(&addresses, &address, family, errors);
        }
        let (node, hostname) = (endpoint.field("nodeName"), endpoint.field("hostname"));
        if node.is_present() {
            errors.extend(names::to_field_errors(
                &node.path(),
                node.str(),
                names::dns1123_subdomain(node.str()),
            ));
        }
        if hostname.is_present() {
            errors.extend(names::to_field_errors(
                &hostname.path(),
                hostname.str(),
                values::label(hostname.str()),
            ));
        }
        validate_hints(&endpoint.field("hints").field("forZones"), names::label_value, errors);
        validate_hints(&endpoint.field("hints").field("forNodes"), names::dns1123_subdomain, errors);
    }
}

fn validate_address(list: &Cursor<'_>, address: &Cursor<'_>, family: &str, errors: &mut Errors) {
    match family {
        "IPv4" | "IPv6" => {
            let Some(ip) = values::ip(address, errors) else { return };
            if ip.is_ipv4() != (family == "IPv4") {
                let text = format!("must be an {family} address");
                errors.push(Error::invalid_printed(&list.path(), &address.printed(), &text));
            }
            if family == "IPv6" && ip.to_string() != address.str() {
                errors.push(address.invalid(&format!("must be in canonical form ({:?})", ip.to_string())));
            }
            values::endpoint_ip(address, Some(ip), errors);
        }
        "FQDN" => {
            let name = address.str().strip_suffix('.').unwrap_or(address.str());
            if name.is_empty() {
                errors.push(address.required(""));
                return;
            }
            errors.extend(names::to_field_errors(
                &address.path(),
                address.str(),
                names::dns1123_subdomain(name),
            ));
            if !name.contains('.') {
                errors
                    .push(address.invalid("should be a domain with at least two segments separated by dots"));
            }
        }
        _ => {}
    }
}

fn validate_hints(hints: &Cursor<'_>, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
    if hints.len() > HINTS_MAX {
        errors.push(Error::too_many(&hints.path(), hints.len(), HINTS_MAX));
    }
    let mut seen = HashSet::new();
    for hint in hints.items() {
        let name = hint.field("name");
        errors.extend(names::to_field_errors(&name.path(), name.str(), rule(name.str())));
        if !seen.insert(name.str()) {
            errors.push(Error::duplicate(&name.path(), name.str()));
        }
    }
}

fn validate_ports(ports: &Cursor<'_>, errors: &mut Errors) {
    if ports.len() > PORTS_MAX {
        errors.push(Error::too_many(&ports.path(), ports.len(), PORTS_MAX));
        return;
    }
    let mut seen = HashSet::new();
    for port in ports.items() {
        let (name, protocol, app) = (port.field("name"), port.field("protocol"), port.field("appProtocol"));
        if !name.str().is_empty() {
            errors.extend(names::to_field_errors(&name.path(), name.str(), values::label(name.str())));
        }
        if !seen.insert(name.str()) {
            errors.push(Error::duplicate(&name.path(), name.str()));
        }
        if !matches!(protocol.str(), "TCP" | "UDP" | "SCTP") {
            errors.push(protocol.not_supported(&["SCTP", "TCP", "UDP"]));
        }
        if app.is_present() {
            errors.extend(names::to_field_errors(&app.path(), app.str(), names::qualified_name(app.str())));
        }
    }
}
