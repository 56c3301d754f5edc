//! Rules over an object: place by place, with the old value that belongs to each, within a budget (3.2, 3.3, 3.7).

use std::cell::OnceCell;

use portico_cel::value::{Map, from_json};
use portico_cel::{DeclType, EvalError, Program, Value as Evaluated};
use portico_machinery::field::Path;
use portico_machinery::status::MOST_FIELD_ERRORS;
use serde_json::{Map as Fields, Value};

use super::compiled::Compiled;
use super::tree::{Ready, Tree};
use super::{Judged, MOST_PER_CALL, MOST_PER_OBJECT, message};
use crate::structural::Pair;
use crate::structural::model::Rule;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What stands at a place: the fields of the whole object, or a value.
#[derive(Clone, Copy)]
enum Held<'a> {
    Fields(&'a Fields<String, Value>),
    Value(&'a Value),
}

impl<'a> Held<'a> {
    fn fields(self) -> Option<&'a Fields<String, Value>> {
        match self {
            Self::Fields(fields) => Some(fields),
            Self::Value(value) => value.as_object(),
        }
    }

    fn value(self) -> Option<&'a Value> {
        match self {
            Self::Fields(_) => None,
            Self::Value(value) => Some(value),
        }
    }

    fn read(self, of: &'a DeclType) -> Result<Evaluated<'a>, EvalError> {
        match self {
            Self::Fields(members) => Ok(Evaluated::Map(Map::Json { members, of })),
            Self::Value(value) => from_json(value, of),
        }
    }
}

/// A place that belongs to an old one, and whether both are the same.
struct Correlated<'a> {
    pair: Pair<'a>,
    same: OnceCell<bool>,
}

impl<'a> Correlated<'a> {
    fn new(pair: Pair<'a>) -> Self {
        Self { pair, same: OnceCell::new() }
    }

    fn is_same(&self) -> bool {
        *self.same.get_or_init(|| self.pair.is_same())
    }
}

/// What errors of a place are measured by: itself, or the nearest above that belongs to an old one.
#[derive(Clone, Copy, Default)]
struct Ratchet<'r, 'a> {
    current: Option<&'r Correlated<'a>>,
    nearest: Option<&'r Correlated<'a>>,
}

impl Ratchet<'_, '_> {
    /// Whether nothing changed that an error could be blamed on.
    fn forgives(self) -> bool {
        self.current.or(self.nearest).is_some_and(Correlated::is_same)
    }
}

/// A place of the object.
#[derive(Clone, Copy)]
struct Place<'r, 'a> {
    tree: &'a Tree,
    new: Held<'a>,
    old: Option<Held<'a>>,
    ratchet: Ratchet<'r, 'a>,
}

/// A rule at a place.
#[derive(Clone, Copy)]
struct Turn<'r, 'a> {
    place: Place<'r, 'a>,
    /// What was there; nothing for null.
    old: Option<Held<'a>>,
    rule: &'a Rule,
    compiled: &'a Compiled,
    declared: &'a DeclType,
}

/// One step down.
#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

/// Evaluates the rules of a schema over an object and what it was before.
pub(in crate::structural) fn object<'a>(
    tree: &'a Tree,
    new: &'a Fields<String, Value>,
    old: Option<&'a Fields<String, Value>>,
) -> Judged {
    let root = old.map(|old| Correlated::new(Pair::of_objects(new, old, &tree.node)));
    let ratchet = Ratchet { current: root.as_ref(), nearest: None };
    let mut walk = Walk::new(Path::root(), MOST_PER_OBJECT);
    walk.place(Place { tree, new: Held::Fields(new), old: old.map(Held::Fields), ratchet });
    walk.judged
}

/// Evaluates the rules of a place over a value that stands there (a default, say) within a budget; what is left of the
/// budget comes back, less than nothing when it is used up.
pub(in crate::structural) fn value<'a>(
    tree: &'a Tree,
    new: &'a Value,
    old: Option<&'a Value>,
    path: &Path,
    budget: i64,
) -> (Judged, i64) {
    let mut walk = Walk::new(path.clone(), budget);
    walk.place(Place { tree, new: Held::Value(new), old: old.map(Held::Value), ratchet: Ratchet::default() });
    (walk.judged, walk.left)
}

struct Walk<'a> {
    base: Path,
    steps: Vec<Step<'a>>,
    left: i64,
    judged: Judged,
}

/// Whether evaluation goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Stop,
}

impl<'a> Walk<'a> {
    fn new(base: Path, budget: i64) -> Self {
        Self { base, steps: Vec::new(), left: budget, judged: Judged::default() }
    }

    fn path(&self) -> Path {
        let path = self.steps.iter().fold(self.base.clone(), |path, step| match step {
            Step::Field(name) => path.child(name),
            Step::Key(key) => path.key(key),
            Step::Index(index) => path.index(*index),
        });
        if path.as_str().is_empty() { Path::new("<nil>") } else { path }
    }

    fn place(&mut self, place: Place<'_, 'a>) -> Flow {
        if matches!(place.new, Held::Value(Value::Null)) {
            return Flow::On;
        }
        if self.rules(place) == Flow::Stop {
            return Flow::Stop;
        }
        match place.new {
            Held::Value(Value::Array(items)) => self.list(place, items),
            new => new.fields().map_or(Flow::On, |fields| self.fields(place, fields)),
        }
    }

    fn list(&mut self, place: Place<'_, 'a>, items: &'a [Value]) -> Flow {
        let Some(tree) = place.tree.items.as_deref() else { return Flow::On };
        // Old items are only told by keys, and asked for even where errors are not forgiven.
        let whole = match (place.new, place.old) {
            (Held::Value(new), Some(Held::Value(old))) => Some(Pair::of_values(new, old, &place.tree.node)),
            _ => None,
        };
        for (index, item) in items.iter().enumerate() {
            let old = whole.as_ref().and_then(|whole| whole.index(index)).and_then(|pair| pair.old());
            let found =
                place.ratchet.current.and_then(|current| current.pair.index(index)).map(Correlated::new);
            let ratchet = below(place.ratchet, found.as_ref());
            let inside = Place { tree, new: Held::Value(item), old: old.map(Held::Value), ratchet };
            if self.step(Step::Index(index), inside) == Flow::Stop {
                return Flow::Stop;
            }
        }
        Flow::On
    }

    fn fields(&mut self, place: Place<'_, 'a>, fields: &'a Fields<String, Value>) -> Flow {
        for (name, value) in fields {
            let (tree, step) = match (&place.tree.values, place.tree.property(name)) {
                (_, Some(tree)) => (tree, Step::Field(name)),
                (Some(tree), None) => (&**tree, Step::Key(name)),
                (None, None) => continue,
            };
            let old = place.old.and_then(Held::fields).and_then(|old| old.get(name)).map(Held::Value);
            let found = place.ratchet.current.and_then(|current| current.pair.key(name)).map(Correlated::new);
            let ratchet = if place.ratchet.nearest.is_none() && matches!(name.as_str(), "apiVersion" | "kind")
            {
                Ratchet::default()
            } else {
                below(place.ratchet, found.as_ref())
            };
            if self.step(step, Place { tree, new: Held::Value(value), old, ratchet }) == Flow::Stop {
                return Flow::Stop;
            }
        }
        Flow::On
    }

    fn step(&mut self, step: Step<'a>, place: Place<'_, 'a>) -> Flow {
        self.steps.push(step);
        let flow = self.place(place);
        self.steps.pop();
        flow
    }

    /// The rules of one place, in their order.
    fn rules(&mut self, place: Place<'_, 'a>) -> Flow {
        let tree = place.tree;
        if tree.rules.is_empty() {
            return Flow::On;
        }
        if self.left <= 0 {
            return self.stop(place, OUT_OF_BUDGET);
        }
        let old = place.old.filter(|old| !matches!(old, Held::Value(Value::Null)));
        for Ready { rule, compiled } in &tree.rules {
            match (compiled, &tree.declared) {
                (Err(why), _) => self.refuse(place, &format!("rule compile error: {why}")),
                (Ok(Some(compiled)), Some(declared)) => {
                    if self.rule(Turn { place, old, rule, compiled, declared }) == Flow::Stop {
                        return Flow::Stop;
                    }
                }
                // A blank one.
                (Ok(_), _) => {}
            }
            if self.judged.errors.len() > MOST_FIELD_ERRORS {
                return Flow::Stop;
            }
        }
        Flow::On
    }

    fn rule(&mut self, turn: Turn<'_, 'a>) -> Flow {
        let uses_old = turn.compiled.uses_old;
        let optional = turn.rule.optional_old_self == Some(true);
        if uses_old && turn.old.is_none() && !optional {
            return Flow::On;
        }
        let (result, cost) = run(&turn.compiled.program, turn.bind(optional, uses_old));
        if !self.pay(cost) {
            return self.stop(turn.place, OUT_OF_BUDGET);
        }
        match result {
            Ok(Evaluated::Bool(true)) => Flow::On,
            Ok(_) => self.failed(turn),
            Err(error) => self.in_error(turn.place, turn.rule, &error),
        }
    }

    /// Takes a cost off the budget, if it is there.
    fn pay(&mut self, cost: u64) -> bool {
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.left => {
                self.left -= cost;
                true
            }
            _ => false,
        }
    }

    fn in_error(&mut self, place: Place<'_, 'a>, rule: &Rule, error: &EvalError) -> Flow {
        let (text, named) = (error.to_string(), message::named(rule));
        if matches!(error, EvalError::Budget) {
            let why = "no further validation rules will be run due to call cost exceeds limit for rule";
            return self.stop(place, &format!("'{text}': {why}: {named}"));
        }
        if text.starts_with("no such overload") {
            let why =
                "call arguments did not match a supported operator, function or macro signature for rule";
            self.refuse(place, &format!("'{text}': {why}: {named}"));
        } else {
            self.refuse(place, &format!("{text} evaluating rule: {named}"));
        }
        Flow::On
    }

    fn failed(&mut self, turn: Turn<'_, 'a>) -> Flow {
        let Turn { place, rule, compiled, .. } = turn;
        let mut path = self.path();
        if let Some(field) = &compiled.field {
            path = if path.as_str() == "<nil>" { Path::new(field.as_str()) } else { path.child(field) };
        }
        let (mut detail, mut flow) = (None, Flow::On);
        if let Some(program) = &compiled.message {
            // Upstream binds the plain old value here, whatever the rule's is.
            match self.message(program, turn.bind(false, true), rule) {
                Ok(made) => detail = made,
                Err(why) => (detail, flow) = (Some(why), Flow::Stop),
            }
        }
        let node = &place.tree.node;
        let error = match (&detail, flow) {
            (Some(why), Flow::Stop) => message::of_type(&path, node, why),
            _ => {
                let detail = detail.unwrap_or_else(|| message::default(rule));
                message::of_rule(&path, node, place.new.value(), rule, &detail)
            }
        };
        if !compiled.uses_old && place.ratchet.forgives() {
            self.judged.warnings.push(error.to_string());
        } else {
            self.judged.errors.push(error);
        }
        if flow == Flow::Stop {
            self.left = -1;
        }
        flow
    }

    /// What an expression makes of a failure: a message, nothing usable, or why nothing more is evaluated.
    fn message(
        &mut self,
        program: &Program,
        bound: Bound<'a>,
        rule: &Rule,
    ) -> Result<Option<String>, String> {
        let (result, cost) = run(program, bound);
        if !self.pay(cost) {
            return Err(
                "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
                    .to_owned(),
            );
        }
        match result {
            Ok(Evaluated::String(made)) => Ok(message::usable(&made)),
            Err(EvalError::Budget) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {:?}",
                &*rule.message_expression
            )),
            _ => Ok(None),
        }
    }

    fn refuse(&mut self, place: Place<'_, 'a>, why: &str) {
        let error = message::of_type(&self.path(), &place.tree.node, why);
        self.judged.errors.push(error);
    }

    fn stop(&mut self, place: Place<'_, 'a>, why: &str) -> Flow {
        self.refuse(place, why);
        self.left = -1;
        Flow::Stop
    }
}

/// Where errors below are measured from.
fn below<'r, 'a>(ratchet: Ratchet<'r, 'a>, found: Option<&'r Correlated<'a>>) -> Ratchet<'r, 'a> {
    match ratchet.current {
        None => ratchet,
        Some(current) => Ratchet { current: found, nearest: Some(current) },
    }
}

/// Values of `self` and `oldSelf`.
type Bound<'a> = Result<(Evaluated<'a>, Option<Evaluated<'a>>), EvalError>;

impl<'a> Turn<'_, 'a> {
    fn bind(self, optional: bool, uses_old: bool) -> Bound<'a> {
        let now = self.place.new.read(self.declared)?;
        if !uses_old {
            return Ok((now, None));
        }
        let old = self.old.map(|old| old.read(self.declared)).transpose()?;
        Ok((now, if optional { Some(old.map_or(Evaluated::NONE, Evaluated::some)) } else { old }))
    }
}

fn run<'a>(program: &Program, bound: Bound<'a>) -> (Result<Evaluated<'a>, EvalError>, u64) {
    match bound {
        Err(error) => (Err(error), 0),
        Ok((now, None)) => program.evaluate(&[("self", now)], MOST_PER_CALL, &|| false),
        Ok((now, Some(old))) => {
            program.evaluate(&[("self", now), ("oldSelf", old)], MOST_PER_CALL, &|| false)
        }
    }
}
