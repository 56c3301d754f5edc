//! Following a path through an object. A step that does not fit ends it, but for what a filter only asks to exist.

use std::ops::Range;

use super::error::MAX_VISITED;
use super::found::{Found, Kind};
use super::parse::{Filter, Literal, Operator, Slice, Step, Steps};
use crate::object::Object;

type Values<'a> = Vec<Found<'a>>;

/// What a step finds. Where it does not fit, what it had then: a filter that only asks for something counts that.
type Outcome<'a> = Result<Values<'a>, Values<'a>>;

/// What the first list finds first, if all lists fit.
pub(super) fn first<'a>(lists: &'a [Steps], object: &'a Object) -> Option<Found<'a>> {
    let root = Found(Kind::Map(object.map()));
    let mut walk = Walk { left: MAX_VISITED };
    let mut all = lists.iter().map(|steps| walk.list(vec![root], steps));
    let found = all.next()?.ok()?.first().copied()?;
    all.all(|outcome| outcome.is_ok()).then_some(found)
}

struct Walk {
    /// How many values may still be looked at.
    left: usize,
}

impl Walk {
    fn list<'a>(&mut self, input: Values<'a>, steps: &'a [Step]) -> Outcome<'a> {
        steps.iter().try_fold(input, |values, step| self.step(values, step))
    }

    /// Counts what is looked at.
    fn visit<'a>(&mut self, count: usize) -> Result<(), Values<'a>> {
        self.left = self.left.checked_sub(count).ok_or_else(|| {
            self.left = 0;
            Vec::new()
        })?;
        Ok(())
    }

    fn step<'a>(&mut self, input: Values<'a>, step: &'a Step) -> Outcome<'a> {
        self.visit(input.len().max(1))?;
        match step {
            Step::Field(name) => Ok(input.iter().filter_map(|value| value.field(name)).collect()),
            Step::Wildcard => {
                // Counted before they are collected: a text has as many as it has bytes.
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
            Step::Literal(text @ Literal::Text(_)) => Ok(vec![Found::from(text)]),
            Step::Literal(literal) => Ok(input.iter().map(|_| Found::from(literal)).collect()),
            Step::Word => Err(input),
        }
    }

    /// A value that has something inside it, and all such below it.
    fn descend<'a>(&mut self, value: Found<'a>, found: &mut Values<'a>) -> Result<(), Values<'a>> {
        self.visit(1)?;
        if let Kind::Text(text) = value.0 {
            // Its bytes have nothing inside them.
            found.extend((!text.is_empty()).then_some(value));
            return Ok(());
        }
        let count = value.child_count();
        if count > 0 {
            found.push(value);
        }
        if count > self.left {
            self.visit(count)?;
        }
        value.children().into_iter().try_for_each(|child| self.descend(child, found))
    }

    fn slice<'a>(&mut self, input: Values<'a>, slice: Slice) -> Outcome<'a> {
        let mut found = Vec::new();
        for value in &input {
            match value.0 {
                Kind::Null => continue,
                Kind::List(list) => match slice.of(list.len()) {
                    None => return Err(input),
                    // Upstream looks no further, in other lists neither.
                    Some(range) if range.is_empty() => return Ok(found),
                    Some(range) => {
                        let Some(step) = slice.every() else { return Err(input) };
                        self.visit(range.len())?;
                        found.extend(list[range].iter().step_by(step).map(Found::from));
                    }
                },
                _ => return Err(input),
            }
        }
        Ok(found)
    }

    fn filter<'a>(&mut self, input: Values<'a>, filter: &'a Filter) -> Outcome<'a> {
        let mut kept = Vec::new();
        for value in &input {
            let Kind::List(list) = value.0 else { return Err(input) };
            for item in list.iter().map(Found::from) {
                self.visit(1)?;
                let left = self.list(vec![item], &filter.left);
                let Some((operator, right)) = &filter.test else {
                    if !left.unwrap_or_else(|so_far| so_far).is_empty() {
                        kept.push(item);
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
                match operator.holds(left, right) {
                    Some(true) => kept.push(item),
                    Some(false) => {}
                    None => return Err(kept),
                }
            }
        }
        Ok(kept)
    }
}

impl<'a> Found<'a> {
    /// What a map has under this name.
    fn field(self, name: &str) -> Option<Self> {
        match self.0 {
            Kind::Map(map) => map.get(name).map(Self::from),
            _ => None,
        }
    }

    /// How many are inside.
    fn child_count(self) -> usize {
        match self.0 {
            Kind::List(list) => list.len(),
            Kind::Map(map) => map.len(),
            Kind::Text(text) => text.len(),
            _ => 0,
        }
    }

    /// What is inside; texts consist of bytes.
    fn children(self) -> Vec<Self> {
        match self.0 {
            Kind::List(list) => list.iter().map(Self::from).collect(),
            Kind::Map(map) => map.values().map(Self::from).collect(),
            Kind::Text(text) => text.bytes().map(|byte| Self(Kind::Other(byte.into()))).collect(),
            _ => Vec::new(),
        }
    }
}

impl Slice {
    /// Which elements of a list of this length; nothing when it goes beyond it.
    fn of(self, length: usize) -> Option<Range<usize>> {
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

    /// Every so many; nothing when that is less than one.
    fn every(self) -> Option<usize> {
        usize::try_from(self.step.unwrap_or(1)).ok().filter(|step| *step > 0)
    }
}

impl Operator {
    /// Nothing for values that cannot be compared so.
    fn holds(self, left: Found<'_>, right: Found<'_>) -> Option<bool> {
        let order = match (left.0, right.0) {
            (Kind::Bool(left), Kind::Bool(right)) if matches!(self, Self::Equal | Self::NotEqual) => {
                left.cmp(&right)
            }
            (Kind::Text(left), Kind::Text(right)) => left.cmp(right),
            (Kind::Int(left) | Kind::Other(left), Kind::Int(right) | Kind::Other(right)) => left.cmp(&right),
            (Kind::Float(left), Kind::Float(right)) => left.partial_cmp(&right)?,
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
