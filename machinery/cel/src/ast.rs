//! The tree of an expression, after macros are expanded.

use std::sync::Arc;

use crate::value::Value;

/// Identifies a node; tables of types, references and places are indexed by it.
pub type Id = usize;

/// Name of the hidden variable that accumulates the result of a comprehension.
pub const ACCUMULATOR: &str = "@result";
/// Name of a variable that is never read.
pub const UNUSED: &str = "#unused";

/// A node.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Id of the node.
    pub id: Id,
    /// Kind of the node.
    pub kind: ExprKind,
}

/// Kind of a node.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A constant.
    Literal(Value<'static>),
    /// A variable, or the name of a type.
    Ident(Arc<str>),
    /// `operand.field`, or `has(operand.field)`.
    Select {
        /// Expression whose field is selected.
        operand: Box<Expr>,
        /// The field.
        field: Arc<str>,
        /// True for a test of presence: `has(a.b)`.
        test: bool,
    },
    /// A call of a function or an operator.
    Call {
        /// Name of the function: `_+_`, `size`.
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
        /// Fields of the object.
        fields: Vec<FieldValue>,
    },
    /// Expansion of a macro such as `all`.
    Comprehension(Box<Comprehension>),
    /// Placeholder for an expression with a syntax error.
    Broken,
}

/// An item of a list.
#[derive(Clone, Debug)]
pub struct Item {
    /// The item.
    pub value: Expr,
    /// True for an optional item, which is omitted if it is empty.
    pub optional: bool,
}

/// An entry of a map.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Key of the entry.
    pub key: Expr,
    /// Value of the entry.
    pub value: Expr,
    /// True for an optional value, which is omitted if it is empty.
    pub optional: bool,
}

/// A field of an object literal.
#[derive(Clone, Debug)]
pub struct FieldValue {
    /// Id of the node.
    pub id: Id,
    /// Name of the field.
    pub name: Arc<str>,
    /// Value of the entry.
    pub value: Expr,
    /// True for an optional value, which is omitted if it is empty.
    pub optional: bool,
}

/// A fold over a list or a map.
#[derive(Clone, Debug)]
pub struct Comprehension {
    /// List or map that is folded.
    pub range: Expr,
    /// Variable for items of lists or keys of maps; with two variables, for indices of lists.
    pub variable: Arc<str>,
    /// Variable for items of lists or values of maps.
    pub second: Option<Arc<str>>,
    /// Name of the accumulator.
    pub accumulator: Arc<str>,
    /// Initial value of the accumulator.
    pub start: Expr,
    /// Condition for continuing the loop.
    pub condition: Expr,
    /// Next value of the accumulator.
    pub step: Expr,
    /// The result.
    pub result: Expr,
}

impl Comprehension {
    /// True if the comprehension binds a name (`cel.bind`) and does not loop.
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
    /// Condition of a quantifier, where errors count as true.
    pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
}
