//! Table cells of an autoscaler: scale target, and current and target values of metrics.

use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

const MAX_SHOWN: usize = 2;
const UNKNOWN: &str = "<unknown>";

pub(super) fn cell(function: &str, object: &Object) -> Cell {
    let spec = object.at(&["spec"]);
    match function {
        "horizontalpodautoscaler-reference" => {
            let target = spec.field("scaleTargetRef");
            Cell::text(format!("{}/{}", target.field("kind").str(), target.field("name").str()))
        }
        "horizontalpodautoscaler-targets" => Cell::text(targets(object)),
        _ => Cell::text(
            spec.field("minReplicas").i64().map_or_else(|| "<unset>".to_owned(), |n| n.to_string()),
        ),
    }
}

fn targets(object: &Object) -> String {
    let current: Vec<Cursor<'_>> = object.at(&["status", "currentMetrics"]).items().collect();
    let metrics = object.at(&["spec", "metrics"]);
    let texts: Vec<String> =
        metrics.items().enumerate().map(|(index, metric)| target(&metric, current.get(index))).collect();
    let hidden_count = texts.len().saturating_sub(MAX_SHOWN);
    match texts.len() {
        0 => "<none>".to_owned(),
        _ if hidden_count > 0 => format!("{} + {hidden_count} more...", texts[..MAX_SHOWN].join(", ")),
        _ => texts.join(", "),
    }
}

/// Formats one metric. `current_metric` is the current metric with the same index.
fn target(metric: &Cursor<'_>, current_metric: Option<&Cursor<'_>>) -> String {
    let source = match metric.field("type").str() {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "External" => "external",
        "Object" => "object",
        _ => return "<unknown type>".to_owned(),
    };
    let target = metric.field(source).field("target");
    let current = current_metric.map(|m| m.field(source).field("current"));
    let now =
        |field: &str| current.as_ref().and_then(|c| c.field(field).opt_str()).unwrap_or(UNKNOWN).to_owned();
    match source {
        "resource" | "containerResource" => {
            let name = metric.field(source).field("name").str();
            if let Some(value) = target.field("averageValue").opt_str() {
                return format!("{name}: {}/{value}", now("averageValue"));
            }
            let percent = |n: i64| format!("{n}%");
            let share = current.as_ref().and_then(|c| c.field("averageUtilization").i64()).map(percent);
            let goal = target.field("averageUtilization").i64().map(percent);
            format!(
                "{name}: {}/{}",
                share.unwrap_or_else(|| UNKNOWN.to_owned()),
                goal.unwrap_or_else(|| "<auto>".to_owned())
            )
        }
        "pods" => format!("{}/{}", now("averageValue"), target.field("averageValue").str()),
        _ => match target.field("averageValue").opt_str() {
            Some(value) => format!("{}/{value} (avg)", now("averageValue")),
            None => format!("{}/{}", now("value"), target.field("value").str()),
        },
    }
}
