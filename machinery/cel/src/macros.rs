//! Macros: calls that become other trees while parsing.

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
    /// The call's name.
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
    /// A receiver's macro.
    const fn member(name: &'static str, arguments: usize, expand: Expand) -> Self {
        Self { name, receiver: true, arguments, expand }
    }

    /// True if a call matches the macro.
    #[must_use]
    pub fn matches(&self, name: &str, receiver: bool, arguments: usize) -> bool {
        self.name == name && self.receiver == receiver && self.arguments == arguments
    }
}

/// Makes the nodes of an expansion; all stand at the place of the call.
#[derive(Debug)]
pub struct Expander<'p> {
    pub(crate) places: &'p mut Vec<usize>,
    pub(crate) place: usize,
}

impl Expander<'_> {
    fn node(&mut self, kind: ExprKind) -> Expr {
        self.places.push(self.place);
        Expr { id: self.places.len() - 1, kind }
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

    fn issue(&self, at: &Expr, message: impl Into<String>) -> Issue {
        Issue::at(self.places.get(at.id).copied().unwrap_or(self.place), message)
    }

    /// A copy of a tree with ids of its own at the same places. Copies of copies grow without bound: what grows too
    /// large is refused.
    fn copy(&mut self, expr: &Expr) -> Result<Expr, Issue> {
        let mut nodes = 0;
        crate::walk::each(expr, &mut |_| nodes += 1);
        if self.places.len() + nodes > MAX_NODES {
            return Err(Issue::at(self.place, "expression is too large"));
        }
        let mut copy = expr.clone();
        crate::walk::each_mut(&mut copy, &mut |node| {
            let place = self.places.get(node.id).copied().unwrap_or(self.place);
            self.places.push(place);
            node.id = self.places.len() - 1;
        });
        Ok(copy)
    }
}

/// The name that an argument is.
fn simple_name(argument: &Expr) -> Option<Arc<str>> {
    match &argument.kind {
        ExprKind::Ident(name) => Some(name.clone()),
        _ => None,
    }
}

/// The arguments as an array of a known length; a macro is only called with that many.
fn exactly<const N: usize>(arguments: Vec<Expr>) -> Result<[Expr; N], Issue> {
    arguments.try_into().map_err(|_| Issue::whole("wrong number of arguments"))
}
