//! Validation of metav1's LabelSelector: keys, operators and values.

use portico_machinery::{Cursor, names};

use super::validate_labels;
use crate::Errors;

/// Validates the selector at a cursor; an absent selector is valid.
pub fn label_selector(selector: &Cursor<'_>, errors: &mut Errors) {
    validate_labels(&selector.field("matchLabels"), errors);
    for expression in selector.field("matchExpressions").items() {
        requirement(&expression, errors);
    }
}

fn requirement(expression: &Cursor<'_>, errors: &mut Errors) {
    let (key, operator, values) =
        (expression.field("key"), expression.field("operator"), expression.field("values"));
    match operator.str() {
        "In" | "NotIn" if values.is_empty() => {
            errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            errors
                .push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => errors.push(operator.invalid("not a valid selector operator")),
    }
    errors.extend(names::to_field_errors(&key.path(), key.str(), names::qualified_name(key.str())));
    for value in values.items() {
        errors.extend(names::to_field_errors(&value.path(), value.str(), names::label_value(value.str())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portico_machinery::Object;
    use portico_machinery::field::ErrorType;

    #[test]
    fn each_part_of_a_requirement_is_validated_at_its_path() {
        let object = Object::from_json(
            br#"{"s":{"matchLabels":{"a b":"c"},"matchExpressions":[{"key":"k","operator":"In"},{"key":"","operator":"Exists","values":["x y"]},{"key":"k","operator":"Is"}]}}"#,
        );
        let mut errors = Vec::new();
        label_selector(&object.unwrap().at(&["s"]), &mut errors);
        let found: Vec<(String, ErrorType)> = errors.iter().map(|e| (e.path.to_string(), e.kind)).collect();
        let want = [
            ("s.matchLabels", ErrorType::Invalid),
            ("s.matchExpressions[0].values", ErrorType::Required),
            ("s.matchExpressions[1].values", ErrorType::Forbidden),
            ("s.matchExpressions[1].key", ErrorType::Invalid),
            ("s.matchExpressions[1].key", ErrorType::Invalid),
            ("s.matchExpressions[1].values[0]", ErrorType::Invalid),
            ("s.matchExpressions[2].operator", ErrorType::Invalid),
        ]
        .map(|(path, kind)| (path.to_owned(), kind));
        assert_eq!(found, want);
    }
}
