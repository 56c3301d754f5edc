//! Between v1 and v2: one metric has a field in v1, all else goes into annotations and comes back from them.

use portico_machinery::object::to_go_json;
use portico_machinery::{Cursor, Object};

use super::metrics::{self, MEASURED, WANTED};

/// What v1 keeps in annotations, and two that upstream reserves: no v2 object has them.
pub(super) const PREFIX: &str = "autoscaling.alpha.kubernetes.io/";
const TARGET_CPU: [&str; 2] = ["spec", "targetCPUUtilizationPercentage"];
const CURRENT_CPU: [&str; 2] = ["status", "currentCPUUtilizationPercentage"];

/// A stored object as v1 shows it.
pub(super) fn to_v1(object: &mut Object) {
    let (annotations, percentages) = (annotations(object), percentages(object));
    for (name, json) in annotations.into_iter().filter_map(|(name, json)| Some((name, json?))) {
        object.set(&["metadata", "annotations", &format!("{PREFIX}{name}")], json);
    }
    for (path, percent) in percentages.into_iter().filter_map(|(path, percent)| Some((path, percent?))) {
        object.set(&path, percent);
    }
    for path in
        [["spec", "metrics"], ["spec", "behavior"], ["status", "currentMetrics"], ["status", "conditions"]]
    {
        object.remove(&path);
    }
}

/// The two percentages that v1 has fields for.
fn percentages(object: &Object) -> [([&'static str; 2], Option<i64>); 2] {
    let (wanted, measured) = (object.at(&["spec", "metrics"]), object.at(&["status", "currentMetrics"]));
    let target = wanted.items().find_map(|metric| metrics::cpu_percentage(&metric, "target"));
    let current = measured.items().filter_map(|m| metrics::cpu_percentage(&m, "current")).last();
    [(TARGET_CPU, target), (CURRENT_CPU, current)]
}

/// All that v1 has no fields for.
fn annotations(object: &Object) -> [(&'static str, Option<String>); 4] {
    let (wanted, measured) = (object.at(&["spec", "metrics"]), object.at(&["status", "currentMetrics"]));
    let others = wanted.items().filter(|metric| metrics::cpu_percentage(metric, "target").is_none());
    let others = json_list(others.map(|metric| metrics::to_v1(&metric, &WANTED)));
    let measured = json_list(measured.items().map(|metric| metrics::to_v1(&metric, &MEASURED)));
    let conditions = object.at(&["status", "conditions"]);
    let behavior = object.at(&["spec", "behavior"]);
    [
        ("metrics", others),
        ("behavior", behavior.is_present().then(|| behavior_json(&behavior))),
        ("current-metrics", measured),
        ("conditions", (!conditions.is_empty()).then(|| conditions.json())),
    ]
}

/// An object of v1 as it is stored; annotations that cannot be read are ignored.
pub(super) fn from_v1(object: &mut Object) {
    let wanted = annotated(object, "metrics");
    let mut specs: Vec<Object> =
        items(wanted.as_ref()).map(|flat| metrics::from_v1(&flat, &WANTED)).collect();
    specs.iter_mut().for_each(metrics::settle_target);
    let target = object.at(&TARGET_CPU).i64();
    specs.extend(target.map(metrics::cpu_utilization));
    let measured = annotated(object, "current-metrics");
    let mut current: Vec<Object> =
        items(measured.as_ref()).map(|flat| metrics::from_v1(&flat, &MEASURED)).collect();
    if let (None, Some(percent)) = (&measured, object.at(&CURRENT_CPU).i64()) {
        let mut metric = Object::default();
        metric.set(&["type"], "Resource");
        metric.set(&["resource", "name"], "cpu");
        metric.set(&["resource", "current", "averageUtilization"], percent);
        current.push(metric);
    }
    let conditions = annotated(object, "conditions");
    let conditions = conditions.and_then(|carrier| carrier.get(&[CARRIED]));
    let behavior = annotated(object, "behavior").and_then(|carrier| behavior(&carrier.at(&[CARRIED])));
    for (path, list) in [(["spec", "metrics"], specs), (["status", "currentMetrics"], current)] {
        if !list.is_empty() {
            object.put(&path, metrics::list(list));
        }
    }
    if let Some(conditions) = conditions {
        object.put(&["status", "conditions"], conditions);
    }
    if let Some(behavior) = behavior {
        object.put(&["spec", "behavior"], behavior.into_node());
    }
    object.remove(&TARGET_CPU);
    object.remove(&CURRENT_CPU);
}

/// Where a value that is no object is carried in one.
const CARRIED: &str = "value";

/// The JSON of an annotation, carried in an object; nothing when it is absent, empty or no JSON.
fn annotated(object: &Object, name: &str) -> Option<Object> {
    let text = object.annotation(&format!("{PREFIX}{name}")).filter(|text| !text.is_empty())?;
    Object::from_json(format!("{{\"{CARRIED}\":{text}}}").as_bytes()).ok()
}

fn items(carrier: Option<&Object>) -> impl Iterator<Item = Cursor<'_>> {
    carrier.into_iter().flat_map(|carrier| carrier.at(&[CARRIED]).items())
}

/// A JSON list, or nothing for an empty one.
fn json_list(items: impl Iterator<Item = Object>) -> Option<String> {
    let items: Vec<String> =
        items.map(|i| String::from_utf8_lossy(&to_go_json(i.map())).into_owned()).collect();
    (!items.is_empty()).then(|| format!("[{}]", items.join(",")))
}

const RULES: [(&str, &str); 3] = [
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Tolerance", "tolerance"),
];
const POLICY: [(&str, &str); 3] = [("Type", "type"), ("Value", "value"), ("PeriodSeconds", "periodSeconds")];

/// The behavior under the names that Go gives the fields.
fn behavior_json(behavior: &Cursor<'_>) -> String {
    let policy = |policy: Cursor<'_>| {
        let fields = POLICY.map(|(go, name)| format!("\"{go}\":{}", policy.field(name).json()));
        format!("{{{}}}", fields.join(","))
    };
    let rules = |rules: Cursor<'_>| {
        if !rules.is_present() {
            return "null".to_owned();
        }
        let policies: Vec<String> = rules.field("policies").items().map(policy).collect();
        let [window, select, tolerance] =
            RULES.map(|(go, name)| format!("\"{go}\":{}", rules.field(name).json()));
        let policies =
            if policies.is_empty() { "null".to_owned() } else { format!("[{}]", policies.join(",")) };
        format!("{{{window},{select},\"Policies\":{policies},{tolerance}}}")
    };
    let (up, down) = (rules(behavior.field("scaleUp")), rules(behavior.field("scaleDown")));
    format!("{{\"ScaleUp\":{up},\"ScaleDown\":{down}}}")
}

/// The behavior out of such an annotation, whatever the case of its keys.
fn behavior(json: &Cursor<'_>) -> Option<Object> {
    if !json.is_map() {
        return None;
    }
    let mut behavior = Object::default();
    for (go, name) in [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")] {
        let Some(rules) = entry(json, go).filter(Cursor::is_map) else { continue };
        let mut read = renamed(&rules, &RULES);
        // Defaults are for those who set nothing for a direction: rules in an annotation must name their policies.
        let policies = entry(&rules, "Policies").into_iter().flat_map(|policies| policies.items());
        read.put(&["policies"], metrics::list(policies.map(|p| renamed(&p, &POLICY))));
        behavior.put(&[name], read.into_node());
    }
    Some(behavior)
}

fn renamed(from: &Cursor<'_>, names: &[(&str, &str)]) -> Object {
    let mut to = Object::default();
    for (go, name) in names {
        if let Some(node) = entry(from, go).filter(Cursor::is_present).and_then(|at| at.node()) {
            to.put(&[name], node);
        }
    }
    to
}

fn entry<'a>(map: &Cursor<'a>, key: &str) -> Option<Cursor<'a>> {
    map.entries().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_v1_cannot_say_comes_back_from_annotations() {
        let v2 = r#"{"metadata":{"name":"h"},"spec":{"metrics":[{"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"1Gi"}}},{"type":"External","external":{"metric":{"name":"q"},"target":{"type":"Value","value":"30"}}},{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":70}}}],"behavior":{"scaleUp":{"selectPolicy":"Max","policies":[{"type":"Pods","value":4,"periodSeconds":15}]}}},"status":{"conditions":[{"type":"A","status":"True"}]}}"#;
        let stored = Object::from_json(v2.as_bytes()).unwrap();
        let mut object = stored.clone();
        to_v1(&mut object);
        assert_eq!(object.at(&TARGET_CPU).i64(), Some(70));
        let metrics = object.annotation("autoscaling.alpha.kubernetes.io/metrics").unwrap();
        assert_eq!(
            metrics,
            r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}},{"type":"External","external":{"metricName":"q","targetValue":"30"}}]"#
        );
        let behavior = object.annotation("autoscaling.alpha.kubernetes.io/behavior").unwrap();
        assert_eq!(
            behavior,
            r#"{"ScaleUp":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":null}"#
        );
        from_v1(&mut object);
        for path in [["spec", "metrics"], ["spec", "behavior"], ["status", "conditions"]] {
            assert_eq!(object.get(&path), stored.get(&path));
        }
    }

    #[test]
    fn annotations_that_are_no_json_are_ignored() {
        let json = r#"{"metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/metrics":"{","autoscaling.alpha.kubernetes.io/behavior":"3"}},"spec":{}}"#;
        let mut object = Object::from_json(json.as_bytes()).unwrap();
        from_v1(&mut object);
        assert!(object.at(&["spec"]).is_empty());
    }
}
