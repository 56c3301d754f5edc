//! Quantifiers, `map`, `filter` and `transform…`, over one variable and over two.

use std::sync::Arc;

use super::{Expander, Macro, simple_name, to_array};
use crate::ast::{ACCUMULATOR, Comprehension, Expr, ExprKind, operator};
use crate::diagnostics::Issue;
use crate::value::Value;

/// Standard macros of the language.
pub const STANDARD: [Macro; 7] = [
    Macro { name: "has", receiver: false, arguments: 1, expand: has },
    Macro::member("all", 2, quantifier),
    Macro::member("exists", 2, quantifier),
    Macro::member("exists_one", 2, quantifier),
    Macro::member("map", 2, expand_map),
    Macro::member("map", 3, expand_map),
    Macro::member("filter", 2, filter),
];

/// Alternative spelling of `exists_one`, which no release of kube-apiserver offers.
pub const EXISTS_ONE: Macro = Macro::member("existsOne", 2, quantifier);

/// Comprehensions over index and item, key and value.
pub const TWO_VARIABLES: [Macro; 10] = [
    Macro::member("all", 3, quantifier),
    Macro::member("exists", 3, quantifier),
    Macro::member("existsOne", 3, quantifier),
    Macro::member("exists_one", 3, quantifier),
    Macro::member("transformList", 3, transform),
    Macro::member("transformList", 4, transform),
    Macro::member("transformMap", 3, transform),
    Macro::member("transformMap", 4, transform),
    Macro::member("transformMapEntry", 3, transform),
    Macro::member("transformMapEntry", 4, transform),
];

/// Names of a comprehension's variables.
struct Variables {
    first: Arc<str>,
    second: Option<Arc<str>>,
}

fn has(expander: &mut Expander<'_>, _: Option<Expr>, arguments: Vec<Expr>, _: &str) -> Result<Expr, Issue> {
    let [argument] = to_array(arguments)?;
    match argument.kind {
        ExprKind::Select { operand, field, .. } => {
            Ok(expander.node(ExprKind::Select { operand, field, test: true }))
        }
        _ => Err(expander.issue(&argument, "invalid argument to has() macro")),
    }
}

fn overwrites(name: &str) -> bool {
    name == ACCUMULATOR || name == "__result__"
}

const OVERWRITES: &str = "iteration variable overwrites accumulator variable";

/// Returns the variable of `all(x, …)` or the two variables of `all(i, x, …)`.
fn variables(expander: &Expander<'_>, names: &[Expr], no_name: &str) -> Result<Variables, Issue> {
    let mut found = Vec::new();
    for argument in names {
        found.push(simple_name(argument).ok_or_else(|| expander.issue(argument, no_name))?);
    }
    if let [first, second] = &found[..]
        && first == second
    {
        return Err(expander.issue(&names[1], format!("duplicate variable name: {first}")));
    }
    for (name, argument) in found.iter().zip(names) {
        if overwrites(name) {
            return Err(expander.issue(argument, OVERWRITES));
        }
    }
    let mut found = found.into_iter();
    Ok(Variables { first: found.next().unwrap_or_else(|| Arc::from("")), second: found.next() })
}

fn fold(
    expander: &mut Expander<'_>,
    range: Option<Expr>,
    variables: Variables,
    [start, condition, step, result]: [Expr; 4],
) -> Result<Expr, Issue> {
    let range = range.ok_or_else(|| Issue::without_position("macro without receiver"))?;
    Ok(expander.node(ExprKind::Comprehension(Box::new(Comprehension {
        range,
        variable: variables.first,
        second: variables.second,
        accumulator: Arc::from(ACCUMULATOR),
        start,
        condition,
        step,
        result,
    }))))
}

fn quantifier(
    expander: &mut Expander<'_>,
    target: Option<Expr>,
    mut arguments: Vec<Expr>,
    name: &str,
) -> Result<Expr, Issue> {
    let predicate = arguments.pop().ok_or_else(|| Issue::without_position("wrong number of arguments"))?;
    let variables = variables(expander, &arguments, "argument must be a simple name")?;
    let parts = match name {
        "all" => all(expander, predicate),
        "exists" => exists(expander, predicate),
        _ => exists_one(expander, predicate),
    };
    fold(expander, target, variables, parts)
}

fn all(expander: &mut Expander<'_>, predicate: Expr) -> [Expr; 4] {
    let start = expander.literal(Value::Bool(true));
    let so_far = expander.accumulator();
    let condition = expander.call(operator::NOT_STRICTLY_FALSE, vec![so_far]);
    let so_far = expander.accumulator();
    let step = expander.call(operator::AND, vec![so_far, predicate]);
    [start, condition, step, expander.accumulator()]
}

fn exists(expander: &mut Expander<'_>, predicate: Expr) -> [Expr; 4] {
    let start = expander.literal(Value::Bool(false));
    let so_far = expander.accumulator();
    let not = expander.call(operator::NOT, vec![so_far]);
    let condition = expander.call(operator::NOT_STRICTLY_FALSE, vec![not]);
    let so_far = expander.accumulator();
    let step = expander.call(operator::OR, vec![so_far, predicate]);
    [start, condition, step, expander.accumulator()]
}

fn exists_one(expander: &mut Expander<'_>, predicate: Expr) -> [Expr; 4] {
    let start = expander.literal(Value::Int(0));
    let condition = expander.literal(Value::Bool(true));
    let (so_far, one) = (expander.accumulator(), expander.literal(Value::Int(1)));
    let more = expander.call(operator::ADD, vec![so_far, one]);
    let so_far = expander.accumulator();
    let step = expander.call(operator::CONDITIONAL, vec![predicate, more, so_far]);
    let (count, one) = (expander.accumulator(), expander.literal(Value::Int(1)));
    [start, condition, step, expander.call(operator::EQUALS, vec![count, one])]
}

/// Creates a comprehension that collects into a list or a map, with or without a filter.
fn collect(
    expander: &mut Expander<'_>,
    range: Option<Expr>,
    variables: Variables,
    start: Expr,
    (filter, mut step): (Option<Expr>, Expr),
) -> Result<Expr, Issue> {
    let condition = expander.literal(Value::Bool(true));
    if let Some(filter) = filter {
        let so_far = expander.accumulator();
        step = expander.call(operator::CONDITIONAL, vec![filter, step, so_far]);
    }
    let result = expander.accumulator();
    fold(expander, range, variables, [start, condition, step, result])
}

fn append(expander: &mut Expander<'_>, item: Expr) -> Expr {
    let (so_far, item) = (expander.accumulator(), expander.list(vec![item]));
    expander.call(operator::ADD, vec![so_far, item])
}

pub(super) fn expand_map(
    expander: &mut Expander<'_>,
    target: Option<Expr>,
    mut arguments: Vec<Expr>,
    _: &str,
) -> Result<Expr, Issue> {
    let item = arguments.pop().ok_or_else(|| Issue::without_position("wrong number of arguments"))?;
    let variables = variables(expander, &arguments[..1], "argument is not an identifier")?;
    let filter = arguments.pop().filter(|_| !arguments.is_empty());
    let start = expander.list(Vec::new());
    let step = append(expander, item);
    collect(expander, target, variables, start, (filter, step))
}

fn filter(
    expander: &mut Expander<'_>,
    target: Option<Expr>,
    arguments: Vec<Expr>,
    _: &str,
) -> Result<Expr, Issue> {
    let [item, predicate] = to_array(arguments)?;
    let variables = variables(expander, std::slice::from_ref(&item), "argument is not an identifier")?;
    let start = expander.list(Vec::new());
    let step = append(expander, item);
    collect(expander, target, variables, start, (Some(predicate), step))
}

fn transform(
    expander: &mut Expander<'_>,
    target: Option<Expr>,
    mut arguments: Vec<Expr>,
    name: &str,
) -> Result<Expr, Issue> {
    let item = arguments.pop().ok_or_else(|| Issue::without_position("wrong number of arguments"))?;
    let filter = if arguments.len() > 2 { arguments.pop() } else { None };
    let variables = variables(expander, &arguments, "argument must be a simple name")?;
    let (start, step) = if name == "transformList" {
        (expander.list(Vec::new()), append(expander, item))
    } else {
        let so_far = expander.accumulator();
        let arguments = if name == "transformMap" {
            vec![so_far, expander.ident(&variables.first), item]
        } else {
            vec![so_far, item]
        };
        (expander.node(ExprKind::Map(Vec::new())), expander.call("cel.@mapInsert", arguments))
    };
    collect(expander, target, variables, start, (filter, step))
}
