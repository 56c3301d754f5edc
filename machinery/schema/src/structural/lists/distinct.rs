//! Equality of list elements: scalars by type and value, other values by their JSON, where the order of keys is ignored and
//! floats with a zero fraction equal integers. Values are not copied.

use std::hash::{Hash, Hasher};

use serde_json::{Number, Value};

use crate::normalise;

/// Value with upstream's equality and the matching hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Distinct<'v> {
    value: &'v Value,
    /// True if a float without a fraction equals the integer.
    whole: bool,
}

impl<'v> Distinct<'v> {
    /// Creates an element of a set.
    pub fn of_set(value: &'v Value) -> Self {
        Self { value, whole: false }
    }

    /// Creates a key of an element; several keys are compared as JSON.
    pub fn of_key(value: &'v Value, of_several: bool) -> Self {
        Self { value, whole: of_several }
    }

    fn inside(value: &'v Value) -> Self {
        Self { value, whole: true }
    }

    pub fn value(self) -> &'v Value {
        self.value
    }

    fn number(self, number: &Number) -> Number {
        let whole = normalise::as_whole(number).filter(|_| self.whole);
        whole.map_or_else(|| number.clone(), Number::from)
    }
}

impl PartialEq for Distinct<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.value, other.value) {
            (Value::Number(a), Value::Number(b)) => self.number(a) == other.number(b),
            (Value::Array(a), Value::Array(b)) => a.iter().map(Self::inside).eq(b.iter().map(Self::inside)),
            (Value::Object(a), Value::Object(b)) => {
                let same = |key, a| b.get(key).is_some_and(|b| Self::inside(a) == Self::inside(b));
                a.len() == b.len() && a.iter().all(|(key, a)| same(key, a))
            }
            (a, b) => a == b,
        }
    }
}

// JSON has no NaN.
impl Eq for Distinct<'_> {}

impl Hash for Distinct<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self.value {
            Value::Number(number) => self.number(number).hash(hasher),
            Value::Array(items) => {
                items.len().hash(hasher);
                items.iter().for_each(|item| Self::inside(item).hash(hasher));
            }
            Value::Object(fields) => {
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_unstable_by_key(|(key, _)| *key);
                sorted.into_iter().for_each(|(key, value)| (key, Self::inside(value)).hash(hasher));
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
    fn scalars_differ_by_type_and_json_by_what_it_says() {
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
            let (a, b) = (Distinct::of_set(a), Distinct::of_set(b));
            assert_eq!((a == b, b == a), (*same, *same), "{a:?} {b:?}");
            assert!(!same || hasher.hash_one(a) == hasher.hash_one(b), "{a:?} {b:?}");
        }
        let [float, whole] = [json!(2.0), json!(2)];
        let key = |of_several| Distinct::of_key(&float, of_several) == Distinct::of_key(&whole, of_several);
        assert!(key(true) && !key(false));
    }
}
