//! Checks of containers.

use std::collections::BTreeSet;

use portico_machinery::Cursor;

use super::violation::{Pod, Violation, describe_containers, describe_names, quote_names};

const DEFAULT_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

fn context<'a>(container: &Cursor<'a>) -> Cursor<'a> {
    container.field("securityContext")
}

/// Returns the names of the containers for which a test is true.
fn names<'a>(pod: &Pod<'a>, test: impl Fn(&Cursor<'a>) -> bool) -> Vec<&'a str> {
    pod.containers().filter(|container| test(container)).map(|c| c.field("name").str()).collect()
}

/// Returns the names of the containers for which a function returns values, and all distinct values.
fn collect_values<'a>(
    pod: &Pod<'a>,
    values_of: impl Fn(&Cursor<'a>) -> Vec<String>,
) -> (Vec<&'a str>, Vec<String>) {
    let (mut names, mut all) = (Vec::new(), BTreeSet::new());
    for container in pod.containers() {
        let found = values_of(&container);
        if !found.is_empty() {
            names.push(container.field("name").str());
            all.extend(found);
        }
    }
    (names, all.into_iter().collect())
}

/// Returns the capabilities that a container adds and that are not allowed.
fn disallowed_capabilities(container: &Cursor<'_>, allowed: &[&str]) -> Vec<String> {
    let added = context(container).field("capabilities").field("add");
    added.items().map(|c| c.str().to_owned()).filter(|c| !allowed.contains(&c.as_str())).collect()
}

pub(super) fn added_capabilities(pod: &Pod<'_>) -> Option<Violation> {
    let (names, capabilities) =
        collect_values(pod, |container| disallowed_capabilities(container, &DEFAULT_CAPABILITIES));
    (!names.is_empty()).then(|| {
        Violation::new(
            "non-default capabilities",
            format!(
                "{} must not include {} in securityContext.capabilities.add",
                describe_containers(&names),
                quote_names(&capabilities)
            ),
        )
    })
}

pub(super) fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    let drops_all = |container: &Cursor<'_>| {
        context(container).field("capabilities").field("drop").items().any(|c| c.str() == "ALL")
    };
    let keeping = names(pod, |container| !drops_all(container));
    let (adding, capabilities) =
        collect_values(pod, |container| disallowed_capabilities(container, &["NET_BIND_SERVICE"]));
    let mut details = Vec::new();
    if !keeping.is_empty() {
        let containers = describe_containers(&keeping);
        details.push(format!("{containers} must set securityContext.capabilities.drop=[\"ALL\"]"));
    }
    if !adding.is_empty() {
        let (containers, added) = (describe_containers(&adding), quote_names(&capabilities));
        details.push(format!("{containers} must not include {added} in securityContext.capabilities.add"));
    }
    (!details.is_empty()).then(|| Violation::new("unrestricted capabilities", details.join("; ")))
}

pub(super) fn capabilities_unless_windows(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows() { None } else { capabilities(pod) }
}

pub(super) fn escalation(pod: &Pod<'_>) -> Option<Violation> {
    let names = names(pod, |container| {
        context(container).field("allowPrivilegeEscalation").opt_bool() != Some(false)
    });
    (!names.is_empty()).then(|| {
        let containers = describe_containers(&names);
        let detail = format!("{containers} must set securityContext.allowPrivilegeEscalation=false");
        Violation::new("allowPrivilegeEscalation != false", detail)
    })
}

pub(super) fn escalation_unless_windows(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows() { None } else { escalation(pod) }
}

pub(super) fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let names = names(pod, |container| context(container).field("privileged").bool());
    (!names.is_empty()).then(|| {
        let containers = describe_containers(&names);
        Violation::new("privileged", format!("{containers} must not set securityContext.privileged=true"))
    })
}

pub(super) fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
    let (names, ports) = collect_values(pod, |container| {
        let ports = container.field("ports").items().filter_map(|port| port.field("hostPort").i64());
        ports.filter(|port| *port != 0).map(|port| port.to_string()).collect()
    });
    (!names.is_empty()).then(|| {
        let uses = if names.len() == 1 { "uses" } else { "use" };
        let noun = if ports.len() == 1 { "hostPort" } else { "hostPorts" };
        let detail = format!("{} {uses} {noun} {}", describe_containers(&names), ports.join(", "));
        Violation::new("hostPort", detail)
    })
}

pub(super) fn probed_hosts(pod: &Pod<'_>) -> Option<Violation> {
    let (mut names, hosts) = collect_values(pod, |container| {
        let lifecycle = container.field("lifecycle");
        let handlers = ["livenessProbe", "readinessProbe", "startupProbe"]
            .map(|probe| container.field(probe))
            .into_iter()
            .chain(["postStart", "preStop"].map(|hook| lifecycle.field(hook)));
        let hosts = handlers.flat_map(|handler| {
            ["httpGet", "tcpSocket"].map(|action| handler.field(action).field("host").str().to_owned())
        });
        hosts.filter(|host| !host.is_empty()).collect()
    });
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| {
        let uses = if names.len() == 1 { "uses" } else { "use" };
        let hosts_text = describe_names("probe or lifecycle host", "probe or lifecycle hosts", &hosts);
        Violation::new(
            "probe or lifecycle host",
            format!("{} {uses} {hosts_text}", describe_containers(&names)),
        )
    })
}

pub(super) fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    let (names, kinds) = collect_values(pod, |container| {
        let kind = context(container).field("procMount").opt_str();
        kind.filter(|kind| *kind != "Default").map(str::to_owned).into_iter().collect()
    });
    (!names.is_empty()).then(|| {
        let (containers, kinds) = (describe_containers(&names), quote_names(&kinds));
        Violation::new("procMount", format!("{containers} must not set securityContext.procMount to {kinds}"))
    })
}

pub(super) fn proc_mount_unless_user_namespace(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_user_namespace() { None } else { proc_mount(pod) }
}
