//! Label selectors in objects (`matchLabels`, `matchExpressions`), and their text form.

use std::fmt;

use super::{InvalidLabelSelector, LabelSelector, Operator, Requirement};
use crate::Cursor;

impl LabelSelector {
    /// Parses the selector at a cursor. Returns `None` if it is absent, which matches nothing, unlike an empty selector.
    ///
    /// # Errors
    /// [`InvalidLabelSelector`] for an invalid key, operator or value.
    pub fn from_object(selector: &Cursor<'_>) -> Result<Option<Self>, InvalidLabelSelector> {
        if !selector.is_present() {
            return Ok(None);
        }
        let mut requirements = Vec::new();
        for (key, value) in selector.field("matchLabels").entries() {
            requirements.push(Requirement::new(key, Operator::Equals, vec![value.str().to_owned()])?);
        }
        for expression in selector.field("matchExpressions").items() {
            let operator = match expression.field("operator").str() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    let text = format!("{other:?} is not a valid label selector operator");
                    return Err(InvalidLabelSelector(text));
                }
            };
            let values = expression.field("values").items().map(|v| v.str().to_owned()).collect();
            requirements.push(Requirement::new(expression.field("key").str(), operator, values)?);
        }
        Ok(Some(Self::new(requirements)))
    }

    /// Converts a map of labels to a selector (`spec.selector` of Services and replication controllers).
    #[must_use]
    pub fn from_labels(labels: &Cursor<'_>) -> Self {
        let equal = |(key, value): (&str, Cursor<'_>)| Requirement {
            key: key.to_owned(),
            operator: Operator::Equals,
            values: vec![value.str().to_owned()],
        };
        Self::new(labels.entries().map(equal).collect())
    }
}

/// Formats the selector of an object for a table cell: `<none>` if it is empty or absent, `<error>` if it is invalid.
#[must_use]
pub fn selector_cell(selector: &Cursor<'_>) -> String {
    match LabelSelector::from_object(selector) {
        Err(_) => "<error>".to_owned(),
        Ok(selector) => {
            selector.filter(|s| !s.is_empty()).map_or_else(|| "<none>".to_owned(), |s| s.to_string())
        }
    }
}

/// Formats a map of labels for a table cell: `<none>` if it is empty.
#[must_use]
pub fn labels_cell(labels: &Cursor<'_>) -> String {
    let selector = LabelSelector::from_labels(labels);
    if selector.is_empty() { "<none>".to_owned() } else { selector.to_string() }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements().iter().enumerate() {
            write!(f, "{}{requirement}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, operator, values } = self;
        let first = values.first().map_or("", String::as_str);
        let mut sorted: Vec<&str> = values.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        match operator {
            Operator::Equals => write!(f, "{key}={first}"),
            Operator::NotEquals => write!(f, "{key}!={first}"),
            Operator::In => write!(f, "{key} in ({})", sorted.join(",")),
            Operator::NotIn => write!(f, "{key} notin ({})", sorted.join(",")),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{first}"),
            Operator::LessThan => write!(f, "{key}<{first}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;

    fn text(json: &str) -> String {
        let object = Object::from_json(format!(r#"{{"s":{json}}}"#).as_bytes()).unwrap();
        selector_cell(&object.at(&["s"]))
    }

    #[test]
    fn selectors_of_objects_print_sorted_by_key() {
        assert_eq!(text("null"), "<none>");
        assert_eq!(text("{}"), "<none>");
        let mixed = r#"{"matchLabels":{"z":"1","a":""},"matchExpressions":[{"key":"m","operator":"In","values":["y","x"]},{"key":"b","operator":"DoesNotExist"},{"key":"c","operator":"NotIn","values":["q"]},{"key":"d","operator":"Exists"}]}"#;
        assert_eq!(text(mixed), "a=,!b,c notin (q),d,m in (x,y),z=1");
        assert_eq!(text(r#"{"matchExpressions":[{"key":"m","operator":"In"}]}"#), "<error>");
        assert_eq!(text(r#"{"matchExpressions":[{"key":"m","operator":"Gt","values":["1"]}]}"#), "<error>");
    }

    #[test]
    fn absent_selects_nothing_and_empty_everything() {
        let object = Object::from_json(br#"{"s":{}}"#).unwrap();
        assert_eq!(LabelSelector::from_object(&object.at(&["t"])).unwrap(), None);
        assert!(LabelSelector::from_object(&object.at(&["s"])).unwrap().unwrap().matches([]));
    }
}
