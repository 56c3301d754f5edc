//! Metrics in both versions: v2 nests what v1 spells out, and a table says which is which.

use portico_machinery::{Cursor, Node, Object};

/// A field of a metric's source: where v2 has it, what v1 calls it, and whether v1 prints a zero for an absent one.
pub(crate) struct Field {
    v2: &'static [&'static str],
    v1: &'static str,
    always: bool,
}

/// A source of metrics and its fields, in v1's order.
pub(super) type Source = (&'static str, &'static [Field]);

const fn field(v2: &'static [&'static str], v1: &'static str) -> Field {
    Field { v2, v1, always: false }
}

const fn always(v2: &'static [&'static str], v1: &'static str) -> Field {
    Field { v2, v1, always: true }
}

/// Sources of what is wanted.
pub(super) const WANTED: [Source; 5] = [
    (
        "object",
        &[
            field(&["describedObject"], "target"),
            field(&["metric", "name"], "metricName"),
            always(&["target", "value"], "targetValue"),
            field(&["metric", "selector"], "selector"),
            field(&["target", "averageValue"], "averageValue"),
        ],
    ),
    (
        "pods",
        &[
            field(&["metric", "name"], "metricName"),
            always(&["target", "averageValue"], "targetAverageValue"),
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

/// Sources of what is measured.
pub(super) const MEASURED: [Source; 5] = [
    (
        "object",
        &[
            field(&["describedObject"], "target"),
            field(&["metric", "name"], "metricName"),
            always(&["current", "value"], "currentValue"),
            field(&["metric", "selector"], "selector"),
            field(&["current", "averageValue"], "averageValue"),
        ],
    ),
    (
        "pods",
        &[
            field(&["metric", "name"], "metricName"),
            always(&["current", "averageValue"], "currentAverageValue"),
            field(&["metric", "selector"], "selector"),
        ],
    ),
    (
        "resource",
        &[
            field(&["name"], "name"),
            field(&["current", "averageUtilization"], "currentAverageUtilization"),
            always(&["current", "averageValue"], "currentAverageValue"),
        ],
    ),
    (
        "external",
        &[
            field(&["metric", "name"], "metricName"),
            field(&["metric", "selector"], "metricSelector"),
            always(&["current", "value"], "currentValue"),
            field(&["current", "averageValue"], "currentAverageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            field(&["name"], "name"),
            field(&["current", "averageUtilization"], "currentAverageUtilization"),
            always(&["current", "averageValue"], "currentAverageValue"),
            field(&["container"], "container"),
        ],
    ),
];

/// Objects as the elements of a list.
pub(super) fn list(items: impl IntoIterator<Item = Object>) -> Node {
    let mut carrier = Object::default();
    carrier.set(&["list"], items.into_iter().map(|item| item.into_node().0).collect::<Vec<_>>());
    carrier.remove(&["list"]).unwrap_or_default()
}

/// The metric that v1 has a field for.
pub(super) fn cpu_utilization(percent: i64) -> Object {
    let mut metric = Object::default();
    metric.set(&["type"], "Resource");
    metric.set(&["resource", "name"], "cpu");
    metric.set(&["resource", "target", "type"], "Utilization");
    metric.set(&["resource", "target", "averageUtilization"], percent);
    metric
}

/// The percentage of the processor in a metric, below `target` or `current`.
pub(super) fn cpu_percentage(metric: &Cursor<'_>, side: &str) -> Option<i64> {
    let source = metric.field("resource");
    let cpu = metric.field("type").str() == "Resource" && source.field("name").str() == "cpu";
    source.field(side).field("averageUtilization").i64().filter(|_| cpu)
}

/// A metric of v2 as v1 spells it.
pub(super) fn to_v1(metric: &Cursor<'_>, sources: &[Source]) -> Object {
    let mut flat = Object::default();
    flat.set(&["type"], metric.field("type").str());
    for (source, fields) in sources.iter().filter(|(source, _)| metric.field(source).is_present()) {
        for Field { v2, v1, always } in *fields {
            let at = v2.iter().fold(metric.field(source), |at, name| at.field(name));
            match at.node().filter(|_| at.is_present()) {
                Some(node) => flat.put(&[source, v1], node),
                None if *always => flat.set(&[source, v1], "0"),
                None => {}
            }
        }
    }
    flat
}

/// A metric of v1 as v2 nests it.
pub(super) fn from_v1(flat: &Cursor<'_>, sources: &[Source]) -> Object {
    let mut metric = Object::default();
    metric.set(&["type"], flat.field("type").str());
    for (source, fields) in sources.iter().filter(|(source, _)| flat.field(source).is_present()) {
        for Field { v2, v1, .. } in *fields {
            let at = flat.field(source).field(v1);
            if let Some(node) = at.node().filter(|_| at.is_present()) {
                metric.put(&[&[*source], *v2].concat(), node);
            }
        }
    }
    metric
}

/// The type of target that v1 leaves unsaid.
pub(super) fn settle_target(metric: &mut Object) {
    for (source, _) in &WANTED {
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
