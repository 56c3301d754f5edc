//! Equality of list elements: scalars by type and value, other values by their JSON, where the order of keys is ignored and
//! floats with a zero fraction equal integers. Values are not copied.

use std::hash::{Hash, Hasher};

use serde_json::{Number, Value};

use crate::normalize;

/// Value with upstream's equality and the matching hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct ComparableValue<'v> {
    value: &'v Value,
    /// True if a float without a fraction equals the integer.
    floats_as_integers: bool,
}

impl<'v> ComparableValue<'v> {
    /// Creates an element of a set.
    pub fn of_set(value: &'v Value) -> Self {
        Self { value, floats_as_integers: false }
    }

    /// Creates a key of an element; several keys are compared as JSON.
    pub fn of_key(value: &'v Value, of_several: bool) -> Self {
        Self { value, floats_as_integers: of_several }
    }

    fn nested(value: &'v Value) -> Self {
        Self { value, floats_as_integers: true }
    }

    pub fn value(self) -> &'v Value {
        self.value
    }

    fn number(self, number: &Number) -> Number {
        let integer = normalize::as_integer(number).filter(|_| self.floats_as_integers);
        integer.map_or_else(|| number.clone(), Number::from)
    }
}

impl PartialEq for ComparableValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.value, other.value) {
            (Value::Number(a), Value::Number(b)) => self.number(a) == other.number(b),
            (Value::Array(a), Value::Array(b)) => a.iter().map(Self::nested).eq(b.iter().map(Self::nested)),
            (Value::Object(a), Value::Object(b)) => {
                let same = |key, a| b.get(key).is_some_and(|b| Self::nested(a) == Self::nested(b));
                a.len() == b.len() && a.iter().all(|(key, a)| same(key, a))
            }
            (a, b) => a == b,
        }
    }
}

// JSON has no NaN.
impl Eq for ComparableValue<'_> {}

impl Hash for ComparableValue<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self.value {
            Value::Number(number) => self.number(number).hash(hasher),
            Value::Array(items) => {
                items.len().hash(hasher);
                items.iter().for_each(|item| Self::nested(item).hash(hasher));
            }
            Value::Object(fields) => {
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_unstable_by_key(|(key, _)| *key);
                sorted.into_iter().for_each(|(key, value)| (key, Self::nested(value)).hash(hasher));
            }
            scalar => scalar.hash(hasher),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, RandomState};

    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_differ_by_type_and_other_values_by_json() {
        let rows = [
            (json!("1"), json!(1), false),
            (json!(1.0), json!(1), false),
            (json!([1.0]), json!([1]), true),
            (json!([1, [2.0]]), json!([1, [2]]), true),
            (json!([1]), json!([1, 1]), false),
            (json!({"a": 1.0, "b": null}), json!({"b": null, "a": 1}), true),
            (json!({"a": 1}), json!({"a": 1, "b": 1}), false),
            (json!({"a": 1.5}), json!({"a": 1}), false),
        ];
        let hasher = RandomState::new();
        for (a, b, same) in &rows {
            let (a, b) = (ComparableValue::of_set(a), ComparableValue::of_set(b));
            assert_eq!((a == b, b == a), (*same, *same), "{a:?} {b:?}");
            assert!(!same || hasher.hash_one(a) == hasher.hash_one(b), "{a:?} {b:?}");
        }
        let [float, integer] = [json!(2.0), json!(2)];
        let key = |of_several| {
            ComparableValue::of_key(&float, of_several) == ComparableValue::of_key(&integer, of_several)
        };
        assert!(key(true) && !key(false));
    }
}
