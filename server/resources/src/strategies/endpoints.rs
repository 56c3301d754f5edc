//! Endpoints: addresses and ports of a Service, deprecated in favor of EndpointSlice.

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object, names};

use super::join_with_limit;
use portico_registry::{Strategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::values;

pub(crate) struct Endpoints;

impl Strategy for Endpoints {
    fn validates_metadata_again(&self) -> bool {
        true
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        for subset in new.at(&["subsets"]).items() {
            validate_subset(&subset, errors);
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        // Unchanged subsets need not satisfy rules that were added later.
        if !new.at(&["subsets"]).same_as(&old.at(&["subsets"])) {
            self.validate(new, errors);
        }
    }

    fn warnings(&self, new: &Object, _old: Option<&Object>) -> Vec<String> {
        if new.label("endpoints.kubernetes.io/managed-by") == Some("endpoint-controller") {
            return Vec::new();
        }
        let subsets = new.at(&["subsets"]);
        let addresses = subsets.items().flat_map(|s| {
            [s.field("addresses"), s.field("notReadyAddresses")].into_iter().flat_map(|list| list.items())
        });
        addresses.filter_map(|a| values::ip_warning(&a.field("ip"))).collect()
    }
}

impl TableStrategy for Endpoints {
    fn cell(&self, _function: &str, object: &Object) -> Cell {
        Cell::text(ready_addresses(object))
    }
}

fn validate_subset(subset: &Cursor<'_>, errors: &mut Errors) {
    let (ready, not_ready) = (subset.field("addresses"), subset.field("notReadyAddresses"));
    if ready.is_empty() && not_ready.is_empty() {
        errors.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
    }
    for address in ready.items().chain(not_ready.items()) {
        let (ip, hostname, node) =
            (address.field("ip"), address.field("hostname"), address.field("nodeName"));
        let parsed = values::ip(&ip, errors);
        values::endpoint_ip(&ip, parsed, errors);
        if !hostname.str().is_empty() {
            errors.extend(names::to_field_errors(
                &hostname.path(),
                hostname.str(),
                values::label(hostname.str()),
            ));
        }
        if node.is_present() {
            errors.extend(names::to_field_errors(
                &node.path(),
                node.str(),
                names::dns1123_subdomain(node.str()),
            ));
        }
    }
    let ports = subset.field("ports");
    for port in ports.items() {
        validate_port(&port, ports.len() > 1, errors);
    }
}

fn validate_port(port: &Cursor<'_>, is_name_required: bool, errors: &mut Errors) {
    let (name, protocol, app) = (port.field("name"), port.field("protocol"), port.field("appProtocol"));
    if !name.str().is_empty() {
        errors.extend(names::to_field_errors(&name.path(), name.str(), values::label(name.str())));
    } else if is_name_required {
        errors.push(name.required(""));
    }
    values::port(&port.field("port"), errors);
    match protocol.str() {
        "" => errors.push(protocol.required("")),
        "TCP" | "UDP" | "SCTP" => {}
        _ => errors.push(protocol.not_supported(&["SCTP", "TCP", "UDP"])),
    }
    if app.is_present() {
        errors.extend(names::to_field_errors(&app.path(), app.str(), names::qualified_name(app.str())));
    }
}

fn ready_addresses(object: &Object) -> String {
    let subsets = object.at(&["subsets"]);
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut texts = Vec::new();
    for subset in subsets.items() {
        let ips: Vec<&str> = subset.field("addresses").items().map(|a| a.field("ip").str()).collect();
        let ports: Vec<i64> =
            subset.field("ports").items().map(|p| p.field("port").i64().unwrap_or(0)).collect();
        if ports.is_empty() {
            texts.extend(ips.iter().map(|ip| (*ip).to_owned()));
        }
        for port in ports {
            texts.extend(ips.iter().map(|ip| host_port(ip, port)));
        }
    }
    join_with_limit(&texts, 3)
}

fn host_port(ip: &str, port: i64) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}
