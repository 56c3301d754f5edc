//! What a pod needs in all: its containers together as the scheduler counts them, what is set for the whole pod, and
//! its overhead.

use std::collections::BTreeMap;

use portico_machinery::{Cursor, Object, Quantity};

use super::parts::is_sidecar;

/// Amounts by the name of their resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// The amounts of a list of resources.
pub fn amounts(list: &Cursor<'_>) -> Amounts {
    list.entries().map(|(name, value)| (name.to_owned(), value.quantity().unwrap_or_default())).collect()
}

/// Adds what is in `other`.
pub fn add(sums: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        sums.entry(name.clone()).and_modify(|sum| *sum = sum.plus(amount)).or_insert_with(|| amount.clone());
    }
}

/// Keeps the greater of each.
fn keep_greater(most: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        if most.get(name).is_none_or(|kept| kept <= amount) {
            most.insert(name.clone(), amount.clone());
        }
    }
}

/// What all containers need together, from what each needs: containers and sidecars at once, or the greediest init step.
pub fn together(spec: &Cursor<'_>, need: impl Fn(&Cursor<'_>) -> Amounts) -> Amounts {
    let mut all = Amounts::new();
    spec.field("containers").items().for_each(|container| add(&mut all, &need(&container)));
    let (mut sidecars, mut greediest) = (Amounts::new(), Amounts::new());
    for container in spec.field("initContainers").items() {
        let mut step = need(&container);
        if is_sidecar(&container) {
            add(&mut all, &step);
            add(&mut sidecars, &step);
            keep_greater(&mut greediest, &sidecars);
        } else {
            add(&mut step, &sidecars);
            keep_greater(&mut greediest, &step);
        }
    }
    keep_greater(&mut all, &greediest);
    all
}

/// `requests` or `limits` of the containers together, as the spec has them, and of the pod where those are set.
pub fn of_spec(spec: &Cursor<'_>, list: &'static str, applies: impl Fn(&str) -> bool) -> Amounts {
    let mut all = together(spec, |container| amounts(&container.field("resources").field(list)));
    override_by(&mut all, spec, list, applies);
    all
}

/// What is counted of a pod: a resize under way counts as the greater of what is and what is wanted.
pub fn counted(pod: &Object) -> (Amounts, Amounts) {
    let (spec, overhead) = (pod.at(&["spec"]), amounts(&pod.at(&["spec", "overhead"])));
    let running = Running::of(pod);
    let mut requests = together(&spec, |container| running.requests(container));
    override_by(&mut requests, &spec, "requests", counts_for_pods);
    add(&mut requests, &overhead);
    let mut limits = together(&spec, |container| running.limits(container));
    override_by(&mut limits, &spec, "limits", counts_for_pods);
    for (name, amount) in &overhead {
        if let Some(limit) = limits.get_mut(name).filter(|limit| !limit.is_zero()) {
            *limit = limit.plus(amount);
        }
    }
    (requests, limits)
}

/// Resources that can be set for a pod as a whole.
pub fn counts_for_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

fn override_by(all: &mut Amounts, spec: &Cursor<'_>, list: &'static str, applies: impl Fn(&str) -> bool) {
    let own = amounts(&spec.field("resources").field(list));
    all.extend(own.into_iter().filter(|(name, _)| applies(name)));
}

/// What containers run with, for the time of a resize.
struct Running<'a> {
    statuses: BTreeMap<&'a str, Cursor<'a>>,
    infeasible: bool,
}

impl<'a> Running<'a> {
    fn of(pod: &'a Object) -> Self {
        let status = pod.at(&["status"]);
        let lists = ["containerStatuses", "initContainerStatuses"];
        let statuses =
            lists.into_iter().flat_map(|list| pod.at(&["status", list]).items().collect::<Vec<_>>());
        let pending = |condition: &Cursor<'_>| condition.field("type").str() == "PodResizePending";
        let pending = status.field("conditions").items().find(pending);
        Self {
            statuses: statuses.map(|status| (status.field("name").str(), status)).collect(),
            infeasible: pending.is_some_and(|condition| condition.field("reason").str() == "Infeasible"),
        }
    }

    /// The status of a container that reports its resources; init steps are over before anything is resized.
    fn status(&self, container: &Cursor<'_>) -> Option<&Cursor<'a>> {
        let status = self.statuses.get(container.field("name").str())?;
        status.field("resources").is_present().then_some(status)
    }

    fn requests(&self, container: &Cursor<'_>) -> Amounts {
        let wanted = amounts(&container.field("resources").field("requests"));
        let Some(status) = self.status(container) else { return wanted };
        let mut most = if self.infeasible { Amounts::new() } else { wanted };
        keep_greater(&mut most, &amounts(&status.field("resources").field("requests")));
        keep_greater(&mut most, &amounts(&status.field("allocatedResources")));
        most
    }

    fn limits(&self, container: &Cursor<'_>) -> Amounts {
        let wanted = amounts(&container.field("resources").field("limits"));
        let Some(status) = self.status(container) else { return wanted };
        let mut most = if self.infeasible { Amounts::new() } else { wanted };
        keep_greater(&mut most, &amounts(&status.field("resources").field("limits")));
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn init_steps_count_when_they_need_more_than_all_that_runs_after_them() {
        let spec = br#"{"containers":[{"resources":{"requests":{"cpu":"1","memory":"1Gi"}}},
                {"resources":{"requests":{"cpu":"500m"}}}],
            "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
                {"resources":{"requests":{"cpu":"4","memory":"512Mi"}}}]}"#;
        let spec = Object::from_json(spec).unwrap();
        let all = of_spec(&spec.cursor(), "requests", counts_for_pods);
        assert_eq!(all["cpu"].to_string(), "5");
        assert_eq!(all["memory"].to_string(), "1Gi");
    }

    #[test]
    fn a_pods_own_resources_replace_the_sum_and_overhead_comes_on_top() {
        let pod = br#"{"spec":{"overhead":{"cpu":"100m","memory":"1Mi"},"resources":{"requests":{"cpu":"3"}},
            "containers":[{"name":"c","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}}]}}"#;
        let (requests, limits) = counted(&Object::from_json(pod).unwrap());
        assert_eq!(
            (requests["cpu"].to_string(), requests["memory"].to_string()),
            ("3100m".into(), "1Mi".into())
        );
        assert_eq!((limits["cpu"].to_string(), limits.get("memory")), ("2100m".into(), None));
    }

    #[test]
    fn a_resize_under_way_counts_as_the_greater_of_what_is_and_what_is_wanted() {
        let mut pod = Object::from_json(
            br#"{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]},
            "status":{"containerStatuses":[{"name":"c","resources":{"requests":{"cpu":"2"}},
                "allocatedResources":{"cpu":"3"}}]}}"#,
        )
        .unwrap();
        assert_eq!(counted(&pod).0["cpu"].to_string(), "3");
        let mut condition = Object::default();
        condition.set(&["type"], "PodResizePending");
        condition.set(&["reason"], "Infeasible");
        pod.push_node(&["status", "conditions"], condition.into_node());
        pod.edit_each(&["spec", "containers"], |container| {
            container.set(&["resources", "requests", "cpu"], "9");
        });
        assert_eq!(counted(&pod).0["cpu"].to_string(), "3", "what cannot be is not counted");
    }
}
