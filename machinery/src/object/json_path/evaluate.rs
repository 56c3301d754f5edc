//! Evaluation of a path. A step that does not apply ends the evaluation, except in a filter that tests for existence.

use std::ops::Range;

use super::error::MAX_VISITED;
use super::parse::{Filter, Literal, Operator, Slice, Step, Steps};
use super::value::{JsonPathValue, ValueKind};
use crate::object::Object;

type Values<'a> = Vec<JsonPathValue<'a>>;

/// Values that a step finds. The error contains the values found before the failure, which a filter that tests for existence
/// uses as its result.
type Outcome<'a> = Result<Values<'a>, Values<'a>>;

/// Returns the first value of the first list, if all lists can be evaluated.
pub(super) fn first<'a>(lists: &'a [Steps], object: &'a Object) -> Option<JsonPathValue<'a>> {
    let root = JsonPathValue(ValueKind::Map(object.map()));
    let mut walk = Evaluator { remaining: MAX_VISITED };
    let mut all = lists.iter().map(|steps| walk.list(vec![root], steps));
    let found = all.next()?.ok()?.first().copied()?;
    all.all(|outcome| outcome.is_ok()).then_some(found)
}

struct Evaluator {
    /// Number of values that can still be visited.
    remaining: usize,
}

impl Evaluator {
    fn list<'a>(&mut self, input: Values<'a>, steps: &'a [Step]) -> Outcome<'a> {
        steps.iter().try_fold(input, |values, step| self.step(values, step))
    }

    /// Counts visited values.
    fn visit<'a>(&mut self, count: usize) -> Result<(), Values<'a>> {
        self.remaining = self.remaining.checked_sub(count).ok_or_else(|| {
            self.remaining = 0;
            Vec::new()
        })?;
        Ok(())
    }

    fn step<'a>(&mut self, input: Values<'a>, step: &'a Step) -> Outcome<'a> {
        self.visit(input.len().max(1))?;
        match step {
            Step::Field(name) => Ok(input.iter().filter_map(|value| value.field(name)).collect()),
            Step::Wildcard => {
                // Counted before collecting: a string has as many children as bytes.
                self.visit(input.iter().map(|value| value.child_count()).sum())?;
                Ok(input.iter().flat_map(|value| value.children()).collect())
            }
            Step::Recursive => {
                let mut found = Vec::new();
                input.iter().try_for_each(|value| self.descend(*value, &mut found))?;
                Ok(found)
            }
            Step::Slice(slice) => self.slice(input, *slice),
            Step::Union(members) => {
                let mut found = Vec::new();
                for member in members {
                    found.extend(self.list(input.clone(), member).map_err(|_| input.clone())?);
                }
                Ok(found)
            }
            Step::Filter(filter) => self.filter(input, filter),
            Step::Literal(text @ Literal::Text(_)) => Ok(vec![JsonPathValue::from(text)]),
            Step::Literal(literal) => Ok(input.iter().map(|_| JsonPathValue::from(literal)).collect()),
            Step::Word => Err(input),
        }
    }

    /// Collects a value that has children, and all such values below it.
    fn descend<'a>(&mut self, value: JsonPathValue<'a>, found: &mut Values<'a>) -> Result<(), Values<'a>> {
        self.visit(1)?;
        if let ValueKind::Text(text) = value.0 {
            // The bytes of a string have no children.
            found.extend((!text.is_empty()).then_some(value));
            return Ok(());
        }
        let count = value.child_count();
        if count > 0 {
            found.push(value);
        }
        if count > self.remaining {
            self.visit(count)?;
        }
        value.children().into_iter().try_for_each(|child| self.descend(child, found))
    }

    fn slice<'a>(&mut self, input: Values<'a>, slice: Slice) -> Outcome<'a> {
        let mut found = Vec::new();
        for value in &input {
            match value.0 {
                ValueKind::Null => continue,
                ValueKind::List(list) => match slice.range(list.len()) {
                    None => return Err(input),
                    // As upstream, ends the step, including the remaining lists.
                    Some(range) if range.is_empty() => return Ok(found),
                    Some(range) => {
                        let Some(step) = slice.step_width() else { return Err(input) };
                        self.visit(range.len())?;
                        found.extend(list[range].iter().step_by(step).map(JsonPathValue::from));
                    }
                },
                _ => return Err(input),
            }
        }
        Ok(found)
    }

    fn filter<'a>(&mut self, input: Values<'a>, filter: &'a Filter) -> Outcome<'a> {
        let mut matching = Vec::new();
        for value in &input {
            let ValueKind::List(list) = value.0 else { return Err(input) };
            for item in list.iter().map(JsonPathValue::from) {
                self.visit(1)?;
                let left = self.list(vec![item], &filter.left);
                let Some((operator, right)) = &filter.test else {
                    if !left.unwrap_or_else(|so_far| so_far).is_empty() {
                        matching.push(item);
                    }
                    continue;
                };
                let Ok(left) = left else { return Err(input) };
                let left = match left[..] {
                    [] => continue,
                    [left] => left,
                    _ => return Err(input),
                };
                let Ok(right) = self.list(vec![item], right) else { return Err(input) };
                let right = match right[..] {
                    [] => continue,
                    [right] => right,
                    _ => return Err(input),
                };
                match operator.compare(left, right) {
                    Some(true) => matching.push(item),
                    Some(false) => {}
                    None => return Err(matching),
                }
            }
        }
        Ok(matching)
    }
}

impl<'a> JsonPathValue<'a> {
    /// Returns the field of a map with this name.
    fn field(self, name: &str) -> Option<Self> {
        match self.0 {
            ValueKind::Map(map) => map.get(name).map(Self::from),
            _ => None,
        }
    }

    /// Returns the number of children.
    fn child_count(self) -> usize {
        match self.0 {
            ValueKind::List(list) => list.len(),
            ValueKind::Map(map) => map.len(),
            ValueKind::Text(text) => text.len(),
            _ => 0,
        }
    }

    /// Returns the children; the children of a string are its bytes.
    fn children(self) -> Vec<Self> {
        match self.0 {
            ValueKind::List(list) => list.iter().map(Self::from).collect(),
            ValueKind::Map(map) => map.values().map(Self::from).collect(),
            ValueKind::Text(text) => text.bytes().map(|byte| Self(ValueKind::Other(byte.into()))).collect(),
            _ => Vec::new(),
        }
    }
}

impl Slice {
    /// Returns the range in a list of this length, or `None` if it exceeds the list.
    fn range(self, length: usize) -> Option<Range<usize>> {
        let length = i64::try_from(length).ok()?;
        let start = self.start.map_or(0, |start| if start < 0 { start + length } else { start });
        let end = self.end.unwrap_or(length);
        let end = if end < 0 || (end == 0 && self.single) { end + length } else { end };
        if start == end {
            return Some(0..0);
        }
        let fits = (0..length).contains(&start) && (start..=length).contains(&end);
        fits.then(|| Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)).flatten()
    }

    /// Returns the step width, or `None` if it is less than one.
    fn step_width(self) -> Option<usize> {
        usize::try_from(self.step.unwrap_or(1)).ok().filter(|step| *step > 0)
    }
}

impl Operator {
    /// Compares two values. Returns `None` if they cannot be compared with this operator.
    fn compare(self, left: JsonPathValue<'_>, right: JsonPathValue<'_>) -> Option<bool> {
        let order = match (left.0, right.0) {
            (ValueKind::Bool(left), ValueKind::Bool(right))
                if matches!(self, Self::Equal | Self::NotEqual) =>
            {
                left.cmp(&right)
            }
            (ValueKind::Text(left), ValueKind::Text(right)) => left.cmp(right),
            (
                ValueKind::Int(left) | ValueKind::Other(left),
                ValueKind::Int(right) | ValueKind::Other(right),
            ) => left.cmp(&right),
            (ValueKind::Float(left), ValueKind::Float(right)) => left.partial_cmp(&right)?,
            _ => return None,
        };
        match self {
            Self::Equal => Some(order.is_eq()),
            Self::NotEqual => Some(order.is_ne()),
            Self::Less => Some(order.is_lt()),
            Self::LessOrEqual => Some(order.is_le()),
            Self::Greater => Some(order.is_gt()),
            Self::GreaterOrEqual => Some(order.is_ge()),
            Self::Unknown => None,
        }
    }
}
