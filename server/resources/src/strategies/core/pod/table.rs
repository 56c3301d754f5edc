//! Table row of a pod: ready containers, status and restarts.

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

use portico_validation::pod_spec::is_sidecar;

/// Returns the cell of a function that the data file names.
pub(super) fn cell(function: &str, pod: &Object) -> Cell {
    match function {
        "pod-ready" => {
            let state = PodState::of(pod);
            Cell::text(format!("{}/{}", state.ready, state.total))
        }
        "pod-status" => Cell::text(PodState::of(pod).status),
        "pod-restarts" => PodState::of(pod).restarts.cell(),
        "pod-ip" => {
            let first = pod.at(&["status", "podIPs"]).items().next();
            Cell::text(first.map(|ip| ip.field("ip").str()).filter(|ip| !ip.is_empty()).unwrap_or("<none>"))
        }
        "pod-readiness-gates" => Cell::text(readiness_gates(pod)),
        _ => Cell::Null,
    }
}

/// Number of restarts, and time of the last one.
#[derive(Clone, Default)]
struct RestartCount {
    count: i64,
    last: String,
}

impl RestartCount {
    fn add(&mut self, status: &Cursor<'_>) {
        self.count += status.field("restartCount").i64().unwrap_or(0);
        let finished = status.field("lastState").field("terminated").field("finishedAt").str();
        // Times in the same format compare as strings.
        if finished > self.last.as_str() {
            self.last = finished.to_owned();
        }
    }

    fn cell(self) -> Cell {
        if self.count == 0 || self.last.is_empty() {
            return Cell::text(self.count.to_string());
        }
        Cell::Ago { text: self.count.to_string(), at: self.last }
    }
}

/// Values from which the cells are formatted.
struct PodState {
    ready: usize,
    total: usize,
    status: String,
    restarts: RestartCount,
}

impl PodState {
    fn of(pod: &Object) -> Self {
        let (spec, status) = (pod.at(&["spec"]), pod.at(&["status"]));
        let sidecars: Vec<&str> =
            spec.field("initContainers").items().filter(is_sidecar).map(|c| c.field("name").str()).collect();
        let mut state = Self {
            ready: 0,
            total: spec.field("containers").len() + sidecars.len(),
            status: initial_reason(&status),
            restarts: RestartCount::default(),
        };
        let mut sidecar_restarts = RestartCount::default();
        let initializing = state.add_init_containers(&spec, &status, &sidecars, &mut sidecar_restarts);
        if !initializing || is_true(&status, "Initialized") {
            state.restarts = sidecar_restarts;
            state.add_main_containers(&status);
        }
        if pod.deletion_timestamp().is_some() {
            let phase = status.field("phase").str();
            if status.field("reason").str() == "NodeLost" {
                "Unknown".clone_into(&mut state.status);
            } else if !matches!(phase, "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut state.status);
            }
        }
        state
    }

    /// Adds the init containers. Returns `true` if the pod is still being initialized.
    fn add_init_containers(
        &mut self,
        spec: &Cursor<'_>,
        status: &Cursor<'_>,
        sidecars: &[&str],
        sidecar_restarts: &mut RestartCount,
    ) -> bool {
        let total = spec.field("initContainers").len();
        for (index, container) in status.field("initContainerStatuses").items().enumerate() {
            self.restarts.add(&container);
            let is_sidecar = sidecars.contains(&container.field("name").str());
            if is_sidecar {
                sidecar_restarts.add(&container);
            }
            let (terminated, waiting) =
                (container.field("state").field("terminated"), container.field("state").field("waiting"));
            if terminated.is_present() && terminated.field("exitCode").i64().unwrap_or(0) == 0 {
                continue;
            }
            if is_sidecar && container.field("started").bool() {
                self.ready += usize::from(container.field("ready").bool());
                continue;
            }
            let reason = waiting.field("reason").str();
            self.status = if terminated.is_present() {
                format!("Init:{}", termination_reason(&terminated))
            } else if !reason.is_empty() && reason != "PodInitializing" {
                format!("Init:{reason}")
            } else {
                format!("Init:{index}/{total}")
            };
            return true;
        }
        false
    }

    fn add_main_containers(&mut self, status: &Cursor<'_>) {
        let (mut has_running, mut error) = (false, None);
        let containers: Vec<Cursor<'_>> = status.field("containerStatuses").items().collect();
        for container in containers.iter().rev() {
            self.restarts.add(container);
            let state = container.field("state");
            let (waiting, terminated) =
                (state.field("waiting").field("reason").str(), state.field("terminated"));
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.status);
            } else if terminated.is_present() {
                self.status = termination_reason(&terminated);
                if terminated.field("exitCode").i64().unwrap_or(0) != 0 {
                    error = Some(self.status.clone());
                }
            } else if container.field("ready").bool() && state.field("running").is_present() {
                has_running = true;
                self.ready += 1;
            }
        }
        if self.status == "Completed" {
            self.status = match error {
                _ if has_running && is_true(status, "Ready") => "Running".to_owned(),
                Some(error) => error,
                None if has_running => "NotReady".to_owned(),
                None => return,
            };
        }
    }
}

/// Returns the phase, or a more specific reason.
fn initial_reason(status: &Cursor<'_>) -> String {
    let gated = status.field("conditions").items().any(|condition| {
        condition.field("type").str() == "PodScheduled"
            && condition.field("reason").str() == "SchedulingGated"
    });
    match status.field("reason").str() {
        _ if gated => "SchedulingGated".to_owned(),
        "" => status.field("phase").str().to_owned(),
        reason => reason.to_owned(),
    }
}

/// Returns the reason for the termination of a container.
fn termination_reason(terminated: &Cursor<'_>) -> String {
    let (reason, signal) = (terminated.field("reason").str(), terminated.field("signal").i64().unwrap_or(0));
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", terminated.field("exitCode").i64().unwrap_or(0))
    }
}

fn is_true(status: &Cursor<'_>, kind: &str) -> bool {
    status
        .field("conditions")
        .items()
        .find(|condition| condition.field("type").str() == kind)
        .is_some_and(|condition| condition.field("status").str() == "True")
}

fn readiness_gates(pod: &Object) -> String {
    let gates = pod.at(&["spec", "readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let status = pod.at(&["status"]);
    let true_count = gates.items().filter(|gate| is_true(&status, gate.field("conditionType").str())).count();
    format!("{true_count}/{}", gates.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(json: &str) -> (String, String) {
        let pod = Object::from_json(json.as_bytes()).unwrap();
        let state = PodState::of(&pod);
        (format!("{}/{}", state.ready, state.total), state.status)
    }

    #[test]
    fn a_row_contains_the_state_of_the_containers() {
        let rows = [
            (r#"{"status":{"phase":"Pending"}}"#, "0/0", "Pending"),
            (r#"{"status":{"phase":"Failed","reason":"Evicted"}}"#, "0/0", "Evicted"),
            (
                r#"{"spec":{"containers":[{},{}]},"status":{"phase":"Running","containerStatuses":[
                    {"ready":true,"state":{"running":{}}},{"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}"#,
                "1/2",
                "CrashLoopBackOff",
            ),
            (
                r#"{"spec":{"initContainers":[{"name":"a"},{"name":"b"}],"containers":[{}]},"status":{"phase":"Pending",
                    "initContainerStatuses":[{"name":"a","state":{"terminated":{"exitCode":0}}},{"name":"b","state":{"running":{}}}]}}"#,
                "0/1",
                "Init:1/2",
            ),
            (
                r#"{"spec":{"containers":[{}]},"status":{"phase":"Succeeded","containerStatuses":[
                    {"state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}}"#,
                "0/1",
                "Completed",
            ),
            (
                r#"{"metadata":{"deletionTimestamp":"x"},"spec":{"containers":[{}]},"status":{"phase":"Running"}}"#,
                "0/1",
                "Terminating",
            ),
        ];
        for (json, ready, status) in rows {
            assert_eq!(row(json), (ready.to_owned(), status.to_owned()), "{json}");
        }
    }
}
