//! Parser with cel-go's grammar, limits and offsets.
//!
//! Recursive descent with limits for the depth of each recursive rule, as counted by cel-go's parser, and for the depth of the
//! tree. Does not use types.

mod depth;
mod grammar;
mod lexer;
mod literal;
mod logic;
mod member;
mod primary;
mod syntax;

use crate::ast::{Expr, ExprKind, Id};
use crate::diagnostics::Issue;
use crate::macros::Macro;
use depth::Depth;
use lexer::{LexedToken, Token, lex};

/// Characters of one expression.
///
/// Limit (Expressions): the expression is rejected.
pub const MAX_EXPRESSION_LENGTH: usize = 100_000;

/// Tree with the offsets of its nodes.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The tree.
    pub expr: Expr,
    /// Byte offsets by id.
    pub offsets: Vec<usize>,
}

/// Parses an expression, expanding macros.
///
/// # Errors
/// All syntax errors, and all invalid uses of literals, names and macros before them.
pub fn parse(text: &str, macros: &[&Macro]) -> Result<Parsed, Vec<Issue>> {
    if text.len() > MAX_EXPRESSION_LENGTH {
        let size = text.chars().count();
        if size > MAX_EXPRESSION_LENGTH {
            return Err(vec![Issue::without_position(format!(
                "expression code point size exceeds limit: size: {size}, limit {MAX_EXPRESSION_LENGTH}"
            ))]);
        }
    }
    let (tokens, mut unread) = lex(text);
    if !unread.is_empty() {
        unread.extend(syntax::diagnostics(text, &tokens));
        return Err(unread);
    }
    let mut parser =
        Parser { text, tokens, at: 0, offsets: vec![0], issues: Vec::new(), macros, depth: Depth::default() };
    match parser.complete_expr() {
        Ok(expr) if parser.issues.is_empty() => Ok(Parsed { expr, offsets: parser.offsets }),
        Ok(_) => Err(parser.issues),
        Err(limit @ Issue { offset: None, .. }) => {
            parser.issues.push(limit);
            Err(parser.issues)
        }
        Err(_) => {
            parser.issues.extend(syntax::diagnostics(text, &parser.tokens));
            Err(parser.issues)
        }
    }
}

/// A syntax error ends parsing.
type Parse<T> = Result<T, Issue>;

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<LexedToken>,
    at: usize,
    offsets: Vec<usize>,
    issues: Vec<Issue>,
    macros: &'t [&'t Macro],
    depth: Depth,
}

impl<'t> Parser<'t> {
    fn complete_expr(&mut self) -> Parse<Expr> {
        let expr = self.expr()?;
        if self.token() != Token::End {
            return Err(self.unexpected("<EOF>"));
        }
        if depth::too_deep(&expr) {
            return Err(Issue::without_position("max recursion depth exceeded"));
        }
        Ok(expr)
    }

    fn token(&self) -> Token {
        self.tokens.get(self.at).map_or(Token::End, |lexed| lexed.token)
    }

    fn peek(&self, ahead: usize) -> Token {
        self.tokens.get(self.at + ahead).map_or(Token::End, |lexed| lexed.token)
    }

    /// Returns the byte offset of the current token.
    fn offset(&self) -> usize {
        self.tokens.get(self.at).map_or(self.text.len(), |lexed| lexed.start)
    }

    fn token_text(&self) -> &'t str {
        self.tokens.get(self.at).map_or("<EOF>", |lexed| &self.text[lexed.start..lexed.end])
    }

    fn advance(&mut self) {
        self.at += 1;
    }

    /// Consumes the token if it is this one.
    fn take(&mut self, token: Token) -> bool {
        let is_match = self.token() == token;
        if is_match {
            self.advance();
        }
        is_match
    }

    fn expect(&mut self, token: Token) -> Parse<()> {
        if self.take(token) { Ok(()) } else { Err(self.unexpected(token.display_name())) }
    }

    fn unexpected(&self, expecting: &str) -> Issue {
        let found = self.token_text();
        Issue::at(self.offset(), format!("Syntax error: mismatched input '{found}' expecting {expecting}"))
    }

    fn new_id(&mut self, offset: usize) -> Id {
        self.offsets.push(offset);
        self.offsets.len() - 1
    }

    fn node(&mut self, offset: usize, kind: ExprKind) -> Expr {
        Expr { id: self.new_id(offset), kind }
    }

    /// Reports an invalid use that does not end parsing.
    fn report_invalid_use(&mut self, offset: usize, message: impl Into<String>) -> Expr {
        self.issues.push(Issue::at(offset, message));
        self.node(offset, ExprKind::Broken)
    }
}

#[cfg(test)]
mod tests;
