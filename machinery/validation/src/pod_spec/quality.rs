//! Quality of service: what a pod's requests and limits say of how much it may count on.

use std::collections::BTreeMap;

use portico_machinery::{Cursor, Quantity};

const COUNTED: [&str; 2] = ["cpu", "memory"];

/// `Guaranteed`, `Burstable` or `BestEffort`.
#[must_use]
pub fn class(spec: &Cursor<'_>) -> &'static str {
    let own = spec.field("resources");
    let holders: Vec<Cursor<'_>> = if own.is_present() {
        vec![own]
    } else {
        ["containers", "initContainers"]
            .iter()
            .flat_map(|list| spec.field(list).items().map(|c| c.field("resources")).collect::<Vec<_>>())
            .collect()
    };
    let (mut requests, mut limits) = (BTreeMap::new(), BTreeMap::new());
    let mut guaranteed = true;
    for resources in &holders {
        add(&resources.field("requests"), &mut requests);
        let found = add(&resources.field("limits"), &mut limits);
        guaranteed &= found == COUNTED.len();
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds what counts of a list; how many that were.
fn add<'a>(list: &Cursor<'a>, sums: &mut BTreeMap<&'static str, Quantity>) -> usize {
    let mut found = 0;
    for name in COUNTED {
        if let Some(quantity) = list.key(name).quantity().filter(|quantity| quantity.is_positive()) {
            let sum = sums.entry(name).or_default();
            *sum = sum.plus(&quantity);
            found += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::class;
    use portico_machinery::Object;

    #[test]
    fn only_equal_limits_and_requests_of_both_are_a_guarantee() {
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
            assert_eq!(class(&pod.at(&["spec"])), want, "{resources}");
        }
    }
}
