//! Quality of service class of a pod, derived from requests and limits.

use std::collections::BTreeMap;

use portico_machinery::{Cursor, Quantity};

const QOS_RESOURCES: [&str; 2] = ["cpu", "memory"];

/// Returns `Guaranteed`, `Burstable` or `BestEffort`.
#[must_use]
pub fn qos_class(spec: &Cursor<'_>) -> &'static str {
    let own = spec.field("resources");
    let resources_of_all: Vec<Cursor<'_>> = if own.is_present() {
        vec![own]
    } else {
        ["containers", "initContainers"]
            .iter()
            .flat_map(|list| spec.field(list).items().map(|c| c.field("resources")).collect::<Vec<_>>())
            .collect()
    };
    let (mut requests, mut limits) = (BTreeMap::new(), BTreeMap::new());
    let mut guaranteed = true;
    for resources in &resources_of_all {
        add_qos_resources(&resources.field("requests"), &mut requests);
        let count = add_qos_resources(&resources.field("limits"), &mut limits);
        guaranteed &= count == QOS_RESOURCES.len();
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds the positive CPU and memory quantities of a list to `sums`. Returns their number.
fn add_qos_resources<'a>(list: &Cursor<'a>, sums: &mut BTreeMap<&'static str, Quantity>) -> usize {
    let mut count = 0;
    for name in QOS_RESOURCES {
        if let Some(quantity) = list.key(name).quantity().filter(|quantity| quantity.is_positive()) {
            let sum = sums.entry(name).or_default();
            *sum = sum.plus(&quantity);
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::qos_class;
    use portico_machinery::Object;

    #[test]
    fn guaranteed_pods_have_equal_requests_and_limits_of_cpu_and_memory() {
        for (resources, want) in [
            (r"{}", "BestEffort"),
            (r#"{"requests":{"cpu":"0"}}"#, "BestEffort"),
            (r#"{"requests":{"cpu":"1"}}"#, "Burstable"),
            (
                r#"{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1000m","memory":"1024Mi"}}"#,
                "Guaranteed",
            ),
            (r#"{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"2","memory":"1Gi"}}"#, "Burstable"),
            (r#"{"requests":{"cpu":"1"},"limits":{"cpu":"1"}}"#, "Burstable"),
        ] {
            let json = format!(r#"{{"spec":{{"containers":[{{"resources":{resources}}}]}}}}"#);
            let pod = Object::from_json(json.as_bytes()).unwrap();
            assert_eq!(qos_class(&pod.at(&["spec"])), want, "{resources}");
        }
    }
}
