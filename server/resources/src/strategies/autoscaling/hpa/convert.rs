//! Conversion between v1 and v2. v1 has a field for one metric; all other data is in annotations.

use portico_machinery::object::to_go_json;
use portico_machinery::{Cursor, Object};

use super::metrics::{self, SPEC_SOURCES, STATUS_SOURCES};

/// Prefix of annotations that contain data of v2, and of two that upstream reserves. v2 objects do not have them.
pub(super) const PREFIX: &str = "autoscaling.alpha.kubernetes.io/";
const TARGET_CPU: [&str; 2] = ["spec", "targetCPUUtilizationPercentage"];
const CURRENT_CPU: [&str; 2] = ["status", "currentCPUUtilizationPercentage"];

/// Converts a stored object to v1.
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

/// Returns the two percentages that have fields in v1.
fn percentages(object: &Object) -> [([&'static str; 2], Option<i64>); 2] {
    let (targets, current_metrics) =
        (object.at(&["spec", "metrics"]), object.at(&["status", "currentMetrics"]));
    let target = targets.items().find_map(|metric| metrics::cpu_percentage(&metric, "target"));
    let current = current_metrics.items().filter_map(|m| metrics::cpu_percentage(&m, "current")).last();
    [(TARGET_CPU, target), (CURRENT_CPU, current)]
}

/// Returns the annotations for all data that has no field in v1.
fn annotations(object: &Object) -> [(&'static str, Option<String>); 4] {
    let (targets, current_metrics) =
        (object.at(&["spec", "metrics"]), object.at(&["status", "currentMetrics"]));
    let others = targets.items().filter(|metric| metrics::cpu_percentage(metric, "target").is_none());
    let others = json_list(others.map(|metric| metrics::to_v1(&metric, &SPEC_SOURCES)));
    let current_metrics =
        json_list(current_metrics.items().map(|metric| metrics::to_v1(&metric, &STATUS_SOURCES)));
    let conditions = object.at(&["status", "conditions"]);
    let behavior = object.at(&["spec", "behavior"]);
    [
        ("metrics", others),
        ("behavior", behavior.is_present().then(|| behavior_json(&behavior))),
        ("current-metrics", current_metrics),
        ("conditions", (!conditions.is_empty()).then(|| conditions.json())),
    ]
}

/// Converts an object of v1 to the stored version. Invalid annotations are ignored.
pub(super) fn from_v1(object: &mut Object) {
    let targets = annotation_json(object, "metrics");
    let mut specs: Vec<Object> =
        items(targets.as_ref()).map(|flat| metrics::from_v1(&flat, &SPEC_SOURCES)).collect();
    specs.iter_mut().for_each(metrics::set_target_type);
    let target = object.at(&TARGET_CPU).i64();
    specs.extend(target.map(metrics::cpu_utilization));
    let current_metrics = annotation_json(object, "current-metrics");
    let mut current: Vec<Object> =
        items(current_metrics.as_ref()).map(|flat| metrics::from_v1(&flat, &STATUS_SOURCES)).collect();
    if let (None, Some(percent)) = (&current_metrics, object.at(&CURRENT_CPU).i64()) {
        let mut metric = Object::default();
        metric.set(&["type"], "Resource");
        metric.set(&["resource", "name"], "cpu");
        metric.set(&["resource", "current", "averageUtilization"], percent);
        current.push(metric);
    }
    let conditions = annotation_json(object, "conditions");
    let conditions = conditions.and_then(|carrier| carrier.get(&[VALUE_FIELD]));
    let behavior =
        annotation_json(object, "behavior").and_then(|carrier| behavior(&carrier.at(&[VALUE_FIELD])));
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

/// Field of an object that wraps a JSON value of any type.
const VALUE_FIELD: &str = "value";

/// Parses the JSON of an annotation and wraps it in an object. Returns `None` if the annotation is absent, empty or invalid JSON.
fn annotation_json(object: &Object, name: &str) -> Option<Object> {
    let text = object.annotation(&format!("{PREFIX}{name}")).filter(|text| !text.is_empty())?;
    Object::from_json(format!("{{\"{VALUE_FIELD}\":{text}}}").as_bytes()).ok()
}

fn items(carrier: Option<&Object>) -> impl Iterator<Item = Cursor<'_>> {
    carrier.into_iter().flat_map(|carrier| carrier.at(&[VALUE_FIELD]).items())
}

/// Returns a JSON list, or `None` if there are no items.
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

/// Formats the behavior with Go field names.
fn behavior_json(behavior: &Cursor<'_>) -> String {
    let policy = |policy: Cursor<'_>| {
        let fields = POLICY.map(|(go_name, name)| format!("\"{go_name}\":{}", policy.field(name).json()));
        format!("{{{}}}", fields.join(","))
    };
    let rules = |rules: Cursor<'_>| {
        if !rules.is_present() {
            return "null".to_owned();
        }
        let policies: Vec<String> = rules.field("policies").items().map(policy).collect();
        let [window, select, tolerance] =
            RULES.map(|(go_name, name)| format!("\"{go_name}\":{}", rules.field(name).json()));
        let policies =
            if policies.is_empty() { "null".to_owned() } else { format!("[{}]", policies.join(",")) };
        format!("{{{window},{select},\"Policies\":{policies},{tolerance}}}")
    };
    let (up, down) = (rules(behavior.field("scaleUp")), rules(behavior.field("scaleDown")));
    format!("{{\"ScaleUp\":{up},\"ScaleDown\":{down}}}")
}

/// Parses the behavior of an annotation. Keys are not case-sensitive.
fn behavior(json: &Cursor<'_>) -> Option<Object> {
    if !json.is_map() {
        return None;
    }
    let mut behavior = Object::default();
    for (go_name, name) in [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")] {
        let Some(rules) = entry_ignoring_case(json, go_name).filter(Cursor::is_map) else { continue };
        let mut read = rename_fields(&rules, &RULES);
        // Rules in an annotation must name their policies: defaults apply only to directions without rules.
        let policies =
            entry_ignoring_case(&rules, "Policies").into_iter().flat_map(|policies| policies.items());
        read.put(&["policies"], metrics::list(policies.map(|p| rename_fields(&p, &POLICY))));
        behavior.put(&[name], read.into_node());
    }
    Some(behavior)
}

fn rename_fields(source: &Cursor<'_>, names: &[(&str, &str)]) -> Object {
    let mut target = Object::default();
    for (go_name, name) in names {
        if let Some(node) =
            entry_ignoring_case(source, go_name).filter(Cursor::is_present).and_then(|at| at.node())
        {
            target.put(&[name], node);
        }
    }
    target
}

fn entry_ignoring_case<'a>(map: &Cursor<'a>, key: &str) -> Option<Cursor<'a>> {
    map.entries().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_without_a_v1_field_survives_in_annotations() {
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
    fn invalid_annotations_are_ignored() {
        let json = r#"{"metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/metrics":"{","autoscaling.alpha.kubernetes.io/behavior":"3"}},"spec":{}}"#;
        let mut object = Object::from_json(json.as_bytes()).unwrap();
        from_v1(&mut object);
        assert!(object.at(&["spec"]).is_empty());
    }
}
