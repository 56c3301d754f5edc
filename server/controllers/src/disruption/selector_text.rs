//! Formats a label selector as Go does (`LabelSelector.String`).

use std::collections::BTreeMap;

use portico_machinery::{Cursor, Object};

/// Formats the selector of a budget.
pub(super) fn format(budget: &Object) -> String {
    const LABELS: [&str; 3] = ["spec", "selector", "matchLabels"];
    let labels: BTreeMap<String, String> = budget.decode(&LABELS).unwrap_or_default();
    let labels: String = labels.iter().map(|(key, value)| format!("{key}: {value},")).collect();
    let expression = |at: Cursor<'_>| {
        let text = |field: &str| at.field(field).str().to_owned();
        let values: Vec<String> = at.field("values").items().map(|value| value.str().to_owned()).collect();
        let (key, operator, values) = (text("key"), text("operator"), values.join(" "));
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
    };
    let expressions: String =
        budget.at(&["spec", "selector", "matchExpressions"]).items().map(expression).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_printed_as_go_prints_it() {
        for (selector, expected) in [
            (
                r#"{"matchLabels":{"b":"2","a":"1"}}"#,
                "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{},}",
            ),
            (
                r#"{"matchExpressions":[{"key":"k","operator":"In","values":["a","b"]}]}"#,
                "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[a b],},},}",
            ),
        ] {
            let budget =
                Object::from_json(format!(r#"{{"spec":{{"selector":{selector}}}}}"#).as_bytes()).unwrap();
            assert_eq!(format(&budget), expected);
        }
    }
}
