//! Operators, parsed by precedence with explicit stacks: only parentheses, arguments and ternary operators are recursive.

use std::sync::Arc;

use super::depth::enter;
use super::lexer::Token;
use super::{Parse, Parser, logic};
use crate::ast::{Expr, ExprKind, operator};

/// Binary operator without its right operand yet.
struct PendingOperator {
    id: usize,
    function: &'static str,
    precedence: u8,
}

const ADDITION: u8 = 3;
const RELATION: u8 = 2;

impl Parser<'_> {
    /// Parses `a ? b : c` and everything that binds tighter.
    pub(super) fn expr(&mut self) -> Parse<Expr> {
        enter(&mut self.depth.expr)?;
        let mut expr = self.operators()?;
        if self.token() == Token::Mark("?") {
            let id = self.operator_id();
            let then = self.operators()?;
            self.expect(Token::Mark(":"))?;
            let other = self.expr()?;
            expr = call_with(id, operator::CONDITIONAL, vec![expr, then, other]);
        }
        self.depth.expr -= 1;
        Ok(expr)
    }

    /// Parses operands with binary operators. Chains count as deep as in cel-go's left-recursive rules.
    fn operators(&mut self) -> Parse<Expr> {
        let (relations, calculations) = (self.depth.relation, self.depth.calc);
        enter(&mut self.depth.relation)?;
        enter(&mut self.depth.calc)?;
        let mut operands = vec![self.operand()?];
        let mut waiting: Vec<PendingOperator> = Vec::new();
        while let Some((function, precedence)) = binary(self.token()) {
            reduce(&mut operands, &mut waiting, function, precedence);
            if precedence < ADDITION {
                self.depth.calc = calculations + 1;
            }
            if precedence < RELATION {
                self.depth.relation = relations + 1;
            } else {
                enter(if precedence == RELATION { &mut self.depth.relation } else { &mut self.depth.calc })?;
            }
            waiting.push(PendingOperator { id: self.operator_id(), function, precedence });
            operands.push(self.operand()?);
        }
        (self.depth.relation, self.depth.calc) = (relations, calculations);
        reduce(&mut operands, &mut waiting, "", 0);
        Ok(operands.pop().unwrap_or(Expr { id: 0, kind: ExprKind::Broken }))
    }

    pub(super) fn operator_id(&mut self) -> usize {
        let offset = self.offset();
        self.advance();
        self.new_id(offset)
    }

    /// Parses a member after any number of `!` or `-`.
    fn operand(&mut self) -> Parse<Expr> {
        let negation = self.negation();
        let expr = self.member()?;
        Ok(match negation {
            Some((id, function)) => call_with(id, function, vec![expr]),
            None => expr,
        })
    }

    /// Parses a sequence of `!` or `-`; an even number has no effect. A single minus is part of the number after it.
    fn negation(&mut self) -> Option<(usize, &'static str)> {
        let mark = self.token();
        let function = match mark {
            Token::Mark("!") => operator::NOT,
            Token::Mark("-") => operator::NEGATE,
            _ => return None,
        };
        if self.at_negative_number() {
            return None;
        }
        let offset = self.offset();
        let mut count = 0;
        while self.token() == mark {
            self.advance();
            count += 1;
        }
        (count % 2 == 1).then(|| (self.new_id(offset), function))
    }

    /// True if a minus is part of the following number.
    pub(super) fn at_negative_number(&self) -> bool {
        self.token() == Token::Mark("-") && matches!(self.peek(1), Token::Int | Token::Float)
    }
}

/// Builds the calls of pending operators that bind at least as tightly as the next one. Chains of one logical operator
/// are built at their end, as balanced trees.
fn reduce(operands: &mut Vec<Expr>, waiting: &mut Vec<PendingOperator>, next: &str, binds: u8) {
    while let Some(last) = waiting.last() {
        if last.precedence < binds || (last.function == next && last.precedence < RELATION) {
            return;
        }
        let function = last.function;
        let first = if last.precedence < RELATION {
            waiting.iter().rposition(|op| op.function != function).map_or(0, |index| index + 1)
        } else {
            waiting.len() - 1
        };
        let ids: Vec<usize> = waiting.drain(first..).map(|op| op.id).collect();
        let terms = operands.split_off(operands.len().saturating_sub(ids.len() + 1));
        operands.push(logic::balanced_tree(function, terms, &ids));
    }
}

pub(super) fn call_with(id: usize, function: &str, arguments: Vec<Expr>) -> Expr {
    Expr { id, kind: ExprKind::Call { function: Arc::from(function), target: None, arguments } }
}

/// Returns the function of a binary operator, and its precedence.
fn binary(token: Token) -> Option<(&'static str, u8)> {
    Some(match token {
        Token::Mark("||") => (operator::OR, 0),
        Token::Mark("&&") => (operator::AND, 1),
        Token::In => (operator::IN, RELATION),
        Token::Mark("<") => (operator::LESS, RELATION),
        Token::Mark("<=") => (operator::LESS_EQUALS, RELATION),
        Token::Mark(">") => (operator::GREATER, RELATION),
        Token::Mark(">=") => (operator::GREATER_EQUALS, RELATION),
        Token::Mark("==") => (operator::EQUALS, RELATION),
        Token::Mark("!=") => (operator::NOT_EQUALS, RELATION),
        Token::Mark("+") => (operator::ADD, ADDITION),
        Token::Mark("-") => (operator::SUBTRACT, ADDITION),
        Token::Mark("*") => (operator::MULTIPLY, 4),
        Token::Mark("/") => (operator::DIVIDE, 4),
        Token::Mark("%") => (operator::MODULO, 4),
        _ => return None,
    })
}
