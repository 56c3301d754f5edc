//! The checks of the levels, as upstream's versions have them.

use portico_machinery::Cursor;

use super::policy::{Level, Standard};
use super::{containers, pods, volumes};

/// A pod or a template of pods.
pub(super) struct Pod<'a> {
    /// `metadata`
    pub(super) metadata: Cursor<'a>,
    /// `spec`
    pub(super) spec: Cursor<'a>,
}

impl<'a> Pod<'a> {
    /// What has a pod's metadata and spec.
    pub(super) fn of(at: Cursor<'a>) -> Self {
        Self { metadata: at.field("metadata"), spec: at.field("spec") }
    }

    /// All containers, in upstream's order.
    pub(super) fn containers(&self) -> impl Iterator<Item = Cursor<'a>> + use<'a> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        let lists: Vec<_> = lists.iter().flat_map(|list| self.spec.field(list).items()).collect();
        lists.into_iter()
    }

    /// Whether it is for Windows, where much does not apply.
    pub(super) fn is_windows(&self) -> bool {
        self.spec.field("os").field("name").str() == "windows"
    }

    /// Whether root inside is nobody outside.
    pub(super) fn has_own_users(&self) -> bool {
        self.spec.field("hostUsers").opt_bool() == Some(false)
    }
}

/// What a check finds wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) reason: String,
    pub(super) detail: String,
}

impl Violation {
    pub(super) fn new(reason: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { reason: reason.into(), detail: detail.into() }
    }
}

/// Looks at a pod.
type Test = fn(&Pod<'_>) -> Option<Violation>;

struct Check {
    level: Level,
    /// The minor versions from which on a test applies.
    since: &'static [(u32, Test)],
    /// The test of the baseline that this one stands for in restricted pods.
    instead_of: Option<usize>,
}

const fn baseline(since: &'static [(u32, Test)]) -> Check {
    Check { level: Level::Baseline, since, instead_of: None }
}

const fn restricted(since: &'static [(u32, Test)], instead_of: Option<usize>) -> Check {
    Check { level: Level::Restricted, since, instead_of }
}

/// Places of tests that others stand for.
const CAPABILITIES: usize = 1;
const HOST_PATHS: usize = 3;
const PROC_MOUNT: usize = 7;
const SECCOMP: usize = 9;

/// In the order of upstream's names for them, the baseline first.
const CHECKS: [Check; 19] = [
    baseline(&[(0, pods::app_armor)]),
    baseline(&[(0, containers::added_capabilities)]),
    baseline(&[(0, pods::host_namespaces)]),
    baseline(&[(0, volumes::host_paths)]),
    baseline(&[(0, containers::host_ports)]),
    baseline(&[(34, containers::probed_hosts)]),
    baseline(&[(0, containers::privileged)]),
    baseline(&[(0, containers::proc_mount), (35, containers::proc_mount_unless_own_users)]),
    baseline(&[(0, pods::selinux), (31, pods::selinux_with_engine)]),
    baseline(&[(0, pods::seccomp_annotations), (19, pods::seccomp)]),
    baseline(&[
        (0, pods::sysctls::<5>),
        (27, pods::sysctls::<6>),
        (29, pods::sysctls::<10>),
        (32, pods::sysctls::<12>),
    ]),
    baseline(&[(0, pods::host_process)]),
    restricted(&[(8, containers::escalation), (25, containers::escalation_unless_windows)], None),
    restricted(
        &[(22, containers::capabilities), (25, containers::capabilities_unless_windows)],
        Some(CAPABILITIES),
    ),
    restricted(&[(35, containers::proc_mount)], Some(PROC_MOUNT)),
    restricted(&[(0, volumes::restricted)], Some(HOST_PATHS)),
    restricted(&[(0, pods::non_root), (35, pods::non_root_unless_own_users)], None),
    restricted(&[(23, pods::root_user), (35, pods::root_user_unless_own_users)], None),
    restricted(&[(19, pods::seccomp_said), (25, pods::seccomp_said_unless_windows)], Some(SECCOMP)),
];

impl Check {
    /// The test that a version of upstream made.
    fn test(&self, version: Option<u32>) -> Option<Test> {
        let known = |(since, _): &&(u32, Test)| version.is_none_or(|version| *since <= version);
        self.since.iter().rev().find(known).map(|(_, test)| *test)
    }
}

/// What a pod violates of a standard.
pub(super) fn violations(standard: Standard, pod: &Pod<'_>) -> Vec<Violation> {
    let Standard { level, version } = standard;
    let in_force: Vec<&Check> = CHECKS.iter().filter(|check| check.level <= level).collect();
    let replaced = |at: usize| {
        in_force.iter().any(|check| check.instead_of == Some(at) && check.test(version).is_some())
    };
    let tests = in_force.iter().enumerate().filter(|(at, _)| !replaced(*at));
    tests.filter_map(|(_, check)| check.test(version)?(pod)).collect()
}

/// The reasons, each with its detail.
pub(super) fn detailed(found: &[Violation]) -> String {
    let each = found.iter().map(|violation| match violation.detail.as_str() {
        "" => violation.reason.clone(),
        detail => format!("{} ({detail})", violation.reason),
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The reasons alone.
pub(super) fn brief(found: &[Violation]) -> String {
    found.iter().map(|violation| violation.reason.as_str()).collect::<Vec<_>>().join(", ")
}

/// `"a", "b"`, with one word for one and another for several.
pub(super) fn named(one: &str, several: &str, names: &[impl AsRef<str>]) -> String {
    let word = if names.len() == 1 { one } else { several };
    format!("{word} {}", quoted(names))
}

/// `"a", "b"`
pub(super) fn quoted(names: &[impl AsRef<str>]) -> String {
    names.iter().map(|name| format!("\"{}\"", name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// `container "a"`, `containers "a", "b"`
pub(super) fn containers_named(names: &[impl AsRef<str>]) -> String {
    named("container", "containers", names)
}

#[cfg(test)]
mod tests;
