//! Checks of containers.

use std::collections::BTreeSet;

use portico_machinery::Cursor;

use super::violation::{Pod, Violation, containers_named, named, quoted};

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
fn having<'a>(pod: &Pod<'a>, of: impl Fn(&Cursor<'a>) -> Vec<String>) -> (Vec<&'a str>, Vec<String>) {
    let (mut names, mut all) = (Vec::new(), BTreeSet::new());
    for container in pod.containers() {
        let found = of(&container);
        if !found.is_empty() {
            names.push(container.field("name").str());
            all.extend(found);
        }
    }
    (names, all.into_iter().collect())
}

/// Returns the capabilities that a container adds and that are not allowed.
fn added(container: &Cursor<'_>, allowed: &[&str]) -> Vec<String> {
    let added = context(container).field("capabilities").field("add");
    added.items().map(|c| c.str().to_owned()).filter(|c| !allowed.contains(&c.as_str())).collect()
}

pub(super) fn added_capabilities(pod: &Pod<'_>) -> Option<Violation> {
    let (names, capabilities) = having(pod, |container| added(container, &DEFAULT_CAPABILITIES));
    (!names.is_empty()).then(|| {
        Violation::new(
            "non-default capabilities",
            format!(
                "{} must not include {} in securityContext.capabilities.add",
                containers_named(&names),
                quoted(&capabilities)
            ),
        )
    })
}

pub(super) fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    let drops_all = |container: &Cursor<'_>| {
        context(container).field("capabilities").field("drop").items().any(|c| c.str() == "ALL")
    };
    let keeping = names(pod, |container| !drops_all(container));
    let (adding, capabilities) = having(pod, |container| added(container, &["NET_BIND_SERVICE"]));
    let mut details = Vec::new();
    if !keeping.is_empty() {
        let whose = containers_named(&keeping);
        details.push(format!("{whose} must set securityContext.capabilities.drop=[\"ALL\"]"));
    }
    if !adding.is_empty() {
        let (whose, what) = (containers_named(&adding), quoted(&capabilities));
        details.push(format!("{whose} must not include {what} in securityContext.capabilities.add"));
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
        let whose = containers_named(&names);
        let detail = format!("{whose} must set securityContext.allowPrivilegeEscalation=false");
        Violation::new("allowPrivilegeEscalation != false", detail)
    })
}

pub(super) fn escalation_unless_windows(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows() { None } else { escalation(pod) }
}

pub(super) fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let names = names(pod, |container| context(container).field("privileged").bool());
    (!names.is_empty()).then(|| {
        let whose = containers_named(&names);
        Violation::new("privileged", format!("{whose} must not set securityContext.privileged=true"))
    })
}

pub(super) fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
    let (names, ports) = having(pod, |container| {
        let ports = container.field("ports").items().filter_map(|port| port.field("hostPort").i64());
        ports.filter(|port| *port != 0).map(|port| port.to_string()).collect()
    });
    (!names.is_empty()).then(|| {
        let uses = if names.len() == 1 { "uses" } else { "use" };
        let word = if ports.len() == 1 { "hostPort" } else { "hostPorts" };
        let detail = format!("{} {uses} {word} {}", containers_named(&names), ports.join(", "));
        Violation::new("hostPort", detail)
    })
}

pub(super) fn probed_hosts(pod: &Pod<'_>) -> Option<Violation> {
    let (mut names, hosts) = having(pod, |container| {
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
        let what = named("probe or lifecycle host", "probe or lifecycle hosts", &hosts);
        Violation::new("probe or lifecycle host", format!("{} {uses} {what}", containers_named(&names)))
    })
}

pub(super) fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    let (names, kinds) = having(pod, |container| {
        let kind = context(container).field("procMount").opt_str();
        kind.filter(|kind| *kind != "Default").map(str::to_owned).into_iter().collect()
    });
    (!names.is_empty()).then(|| {
        let (whose, kinds) = (containers_named(&names), quoted(&kinds));
        Violation::new("procMount", format!("{whose} must not set securityContext.procMount to {kinds}"))
    })
}

pub(super) fn proc_mount_unless_own_users(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_own_users() { None } else { proc_mount(pod) }
}
