//! Defaults that apply to pods only. Templates remain unchanged, and their pods get the defaults when they are created.

use portico_machinery::{Object, Quantity};

use portico_validation::pod_spec::{aggregate_resource, default_spec, drop_old_annotations};

/// Sets absent fields of a pod.
pub(super) fn set(pod: &mut Object) {
    drop_old_annotations(pod);
    pod.edit(&["spec"], |spec| {
        default_spec(spec);
        if spec.at(&["terminationGracePeriodSeconds"]).i64().is_some_and(|seconds| seconds < 0) {
            spec.set(&["terminationGracePeriodSeconds"], 1);
        }
        if !spec.at(&["enableServiceLinks"]).is_present() {
            spec.set(&["enableServiceLinks"], true);
        }
        host_ports(spec);
        for list in ["containers", "initContainers"] {
            spec.edit_each(&[list], requests_from_limits);
        }
        if spec.at(&["resources"]).is_present() {
            pod_level(spec);
        }
    });
    pod_ips(pod);
}

/// Sets absent requests to the limits.
fn requests_from_limits(container: &mut Object) {
    let limits: Vec<(String, String)> = entries(container, &["resources", "limits"]);
    for (name, limit) in limits {
        if container.at(&["resources", "requests"]).entry_str(&name).is_none() {
            container.set(&["resources", "requests", &name], limit);
        }
    }
}

fn entries(object: &Object, path: &[&str]) -> Vec<(String, String)> {
    object.at(path).entries().map(|(name, value)| (name.to_owned(), value.str().to_owned())).collect()
}

/// Sets the host ports to the container ports if the pod uses the network of the host.
fn host_ports(spec: &mut Object) {
    if !spec.at(&["hostNetwork"]).bool() {
        return;
    }
    for list in ["containers", "initContainers"] {
        spec.edit_each(&[list], |container| {
            container.edit_each(&["ports"], |port| {
                let container_port = port.at(&["containerPort"]).i64();
                if let Some(number) =
                    container_port.filter(|_| port.at(&["hostPort"]).i64().unwrap_or(0) == 0)
                {
                    port.set(&["hostPort"], number);
                }
            });
        });
    }
}

/// Defaults the resources of the pod itself from those of its containers.
fn pod_level(spec: &mut Object) {
    for name in huge_pages(spec) {
        let pod_has =
            ["limits", "requests"].map(|list| spec.at(&["resources", list]).entry_str(&name).is_some());
        if pod_has == [false, false] {
            let sum = aggregate_resource(&spec.cursor(), "limits", &name).unwrap_or_default();
            spec.set(&["resources", "limits", &name], sum.to_string());
        }
    }
    let limits = entries(spec, &["resources", "limits"]);
    if limits.is_empty() {
        return;
    }
    for name in ["cpu", "memory"] {
        if spec.at(&["resources", "requests"]).entry_str(name).is_some() {
            continue;
        }
        let sum = aggregate_resource(&spec.cursor(), "requests", name).unwrap_or_default();
        if sum != Quantity::ZERO {
            spec.set(&["resources", "requests", name], sum.to_string());
        }
    }
    // Validation refuses limits of other resources.
    let of_pods = |name: &str| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
    for (name, limit) in limits.into_iter().filter(|(name, _)| of_pods(name)) {
        if spec.at(&["resources", "requests"]).entry_str(&name).is_none() {
            spec.set(&["resources", "requests", &name], limit);
        }
    }
}

/// Returns the sizes of huge pages for which a container has a limit.
fn huge_pages(spec: &Object) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for list in ["initContainers", "containers"] {
        for container in spec.at(&[list]).items() {
            for (name, _) in container.field("resources").field("limits").entries() {
                if name.starts_with("hugepages-") && !names.iter().any(|other| other == name) {
                    names.push(name.to_owned());
                }
            }
        }
    }
    names
}

/// Synchronizes `podIP` and `podIPs`: `podIP` is the first element of the list and takes precedence if they differ.
fn pod_ips(pod: &mut Object) {
    let first_ip = pod.str_at("status.podIP").to_owned();
    let first = pod.at(&["status", "podIPs"]).items().next().map(|ip| ip.field("ip").str().to_owned());
    match first {
        Some(first) if first_ip.is_empty() => pod.set(&["status", "podIP"], first),
        Some(first) if first == first_ip => {}
        _ if first_ip.is_empty() => {}
        _ => {
            let mut entry = Object::default();
            entry.set(&["ip"], first_ip);
            pod.remove(&["status", "podIPs"]);
            pod.push_node(&["status", "podIPs"], entry.into_node());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_default_to_limits_and_pod_ip_to_the_first_address() {
        let json = br#"{"spec":{"hostNetwork":true,"terminationGracePeriodSeconds":-5,
            "containers":[{"name":"c","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"1"}}}]},
            "status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.2"}]}}"#;
        let mut pod = Object::from_json(json).unwrap();
        set(&mut pod);
        let container = pod.at(&["spec", "containers"]).items().next().unwrap();
        assert_eq!(container.field("resources").field("requests").entry_str("cpu"), Some("1"));
        assert_eq!(container.field("ports").items().next().unwrap().field("hostPort").i64(), Some(80));
        assert_eq!(pod.at(&["spec", "terminationGracePeriodSeconds"]).i64(), Some(1));
        let ips: Vec<&str> = pod.at(&["status", "podIPs"]).items().map(|ip| ip.field("ip").str()).collect();
        assert_eq!(ips, ["10.0.0.1"]);
    }
}
