//! Suffixes of a primary: selections, calls of member functions, indices.

use std::sync::Arc;

use super::depth::enter;
use super::grammar::call_with;
use super::lexer::Token;
use super::{Parse, Parser};
use crate::ast::{Expr, ExprKind, operator};
use crate::value::Value;

impl Parser<'_> {
    /// Parses a primary with selections, calls and indices.
    pub(super) fn member(&mut self) -> Parse<Expr> {
        let members = self.depth.member;
        enter(&mut self.depth.member)?;
        let mut expr = self.primary()?;
        loop {
            expr = match self.token() {
                Token::Mark(".") => self.select(expr)?,
                Token::Mark("[") => self.index(expr)?,
                _ => break,
            };
            enter(&mut self.depth.member)?;
        }
        self.depth.member = members;
        Ok(expr)
    }

    fn select(&mut self, operand: Expr) -> Parse<Expr> {
        let dot = self.offset();
        self.advance();
        let optional = self.take(Token::Mark("?"));
        let (offset, name) = (self.offset(), self.token_text());
        match self.token() {
            Token::Ident => self.advance(),
            Token::Escaped => {
                self.advance();
                return Ok(self.report_invalid_use(offset, "unsupported syntax: '`'"));
            }
            _ if optional => return Err(self.unexpected("{IDENTIFIER, ESC_IDENTIFIER}")),
            _ => return Err(self.unexpected("{'?', IDENTIFIER, ESC_IDENTIFIER}")),
        }
        if optional {
            let id = self.new_id(dot);
            let field = self.node(offset, ExprKind::Literal(Value::text(name)));
            return Ok(call_with(id, operator::OPTIONAL_FIELD, vec![operand, field]));
        }
        if self.token() == Token::Mark("(") {
            let open = self.offset();
            let id = self.operator_id();
            let arguments = self.arguments()?;
            return Ok(self.call_or_macro(id, open, name, Some(operand), arguments));
        }
        Ok(self
            .node(dot, ExprKind::Select { operand: Box::new(operand), field: Arc::from(name), test: false }))
    }

    fn index(&mut self, operand: Expr) -> Parse<Expr> {
        let id = self.operator_id();
        let function = if self.take(Token::Mark("?")) { operator::OPTIONAL_INDEX } else { operator::INDEX };
        let index = self.expr()?;
        self.expect(Token::Mark("]"))?;
        Ok(call_with(id, function, vec![operand, index]))
    }

    /// Parses arguments after their opening parenthesis, and the closing one.
    pub(super) fn arguments(&mut self) -> Parse<Vec<Expr>> {
        let mut arguments = Vec::new();
        if self.take(Token::Mark(")")) {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expr()?);
            if !self.take(Token::Mark(",")) {
                self.expect(Token::Mark(")"))?;
                return Ok(arguments);
            }
        }
    }
}
