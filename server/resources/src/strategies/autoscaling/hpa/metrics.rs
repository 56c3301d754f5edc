//! Metrics in v1 and v2. A table maps the flat fields of v1 to the nested fields of v2.

use portico_machinery::{Cursor, Node, Object};

/// Field of a metric source: path in v2, name in v1, and presence of a zero in v1 if the field is absent.
pub(crate) struct SourceField {
    v2: &'static [&'static str],
    v1: &'static str,
    prints_zero: bool,
}

/// Metric source and its fields, in the order of v1.
pub(super) type MetricSource = (&'static str, &'static [SourceField]);

const fn field(v2: &'static [&'static str], v1: &'static str) -> SourceField {
    SourceField { v2, v1, prints_zero: false }
}

const fn field_with_zero(v2: &'static [&'static str], v1: &'static str) -> SourceField {
    SourceField { v2, v1, prints_zero: true }
}

/// Sources of metrics in the spec.
pub(super) const SPEC_SOURCES: [MetricSource; 5] = [
    (
        "object",
        &[
            field(&["describedObject"], "target"),
            field(&["metric", "name"], "metricName"),
            field_with_zero(&["target", "value"], "targetValue"),
            field(&["metric", "selector"], "selector"),
            field(&["target", "averageValue"], "averageValue"),
        ],
    ),
    (
        "pods",
        &[
            field(&["metric", "name"], "metricName"),
            field_with_zero(&["target", "averageValue"], "targetAverageValue"),
            field(&["metric", "selector"], "selector"),
        ],
    ),
    (
        "resource",
        &[
            field(&["name"], "name"),
            field(&["target", "averageUtilization"], "targetAverageUtilization"),
            field(&["target", "averageValue"], "targetAverageValue"),
        ],
    ),
    (
        "external",
        &[
            field(&["metric", "name"], "metricName"),
            field(&["metric", "selector"], "metricSelector"),
            field(&["target", "value"], "targetValue"),
            field(&["target", "averageValue"], "targetAverageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            field(&["name"], "name"),
            field(&["target", "averageUtilization"], "targetAverageUtilization"),
            field(&["target", "averageValue"], "targetAverageValue"),
            field(&["container"], "container"),
        ],
    ),
];

/// Sources of metrics in the status.
pub(super) const STATUS_SOURCES: [MetricSource; 5] = [
    (
        "object",
        &[
            field(&["describedObject"], "target"),
            field(&["metric", "name"], "metricName"),
            field_with_zero(&["current", "value"], "currentValue"),
            field(&["metric", "selector"], "selector"),
            field(&["current", "averageValue"], "averageValue"),
        ],
    ),
    (
        "pods",
        &[
            field(&["metric", "name"], "metricName"),
            field_with_zero(&["current", "averageValue"], "currentAverageValue"),
            field(&["metric", "selector"], "selector"),
        ],
    ),
    (
        "resource",
        &[
            field(&["name"], "name"),
            field(&["current", "averageUtilization"], "currentAverageUtilization"),
            field_with_zero(&["current", "averageValue"], "currentAverageValue"),
        ],
    ),
    (
        "external",
        &[
            field(&["metric", "name"], "metricName"),
            field(&["metric", "selector"], "metricSelector"),
            field_with_zero(&["current", "value"], "currentValue"),
            field(&["current", "averageValue"], "currentAverageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            field(&["name"], "name"),
            field(&["current", "averageUtilization"], "currentAverageUtilization"),
            field_with_zero(&["current", "averageValue"], "currentAverageValue"),
            field(&["container"], "container"),
        ],
    ),
];

/// Returns a list with objects as elements.
pub(super) fn list(items: impl IntoIterator<Item = Object>) -> Node {
    let mut carrier = Object::default();
    carrier.set(&["list"], items.into_iter().map(|item| item.into_node().0).collect::<Vec<_>>());
    carrier.remove(&["list"]).unwrap_or_default()
}

/// Returns the metric for which v1 has a field.
pub(super) fn cpu_utilization(percent: i64) -> Object {
    let mut metric = Object::default();
    metric.set(&["type"], "Resource");
    metric.set(&["resource", "name"], "cpu");
    metric.set(&["resource", "target", "type"], "Utilization");
    metric.set(&["resource", "target", "averageUtilization"], percent);
    metric
}

/// Returns the CPU percentage of a metric, below `target` or `current`.
pub(super) fn cpu_percentage(metric: &Cursor<'_>, value_field: &str) -> Option<i64> {
    let source = metric.field("resource");
    let cpu = metric.field("type").str() == "Resource" && source.field("name").str() == "cpu";
    source.field(value_field).field("averageUtilization").i64().filter(|_| cpu)
}

/// Converts a metric of v2 to v1.
pub(super) fn to_v1(metric: &Cursor<'_>, sources: &[MetricSource]) -> Object {
    let mut flat = Object::default();
    flat.set(&["type"], metric.field("type").str());
    for (source, fields) in sources.iter().filter(|(source, _)| metric.field(source).is_present()) {
        for SourceField { v2, v1, prints_zero } in *fields {
            let at = v2.iter().fold(metric.field(source), |at, name| at.field(name));
            match at.node().filter(|_| at.is_present()) {
                Some(node) => flat.put(&[source, v1], node),
                None if *prints_zero => flat.set(&[source, v1], "0"),
                None => {}
            }
        }
    }
    flat
}

/// Converts a metric of v1 to v2.
pub(super) fn from_v1(flat: &Cursor<'_>, sources: &[MetricSource]) -> Object {
    let mut metric = Object::default();
    metric.set(&["type"], flat.field("type").str());
    for (source, fields) in sources.iter().filter(|(source, _)| flat.field(source).is_present()) {
        for SourceField { v2, v1, .. } in *fields {
            let at = flat.field(source).field(v1);
            if let Some(node) = at.node().filter(|_| at.is_present()) {
                metric.put(&[&[*source], *v2].concat(), node);
            }
        }
    }
    metric
}

/// Sets the target type, which v1 does not have.
pub(super) fn set_target_type(metric: &mut Object) {
    for (source, _) in &SPEC_SOURCES {
        metric.edit(&[source], |settings| {
            let has = |name: &str| settings.at(&["target", name]).is_present();
            let kind = match *source {
                "resource" | "containerResource" if has("averageUtilization") => "Utilization",
                "object" if !has("averageValue") => "Value",
                "external" if has("value") => "Value",
                _ => "AverageValue",
            };
            let forget_zero = *source == "object" && has("averageValue");
            settings.set(&["target", "type"], kind);
            if forget_zero && settings.at(&["target", "value"]).str() == "0" {
                settings.remove(&["target", "value"]);
            }
        });
    }
}
