//! Operators, by precedence with stacks of its own instead of recursion: only parentheses, arguments and ternaries
//! recurse.

use std::sync::Arc;

use super::depth::enter;
use super::lexer::Token;
use super::{Parse, Parser, logic};
use crate::ast::{Expr, ExprKind, operator};

/// A binary operator that waits for its right operand.
struct Waiting {
    id: usize,
    function: &'static str,
    binds: u8,
}

const ADDITION: u8 = 3;
const RELATION: u8 = 2;

impl Parser<'_> {
    /// `a ? b : c` and everything that binds tighter.
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

    /// Operands with binary operators between them. Chains count as deep as cel-go's left-recursive rules do.
    fn operators(&mut self) -> Parse<Expr> {
        let (relations, calculations) = (self.depth.relation, self.depth.calc);
        enter(&mut self.depth.relation)?;
        enter(&mut self.depth.calc)?;
        let mut operands = vec![self.operand()?];
        let mut waiting: Vec<Waiting> = Vec::new();
        while let Some((function, binds)) = binary(self.token()) {
            reduce(&mut operands, &mut waiting, function, binds);
            if binds < ADDITION {
                self.depth.calc = calculations + 1;
            }
            if binds < RELATION {
                self.depth.relation = relations + 1;
            } else {
                enter(if binds == RELATION { &mut self.depth.relation } else { &mut self.depth.calc })?;
            }
            waiting.push(Waiting { id: self.operator_id(), function, binds });
            operands.push(self.operand()?);
        }
        (self.depth.relation, self.depth.calc) = (relations, calculations);
        reduce(&mut operands, &mut waiting, "", 0);
        Ok(operands.pop().unwrap_or(Expr { id: 0, kind: ExprKind::Broken }))
    }

    pub(super) fn operator_id(&mut self) -> usize {
        let place = self.place();
        self.advance();
        self.new_id(place)
    }

    /// A member behind any number of `!` or `-`.
    fn operand(&mut self) -> Parse<Expr> {
        let negation = self.negation();
        let expr = self.member()?;
        Ok(match negation {
            Some((id, function)) => call_with(id, function, vec![expr]),
            None => expr,
        })
    }

    /// Takes `!`s or `-`s; an even number of them says nothing. A single minus is part of the number behind it.
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
        let place = self.place();
        let mut count = 0;
        while self.token() == mark {
            self.advance();
            count += 1;
        }
        (count % 2 == 1).then(|| (self.new_id(place), function))
    }

    /// True if a minus is part of the number that follows.
    pub(super) fn at_negative_number(&self) -> bool {
        self.token() == Token::Mark("-") && matches!(self.peek(1), Token::Int | Token::Float)
    }
}

/// Builds the calls of waiting operators that bind at least as tightly as the next one. Chains of one logical operator
/// wait for their end, so that they become balanced trees.
fn reduce(operands: &mut Vec<Expr>, waiting: &mut Vec<Waiting>, next: &str, binds: u8) {
    while let Some(last) = waiting.last() {
        if last.binds < binds || (last.function == next && last.binds < RELATION) {
            return;
        }
        let function = last.function;
        let first = if last.binds < RELATION {
            waiting.iter().rposition(|op| op.function != function).map_or(0, |index| index + 1)
        } else {
            waiting.len() - 1
        };
        let ids: Vec<usize> = waiting.drain(first..).map(|op| op.id).collect();
        let terms = operands.split_off(operands.len().saturating_sub(ids.len() + 1));
        operands.push(logic::balanced(function, terms, &ids));
    }
}

pub(super) fn call_with(id: usize, function: &str, arguments: Vec<Expr>) -> Expr {
    Expr { id, kind: ExprKind::Call { function: Arc::from(function), target: None, arguments } }
}

/// The function of a binary operator, and how tightly it binds.
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
