//! The tree of an expression, after macros are expanded.

use std::sync::Arc;

use crate::value::Value;

/// Identifies a node; tables of types, references and places are indexed by it.
pub type Id = usize;

/// The name of the hidden variable that comprehensions collect into.
pub const ACCUMULATOR: &str = "@result";
/// The name of a variable that nothing reads.
pub const UNUSED: &str = "#unused";

/// A node.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its id.
    pub id: Id,
    /// What it is.
    pub kind: ExprKind,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A constant.
    Literal(Value<'static>),
    /// A variable, or the name of a type.
    Ident(Arc<str>),
    /// `operand.field`, or `has(operand.field)`.
    Select {
        /// On what.
        operand: Box<Expr>,
        /// The field.
        field: Arc<str>,
        /// Whether presence is asked for.
        test: bool,
    },
    /// A call of a function or an operator.
    Call {
        /// Its name: `_+_`, `size`.
        function: Arc<str>,
        /// The receiver.
        target: Option<Box<Expr>>,
        /// The arguments.
        arguments: Vec<Expr>,
    },
    /// `[a, ?b]`.
    List(Vec<Item>),
    /// `{k: v, ?k: v}`.
    Map(Vec<Entry>),
    /// `Name{field: value}`.
    Struct {
        /// The type.
        name: Arc<str>,
        /// Its fields.
        fields: Vec<FieldValue>,
    },
    /// What a macro such as `all` becomes.
    Comprehension(Box<Comprehension>),
    /// Where an error was reported.
    Broken,
}

/// An item of a list.
#[derive(Clone, Debug)]
pub struct Item {
    /// The item.
    pub value: Expr,
    /// Whether it is an optional that may be left out.
    pub optional: bool,
}

/// An entry of a map.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its key.
    pub key: Expr,
    /// Its value.
    pub value: Expr,
    /// Whether the value is an optional that may be left out.
    pub optional: bool,
}

/// A field of an object literal.
#[derive(Clone, Debug)]
pub struct FieldValue {
    /// Its id.
    pub id: Id,
    /// Its name.
    pub name: Arc<str>,
    /// Its value.
    pub value: Expr,
    /// Whether the value is an optional that may be left out.
    pub optional: bool,
}

/// A fold over a list or a map.
#[derive(Clone, Debug)]
pub struct Comprehension {
    /// What is folded.
    pub range: Expr,
    /// Takes items of lists, keys of maps; with two variables indices of lists.
    pub variable: Arc<str>,
    /// Takes items of lists and values of maps.
    pub second: Option<Arc<str>>,
    /// Collects.
    pub accumulator: Arc<str>,
    /// What the accumulator starts with.
    pub start: Expr,
    /// Whether to go on.
    pub condition: Expr,
    /// The accumulator's next value.
    pub step: Expr,
    /// The result.
    pub result: Expr,
}

impl Comprehension {
    /// Whether it only binds a name: nothing is folded, and the accumulator is a name of its own.
    #[must_use]
    pub fn is_binding(&self) -> bool {
        matches!(&self.range.kind, ExprKind::List(items) if items.is_empty())
            && matches!(self.condition.kind, ExprKind::Literal(Value::Bool(false)))
            && &*self.accumulator != "__result__"
    }
}

/// Operators by the names of their functions.
pub mod operator {
    /// `a ? b : c`.
    pub const CONDITIONAL: &str = "_?_:_";
    /// `&&`.
    pub const AND: &str = "_&&_";
    /// `||`.
    pub const OR: &str = "_||_";
    /// `!`.
    pub const NOT: &str = "!_";
    /// `==`.
    pub const EQUALS: &str = "_==_";
    /// `!=`.
    pub const NOT_EQUALS: &str = "_!=_";
    /// `<`.
    pub const LESS: &str = "_<_";
    /// `<=`.
    pub const LESS_EQUALS: &str = "_<=_";
    /// `>`.
    pub const GREATER: &str = "_>_";
    /// `>=`.
    pub const GREATER_EQUALS: &str = "_>=_";
    /// `+`.
    pub const ADD: &str = "_+_";
    /// Binary `-`.
    pub const SUBTRACT: &str = "_-_";
    /// `*`.
    pub const MULTIPLY: &str = "_*_";
    /// `/`.
    pub const DIVIDE: &str = "_/_";
    /// `%`.
    pub const MODULO: &str = "_%_";
    /// Unary `-`.
    pub const NEGATE: &str = "-_";
    /// `a[b]`.
    pub const INDEX: &str = "_[_]";
    /// `a[?b]`.
    pub const OPTIONAL_INDEX: &str = "_[?_]";
    /// `a.?b`.
    pub const OPTIONAL_FIELD: &str = "_?._";
    /// `a in b`.
    pub const IN: &str = "@in";
    /// Whether a quantifier may go on: errors count as true.
    pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
}
