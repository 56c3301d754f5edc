//! Checks of the levels, in the versions of upstream.

use super::policy::{Level, Standard};
use super::violation::{Pod, Violation};
use super::{containers, pods, volumes};

/// Check of a pod; `None` if the pod passes.
type Test = fn(&Pod<'_>) -> Option<Violation>;

struct Check {
    level: Level,
    /// Minor versions from which a test applies.
    since: &'static [(u32, Test)],
    /// Index of the baseline check that this check replaces in the restricted level.
    replaces: Option<usize>,
}

const fn baseline(since: &'static [(u32, Test)]) -> Check {
    Check { level: Level::Baseline, since, replaces: None }
}

const fn restricted(since: &'static [(u32, Test)], replaces: Option<usize>) -> Check {
    Check { level: Level::Restricted, since, replaces }
}

/// Indexes of the checks that others replace.
const CAPABILITIES: usize = 1;
const HOST_PATHS: usize = 3;
const PROC_MOUNT: usize = 7;
const SECCOMP: usize = 9;

/// Checks in the order of upstream's names, the baseline first.
const CHECKS: [Check; 19] = [
    baseline(&[(0, pods::app_armor)]),
    baseline(&[(0, containers::added_capabilities)]),
    baseline(&[(0, pods::host_namespaces)]),
    baseline(&[(0, volumes::host_paths)]),
    baseline(&[(0, containers::host_ports)]),
    baseline(&[(34, containers::probed_hosts)]),
    baseline(&[(0, containers::privileged)]),
    baseline(&[(0, containers::proc_mount), (35, containers::proc_mount_unless_user_namespace)]),
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
    restricted(&[(0, pods::non_root), (35, pods::non_root_unless_user_namespace)], None),
    restricted(&[(23, pods::root_user), (35, pods::root_user_unless_user_namespace)], None),
    restricted(&[(19, pods::seccomp_required), (25, pods::seccomp_required_unless_windows)], Some(SECCOMP)),
];

impl Check {
    /// Returns the test as of a version of upstream.
    fn test_for_version(&self, version: Option<u32>) -> Option<Test> {
        let applies = |(since, _): &&(u32, Test)| version.is_none_or(|version| *since <= version);
        self.since.iter().rev().find(applies).map(|(_, test)| *test)
    }
}

/// Returns the violations of a standard by a pod.
pub(super) fn violations(standard: Standard, pod: &Pod<'_>) -> Vec<Violation> {
    let Standard { level, version } = standard;
    let active: Vec<&Check> = CHECKS.iter().filter(|check| check.level <= level).collect();
    let replaced = |at: usize| {
        active.iter().any(|check| check.replaces == Some(at) && check.test_for_version(version).is_some())
    };
    let tests = active.iter().enumerate().filter(|(index, _)| !replaced(*index));
    tests.filter_map(|(_, check)| check.test_for_version(version)?(pod)).collect()
}

/// Joins the reasons with their details.
pub(super) fn join_details(found: &[Violation]) -> String {
    let each = found.iter().map(|violation| match violation.detail.as_str() {
        "" => violation.reason.clone(),
        detail => format!("{} ({detail})", violation.reason),
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Joins the reasons without details.
pub(super) fn join_reasons(found: &[Violation]) -> String {
    found.iter().map(|violation| violation.reason.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
