//! Validation of container ports and host ports.

use std::collections::HashSet;

use portico_machinery::Cursor;
use portico_machinery::field::Error;

use crate::Errors;
use crate::{checks, values};

/// Validates the ports of one container.
pub(super) fn validate(ports: &Cursor<'_>, errors: &mut Errors) {
    let mut names = HashSet::new();
    for port in ports.items() {
        let name = port.field("name");
        if !name.str().is_empty() {
            let diagnostics = values::port_name(name.str());
            if diagnostics.is_empty() && !names.insert(name.str()) {
                errors.push(name.duplicate());
            }
            errors.extend(diagnostics.iter().map(|m| Error::invalid(&name.path(), name.str(), m)));
        }
        let container_port = port.field("containerPort");
        match container_port.i64().unwrap_or(0) {
            0 => errors.push(container_port.required("")),
            _ => values::port(&container_port, errors),
        }
        if port.field("hostPort").i64().unwrap_or(0) != 0 {
            values::port(&port.field("hostPort"), errors);
        }
        checks::required_one_of(&port.field("protocol"), &["SCTP", "TCP", "UDP"], errors);
    }
}

/// Requires that no two containers use the same host port.
pub(super) fn conflicts<'a>(containers: impl Iterator<Item = Cursor<'a>>, errors: &mut Errors) {
    let mut host_ports = HashSet::new();
    for container in containers {
        for port in container.field("ports").items() {
            let host_port = port.field("hostPort");
            let number = host_port.i64().unwrap_or(0);
            if number == 0 {
                continue;
            }
            let key = format!("{}/{}/{number}", port.field("protocol").str(), port.field("hostIP").str());
            if host_ports.contains(&key) {
                errors.push(Error::duplicate(&host_port.path(), &key));
            }
            host_ports.insert(key);
        }
    }
}

/// Requires that the host port equals the container port in a pod on the host network.
pub(super) fn match_host_network(spec: &Cursor<'_>, errors: &mut Errors) {
    if !spec.field("hostNetwork").bool() {
        return;
    }
    for container in spec.field("containers").items() {
        for port in container.field("ports").items() {
            let (host, inside) = (port.field("hostPort"), port.field("containerPort").i64().unwrap_or(0));
            let number = host.i64().unwrap_or(0);
            if number != 0 && number != inside {
                let text = "must match `containerPort` when `hostNetwork` is true";
                errors.push(Error::invalid(&host.path(), number, text));
            }
        }
    }
}
