//! Macros: calls that are expanded to other trees while parsing.

mod bindings;
mod folds;
mod optionals;

use std::sync::Arc;

use crate::ast::{ACCUMULATOR, Comprehension, Expr, ExprKind, Item};
use crate::diagnostics::Issue;
use crate::value::Value;

pub use bindings::{BIND, SORT_BY};
pub use folds::{EXISTS_ONE, STANDARD, TWO_VARIABLES};
pub use optionals::OPTIONALS;

/// Nodes of an expression after macros are expanded.
///
/// Limit (Expressions): the expression is rejected.
const MAX_NODES: usize = 100_000;

/// A macro.
#[derive(Debug)]
pub struct Macro {
    /// Name of the call.
    pub name: &'static str,
    /// True for macros with a receiver.
    pub receiver: bool,
    /// Number of arguments.
    pub arguments: usize,
    /// Expands a call.
    pub(crate) expand: Expand,
}

/// Expands a call: with its receiver, arguments and name.
pub type Expand = fn(&mut Expander<'_>, Option<Expr>, Vec<Expr>, &str) -> Result<Expr, Issue>;

impl Macro {
    /// Creates a macro with a receiver.
    const fn member(name: &'static str, arguments: usize, expand: Expand) -> Self {
        Self { name, receiver: true, arguments, expand }
    }

    /// True if a call matches the macro.
    #[must_use]
    pub fn matches(&self, name: &str, receiver: bool, arguments: usize) -> bool {
        self.name == name && self.receiver == receiver && self.arguments == arguments
    }
}

/// Creates the nodes of an expansion, all at the offset of the call.
#[derive(Debug)]
pub struct Expander<'p> {
    pub(crate) offsets: &'p mut Vec<usize>,
    pub(crate) offset: usize,
}

impl Expander<'_> {
    fn node(&mut self, kind: ExprKind) -> Expr {
        self.offsets.push(self.offset);
        Expr { id: self.offsets.len() - 1, kind }
    }

    fn literal(&mut self, value: Value<'static>) -> Expr {
        self.node(ExprKind::Literal(value))
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.node(ExprKind::Ident(Arc::from(name)))
    }

    fn accumulator(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    fn list(&mut self, items: Vec<Expr>) -> Expr {
        self.node(ExprKind::List(items.into_iter().map(|value| Item { value, optional: false }).collect()))
    }

    fn call(&mut self, function: &str, arguments: Vec<Expr>) -> Expr {
        self.node(ExprKind::Call { function: Arc::from(function), target: None, arguments })
    }

    fn member_call(&mut self, function: &str, target: Expr, arguments: Vec<Expr>) -> Expr {
        self.node(ExprKind::Call { function: Arc::from(function), target: Some(Box::new(target)), arguments })
    }

    /// Binds a name to a value in a body.
    fn binding(&mut self, name: &str, value: Expr, body: Expr) -> Expr {
        let fold = Comprehension {
            range: self.list(Vec::new()),
            variable: Arc::from(crate::ast::UNUSED),
            second: None,
            accumulator: Arc::from(name),
            start: value,
            condition: self.literal(Value::Bool(false)),
            step: self.ident(name),
            result: body,
        };
        self.node(ExprKind::Comprehension(Box::new(fold)))
    }

    fn issue(&self, expr: &Expr, message: impl Into<String>) -> Issue {
        Issue::at(self.offsets.get(expr.id).copied().unwrap_or(self.offset), message)
    }

    /// Copies a tree with new ids at the same offsets. Copies of copies could grow without bound, so expressions that become too
    /// large are rejected.
    fn copy(&mut self, expr: &Expr) -> Result<Expr, Issue> {
        let mut nodes = 0;
        crate::walk::visit_nodes(expr, &mut |_| nodes += 1);
        if self.offsets.len() + nodes > MAX_NODES {
            return Err(Issue::at(self.offset, "expression is too large"));
        }
        let mut copy = expr.clone();
        crate::walk::each_mut(&mut copy, &mut |node| {
            let offset = self.offsets.get(node.id).copied().unwrap_or(self.offset);
            self.offsets.push(offset);
            node.id = self.offsets.len() - 1;
        });
        Ok(copy)
    }
}

/// Returns the name if an argument is an identifier.
fn simple_name(argument: &Expr) -> Option<Arc<str>> {
    match &argument.kind {
        ExprKind::Ident(name) => Some(name.clone()),
        _ => None,
    }
}

/// Converts the arguments to an array of a known length; a macro is only called with this number of arguments.
fn to_array<const N: usize>(arguments: Vec<Expr>) -> Result<[Expr; N], Issue> {
    arguments.try_into().map_err(|_| Issue::without_position("wrong number of arguments"))
}
