//! From text to tree: cel-go's grammar, limits and places.
//!
//! Recursive descent with bounds: the depth of each recursive rule as cel-go's parser counts it, and the depth of the
//! tree. Nothing about types is known here.

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
use lexer::{Lexed, Token, lex};

/// Characters of one expression.
///
/// Limit (Expressions): the expression is rejected.
pub const MAX_EXPRESSION_LENGTH: usize = 100_000;

/// A tree with the places of its nodes.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The tree.
    pub expr: Expr,
    /// Byte offsets by id.
    pub places: Vec<usize>,
}

/// Parses an expression, expanding macros.
///
/// # Errors
/// Everything that is wrong with the syntax, and all misuse of literals, names and macros before that.
pub fn parse(text: &str, macros: &[&Macro]) -> Result<Parsed, Vec<Issue>> {
    if text.len() > MAX_EXPRESSION_LENGTH {
        let size = text.chars().count();
        if size > MAX_EXPRESSION_LENGTH {
            return Err(vec![Issue::whole(format!(
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
        Parser { text, tokens, at: 0, places: vec![0], issues: Vec::new(), macros, depth: Depth::default() };
    match parser.whole() {
        Ok(expr) if parser.issues.is_empty() => Ok(Parsed { expr, places: parser.places }),
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
    tokens: Vec<Lexed>,
    at: usize,
    places: Vec<usize>,
    issues: Vec<Issue>,
    macros: &'t [&'t Macro],
    depth: Depth,
}

impl<'t> Parser<'t> {
    fn whole(&mut self) -> Parse<Expr> {
        let expr = self.expr()?;
        if self.token() != Token::End {
            return Err(self.unexpected("<EOF>"));
        }
        if depth::too_deep(&expr) {
            return Err(Issue::whole("max recursion depth exceeded"));
        }
        Ok(expr)
    }

    fn token(&self) -> Token {
        self.tokens.get(self.at).map_or(Token::End, |lexed| lexed.token)
    }

    fn peek(&self, ahead: usize) -> Token {
        self.tokens.get(self.at + ahead).map_or(Token::End, |lexed| lexed.token)
    }

    /// Byte offset of the current token.
    fn place(&self) -> usize {
        self.tokens.get(self.at).map_or(self.text.len(), |lexed| lexed.start)
    }

    fn token_text(&self) -> &'t str {
        self.tokens.get(self.at).map_or("<EOF>", |lexed| &self.text[lexed.start..lexed.end])
    }

    fn advance(&mut self) {
        self.at += 1;
    }

    /// Takes the token if it is this one.
    fn take(&mut self, token: Token) -> bool {
        let taken = self.token() == token;
        if taken {
            self.advance();
        }
        taken
    }

    fn expect(&mut self, token: Token) -> Parse<()> {
        if self.take(token) { Ok(()) } else { Err(self.unexpected(token.spelled())) }
    }

    fn unexpected(&self, expecting: &str) -> Issue {
        let found = self.token_text();
        Issue::at(self.place(), format!("Syntax error: mismatched input '{found}' expecting {expecting}"))
    }

    fn new_id(&mut self, place: usize) -> Id {
        self.places.push(place);
        self.places.len() - 1
    }

    fn node(&mut self, place: usize, kind: ExprKind) -> Expr {
        Expr { id: self.new_id(place), kind }
    }

    /// Reports misuse that does not end parsing.
    fn misuse(&mut self, place: usize, message: impl Into<String>) -> Expr {
        self.issues.push(Issue::at(place, message));
        self.node(place, ExprKind::Broken)
    }
}

#[cfg(test)]
mod tests;
