//! Planner: converts nodes of the tree to nodes of the plan.

use std::sync::Arc;

use super::node::{Attribute, CallNode, Constants, Node};
use crate::ast::{Entry, Expr, ExprKind, FieldValue, Item, operator};
use crate::check::{CheckedAst, Reference};
use crate::function::{Call, Overload};
#[cfg(feature = "regex")]
use crate::meter::Meter;
#[cfg(feature = "regex")]
use crate::pattern_cache::{CallPattern, PatternCache};
use crate::types::Type;
use crate::value::{Key, MapBuilder, Value};
use crate::variable::Variable;

/// Conversions that are evaluated at compile time if their argument is constant.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

pub(super) struct Planner<'c> {
    pub checked: &'c CheckedAst,
    pub variables: &'c [Variable],
    #[cfg(feature = "regex")]
    pub meter: &'c Meter,
    pub uses: Vec<bool>,
    /// Names of the comprehension variables in scope.
    pub locals: Vec<Arc<str>>,
}

impl Planner<'_> {
    pub(super) fn node(&mut self, expr: &Expr) -> Result<Node, String> {
        match &expr.kind {
            ExprKind::Literal(value) => Ok(Node::Constant(value.clone())),
            ExprKind::Ident(name) => self.ident(expr, name),
            ExprKind::Select { operand, field, test } => {
                let operand = self.node(operand)?;
                Ok(Attribute::of(operand).with_field(field.clone(), false, *test).into())
            }
            ExprKind::Call { function, target, arguments } => {
                self.call(expr, function, target.as_deref(), arguments)
            }
            ExprKind::List(items) => self.list(items),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Comprehension(fold) => self.fold(fold),
            ExprKind::Struct { name, fields } => self.object(name, fields),
            ExprKind::Broken => Err("unsupported expression".to_owned()),
        }
    }

    fn ident(&mut self, expr: &Expr, name: &str) -> Result<Node, String> {
        if let Reference::Type(ty) = self.checked.reference(expr) {
            return Ok(Node::Constant(Value::Type(Arc::new(ty.clone()))));
        }
        // cel-go treats any expression of type `type` as the name of a type.
        if let Type::Type(_) = self.checked.type_of(expr) {
            return Err(format!("reference to undefined type: {name}"));
        }
        if let Some(slot) = self.locals.iter().rposition(|local| **local == *name) {
            return Ok(Attribute::local(slot).into());
        }
        let slot = self.variables.iter().rposition(|variable| *variable.name == *name);
        let slot = slot.ok_or_else(|| format!("no such attribute(s): {name}"))?;
        self.uses[slot] = true;
        Ok(Attribute::variable(slot).into())
    }

    fn call(
        &mut self,
        expr: &Expr,
        function: &str,
        target: Option<&Expr>,
        arguments: &[Expr],
    ) -> Result<Node, String> {
        if let (operator::OPTIONAL_FIELD, [operand, name]) = (function, arguments)
            && let ExprKind::Literal(Value::String(field)) = &name.kind
        {
            let operand = self.node(operand)?;
            return Ok(Attribute::of(operand).with_field(Arc::from(&**field), true, false).into());
        }
        let mut nodes = Vec::with_capacity(arguments.len() + 1);
        for argument in target.into_iter().chain(arguments) {
            nodes.push(self.node(argument)?);
        }
        if let operator::INDEX | operator::OPTIONAL_INDEX = function {
            return index_node(nodes, function == operator::OPTIONAL_INDEX);
        }
        let nodes = match self.intrinsic_call(function, nodes) {
            Ok(node) => return Ok(node),
            Err(nodes) => nodes,
        };
        let call = self.resolve_call(expr, function, nodes)?;
        #[cfg(feature = "regex")]
        let call = with_pattern(call, self.checked.language.pattern_cache(), self.meter)?;
        simplify_call(fold_conversion(call)?)
    }

    /// Converts calls that the evaluator implements itself.
    fn intrinsic_call(&self, function: &str, nodes: Vec<Node>) -> Result<Node, Vec<Node>> {
        match function {
            operator::AND | operator::OR => {
                nodes.try_into().map(|pair| Node::Logic(function == operator::AND, Box::new(pair)))
            }
            operator::EQUALS | operator::NOT_EQUALS => {
                nodes.try_into().map(|pair| Node::Equality(function == operator::EQUALS, Box::new(pair)))
            }
            operator::CONDITIONAL => nodes.try_into().map(|three| Attribute::either(three).into()),
            operator::NOT_STRICTLY_FALSE => {
                nodes.try_into().map(|[node]: [Node; 1]| Node::NotStrictlyFalse(Box::new(node)))
            }
            "or" | "orValue" => {
                nodes.try_into().map(|pair| Node::OptionalOr(function == "orValue", Box::new(pair)))
            }
            operator::ADD => self.append(nodes),
            "cel.@mapInsert" => self.insert(nodes),
            _ => Err(nodes),
        }
    }

    /// Converts `accumulator + [item]`.
    fn append(&self, mut nodes: Vec<Node>) -> Result<Node, Vec<Node>> {
        let (Some(slot), Some(Node::List(items))) = (self.accumulator(nodes.first()), nodes.get_mut(1))
        else {
            return self.append_constant(nodes);
        };
        if items.len() != 1 || items[0].1 {
            return Err(nodes);
        }
        let (item, _) = std::mem::replace(&mut items[0], (Node::Constant(Value::Null), false));
        Ok(Node::Append(slot, Box::new(item)))
    }

    fn append_constant(&self, nodes: Vec<Node>) -> Result<Node, Vec<Node>> {
        let (Some(slot), Some(Node::Constant(Value::List(list)))) =
            (self.accumulator(nodes.first()), nodes.get(1))
        else {
            return Err(nodes);
        };
        match list.get(0) {
            Some(Ok(item)) if list.len() == 1 => Ok(Node::Append(slot, Box::new(Node::Constant(item)))),
            _ => Err(nodes),
        }
    }

    fn insert(&self, nodes: Vec<Node>) -> Result<Node, Vec<Node>> {
        let Some(slot) = self.accumulator(nodes.first()) else { return Err(nodes) };
        let mut nodes = nodes.into_iter().skip(1);
        match (nodes.next(), nodes.next()) {
            (Some(key), value) => Ok(Node::Insert(slot, Box::new((key, value)))),
            _ => Err(Vec::new()),
        }
    }

    /// Returns the index of the innermost accumulator, if the node reads it.
    fn accumulator(&self, node: Option<&Node>) -> Option<usize> {
        let Some(Node::Attribute(attribute)) = node else { return None };
        attribute.as_local().filter(|slot| *self.locals[*slot] == *crate::ast::ACCUMULATOR)
    }

    fn resolve_call(&self, expr: &Expr, function: &str, nodes: Vec<Node>) -> Result<CallNode, String> {
        let declared = self
            .checked
            .language
            .function(function)
            .ok_or_else(|| format!("no such overload: {function}"))?;
        let Reference::Overloads(indices) = self.checked.reference(expr) else {
            return Err(format!("no such overload: {function}"));
        };
        let overloads: Vec<Arc<Overload>> =
            indices.iter().map(|index| declared.overloads[*index].clone()).collect();
        let stops_at_error = nodes.len() > 2
            || declared.name == "format"
            || (nodes.len() > 1 && !has_one_implementation(&overloads, &declared.name));
        Ok(CallNode {
            name: declared.name.clone(),
            overloads,
            arguments: nodes,
            #[cfg(feature = "regex")]
            regex: None,
            stops_at_error,
        })
    }

    fn list(&mut self, items: &[Item]) -> Result<Node, String> {
        let mut nodes = Vec::with_capacity(items.len());
        for item in items {
            nodes.push((self.node(&item.value)?, item.optional));
        }
        let constants: Option<Vec<Value<'static>>> = nodes
            .iter()
            .map(|(node, optional)| match node {
                Node::Constant(value) if !optional => Some(value.clone()),
                _ => None,
            })
            .collect();
        Ok(match constants {
            Some(values) => Node::Constant(Value::list(values)),
            None => Node::List(nodes.into()),
        })
    }

    fn map(&mut self, entries: &[Entry]) -> Result<Node, String> {
        let mut nodes = Vec::with_capacity(entries.len());
        for entry in entries {
            nodes.push((self.node(&entry.key)?, self.node(&entry.value)?, entry.optional));
        }
        Ok(constant_map(&nodes).map_or_else(|| Node::Map(nodes.into()), Node::Constant))
    }

    /// Converts an object literal, which is created in each run and charged as a literal, even if all fields are constant.
    fn object(&mut self, name: &Arc<str>, fields: &[FieldValue]) -> Result<Node, String> {
        let mut nodes = Vec::with_capacity(fields.len());
        for field in fields {
            let key = Node::Constant(Value::text(Arc::clone(&field.name)));
            nodes.push((key, self.node(&field.value)?, field.optional));
        }
        let name = name.strip_prefix('.').map_or_else(|| Arc::clone(name), Arc::from);
        Ok(Node::Object(name, nodes.into()))
    }
}

/// Returns a map constant if all keys and values are constants.
fn constant_map(entries: &[(Node, Node, bool)]) -> Option<Value<'static>> {
    let mut map = MapBuilder::with_capacity(entries.len());
    for entry in entries {
        let (Node::Constant(key), Node::Constant(value), false) = entry else { return None };
        map.insert(Key::from_value(key)?, value.clone());
    }
    Some(Value::Map(map.into()))
}

/// True if a call has one implementation: a single overload, or an operator.
fn has_one_implementation(overloads: &[Arc<Overload>], name: &str) -> bool {
    overloads.len() == 1 || name.contains('_') || name == operator::IN || ["size", "matches"].contains(&name)
}

/// Converts `operand[index]` or `operand[?index]`.
fn index_node(nodes: Vec<Node>, optional: bool) -> Result<Node, String> {
    let Ok([operand, index]) = <[Node; 2]>::try_from(nodes) else {
        return Err(format!("no such overload: {}", operator::INDEX));
    };
    Attribute::of(operand).with_index(index, optional).map(Node::from)
}

/// Compiles a literal pattern with the program. Computed patterns are looked up in the cache when the program runs.
#[cfg(feature = "regex")]
fn with_pattern(mut call: CallNode, cache: &PatternCache, meter: &Meter) -> Result<CallNode, String> {
    if let Some(pattern) = call.pattern() {
        call.regex = Some(CallPattern::literal(cache, pattern, meter)?);
        call.stops_at_error = true;
    } else if call.takes_pattern() {
        call.regex = Some(CallPattern::Cached(cache.clone()));
    }
    Ok(call)
}

/// Evaluates a conversion of a constant.
fn fold_conversion(call: CallNode) -> Result<CallNode, String> {
    if !CONVERSIONS.contains(&&*call.name) {
        return Ok(call);
    }
    let [Node::Constant(argument)] = &call.arguments[..] else { return Ok(call) };
    let arguments = std::slice::from_ref(argument);
    let overload = call.overload_for(arguments).map_err(|error| error.to_string())?;
    let result = overload.run.call(&Call::new(arguments, u64::MAX));
    let value = result.map_err(|error| error.to_string())?;
    Ok(CallNode { arguments: vec![Node::Constant(value)], overloads: Vec::new(), ..call })
}

/// Converts a computed call to a constant, and `in` with a list of constants to a lookup.
fn simplify_call(mut call: CallNode) -> Result<Node, String> {
    if call.overloads.is_empty()
        && let Some(value) = call.arguments.pop()
    {
        return Ok(value);
    }
    let constant_list = match &call.arguments[..] {
        [_, Node::Constant(Value::List(list))] if call.name == operator::IN => Some(list.clone()),
        _ => None,
    };
    match constant_list.as_ref().and_then(Constants::of) {
        // An empty list contains no value.
        Some(constants) if constants.is_empty() => Ok(Node::Constant(Value::Bool(false))),
        Some(constants) => {
            call.arguments.truncate(1);
            let item = call.arguments.pop().ok_or("no such overload")?;
            Ok(Node::InSet(Box::new(item), Box::new(constants)))
        }
        None => Ok(Node::Call(Box::new(call))),
    }
}
