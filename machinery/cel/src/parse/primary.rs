//! Names, calls, parentheses and literals, including macro expansion.

use std::sync::Arc;

use super::lexer::Token;
use super::{Parse, Parser, literal};
use crate::ast::{Entry, Expr, ExprKind, FieldValue, Item};
use crate::diagnostics::Issue;
use crate::macros::Expander;
use crate::value::Value;

/// Reserved names, which variables and functions must not have.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];
/// Tokens that start an expression, for messages.
const EXPRESSION_STARTS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, \
                      IDENTIFIER}";

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Parse<Expr> {
        match self.token() {
            Token::Mark("(") => {
                self.advance();
                let expr = self.expr()?;
                self.expect(Token::Mark(")")).map(|()| expr)
            }
            Token::Mark("[") => self.list(),
            Token::Mark("{") => self.map(),
            Token::Mark(".") | Token::Ident => self.name(),
            _ => self.literal(),
        }
    }

    fn literal(&mut self) -> Parse<Expr> {
        let offset = self.offset();
        let negative = self.at_negative_number();
        if negative {
            self.advance();
        }
        let text = self.token_text();
        let value = match self.token() {
            Token::True => Ok(Value::Bool(true)),
            Token::False => Ok(Value::Bool(false)),
            Token::Null => Ok(Value::Null),
            Token::Int => literal::int(text, negative).map(Value::Int).ok_or("invalid int literal"),
            Token::Uint => literal::uint(text).map(Value::Uint).ok_or("invalid uint literal"),
            Token::Float => {
                literal::double(text, negative).map(Value::Double).ok_or("invalid double literal")
            }
            Token::Text => literal::parse_quoted(text, false),
            Token::Bytes => literal::parse_quoted(text, true),
            _ => return Err(self.unexpected(EXPRESSION_STARTS)),
        };
        self.advance();
        Ok(match value {
            Ok(value) => self.node(offset, ExprKind::Literal(value)),
            Err(message) => self.report_invalid_use(offset, message),
        })
    }

    fn list(&mut self) -> Parse<Expr> {
        let offset = self.offset();
        self.advance();
        let id = self.new_id(offset);
        let mut items = Vec::new();
        self.lone_comma("]");
        while !self.take(Token::Mark("]")) {
            let optional = self.take(Token::Mark("?"));
            items.push(Item { value: self.expr()?, optional });
            self.separator("]")?;
        }
        Ok(Expr { id, kind: ExprKind::List(items) })
    }

    fn map(&mut self) -> Parse<Expr> {
        let offset = self.offset();
        self.advance();
        let id = self.new_id(offset);
        let mut entries = Vec::new();
        self.lone_comma("}");
        while !self.take(Token::Mark("}")) {
            let optional = self.take(Token::Mark("?"));
            let key = self.expr()?;
            self.expect(Token::Mark(":"))?;
            let value = self.expr()?;
            entries.push(Entry { key, value, optional });
            self.separator("}")?;
        }
        Ok(Expr { id, kind: ExprKind::Map(entries) })
    }

    /// Parses a comma directly before the closing mark, which is allowed even if there are no elements.
    fn lone_comma(&mut self, closing: &'static str) {
        if self.token() == Token::Mark(",") && self.peek(1) == Token::Mark(closing) {
            self.advance();
        }
    }

    /// Parses a comma, unless the closing mark comes next.
    fn separator(&mut self, closing: &'static str) -> Parse<()> {
        if self.take(Token::Mark(",")) || self.token() == Token::Mark(closing) {
            return Ok(());
        }
        Err(self.unexpected(if closing == "]" { "{']', ','}" } else { "{'}', ','}" }))
    }

    /// Parses a variable, a call, or an object literal.
    fn name(&mut self) -> Parse<Expr> {
        let start = self.offset();
        let dotted = self.take(Token::Mark("."));
        let offset = self.offset();
        if self.token() != Token::Ident {
            return Err(self.unexpected("IDENTIFIER"));
        }
        if let Some(names) = self.object_name() {
            return self.object(dotted, names);
        }
        let name = self.token_text();
        self.advance();
        let reserved = RESERVED.contains(&name);
        let full = if dotted { format!(".{name}") } else { name.to_owned() };
        if self.token() == Token::Mark("(") {
            let open = self.offset();
            self.advance();
            let id = self.new_id(open);
            let arguments = self.arguments()?;
            if reserved {
                return Ok(self.report_invalid_use(start, format!("reserved identifier: {name}")));
            }
            return Ok(self.call_or_macro(id, open, &full, None, arguments));
        }
        if reserved {
            return Ok(self.report_invalid_use(start, format!("reserved identifier: {name}")));
        }
        Ok(self.node(offset, ExprKind::Ident(Arc::from(full))))
    }

    /// Returns the number of tokens in the name of an object literal, if there is one.
    fn object_name(&self) -> Option<usize> {
        let mut count = 1;
        while self.peek(count) == Token::Mark(".") && self.peek(count + 1) == Token::Ident {
            count += 2;
        }
        (self.peek(count) == Token::Mark("{")).then_some(count)
    }

    fn object(&mut self, dotted: bool, tokens: usize) -> Parse<Expr> {
        let mut name = String::from(if dotted { "." } else { "" });
        for _ in 0..tokens {
            name.push_str(self.token_text());
            self.advance();
        }
        let offset = self.offset();
        self.advance();
        let id = self.new_id(offset);
        let mut fields = Vec::new();
        self.lone_comma("}");
        while !self.take(Token::Mark("}")) {
            fields.push(self.object_field()?);
            self.separator("}")?;
        }
        Ok(Expr { id, kind: ExprKind::Struct { name: Arc::from(name), fields } })
    }

    fn object_field(&mut self) -> Parse<FieldValue> {
        let optional = self.take(Token::Mark("?"));
        let (offset, text) = (self.offset(), self.token_text());
        match self.token() {
            Token::Ident => {}
            Token::Escaped => self.issues.push(Issue::at(offset, "unsupported syntax: '`'")),
            _ => return Err(self.unexpected("{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}")),
        }
        self.advance();
        let colon = self.offset();
        self.expect(Token::Mark(":"))?;
        let id = self.new_id(colon);
        Ok(FieldValue { id, name: Arc::from(text), value: self.expr()?, optional })
    }

    /// Creates a call, or expands the macro with that name.
    pub(super) fn call_or_macro(
        &mut self,
        id: usize,
        offset: usize,
        name: &str,
        target: Option<Expr>,
        arguments: Vec<Expr>,
    ) -> Expr {
        let found = self.macros.iter().find(|m| m.matches(name, target.is_some(), arguments.len()));
        let Some(found) = found else {
            let target = target.map(Box::new);
            return Expr { id, kind: ExprKind::Call { function: Arc::from(name), target, arguments } };
        };
        let mut expander = Expander { offsets: &mut self.offsets, offset };
        match (found.expand)(&mut expander, target, arguments, name) {
            Ok(expr) => expr,
            Err(issue) => {
                self.issues.push(issue);
                self.node(offset, ExprKind::Broken)
            }
        }
    }
}
