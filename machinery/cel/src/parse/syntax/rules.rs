//! Rules of the grammar, with the same choices as the generated parser.

use super::set::{
    AND, CLOSE, CLOSE_LIST, CLOSE_MAP, COLON, COMMA, DOT, EXPR, IDENT, LITERAL, MINUS, NAME, NOT, OPEN,
    OPEN_LIST, OPEN_MAP, OR, PRIMARY, PRODUCT_OPERATORS, QUESTION, RELATIONS, RULE_END, SIGNED,
    SUM_OPERATORS, TERM_END, TokenSet,
};
use super::{Recognizer, Step};
use crate::diagnostics::Issue;
use crate::parse::lexer::Token;

impl Recognizer<'_> {
    pub(super) fn expr(&mut self, follow: TokenSet) -> Step {
        self.rule(follow, |recognizer| {
            recognizer.either(QUESTION | RULE_END)?;
            if recognizer.is(QUESTION) {
                recognizer.take(QUESTION, EXPR)?;
                recognizer.either(COLON)?;
                recognizer.take(COLON, EXPR)?;
                recognizer.expr(RULE_END)?;
            }
            Ok(())
        })
    }

    fn either(&mut self, follow: TokenSet) -> Step {
        self.rule(follow, |recognizer| {
            recognizer.both(OR | RULE_END)?;
            while recognizer.is(OR) {
                recognizer.take(OR, EXPR)?;
                recognizer.both(OR | RULE_END)?;
            }
            Ok(())
        })
    }

    fn both(&mut self, follow: TokenSet) -> Step {
        self.rule(follow, |recognizer| {
            recognizer.relation(false, AND | RULE_END)?;
            while recognizer.is(AND) {
                recognizer.take(AND, EXPR)?;
                recognizer.relation(false, AND | RULE_END)?;
            }
            Ok(())
        })
    }

    /// Parses a relation; the right side of another relation has no operator.
    fn relation(&mut self, right: bool, follow: TokenSet) -> Step {
        self.rule(follow, |recognizer| {
            recognizer.calc(0, RELATIONS | RULE_END)?;
            while recognizer.is(RELATIONS) && !right {
                recognizer.take(RELATIONS, EXPR)?;
                recognizer.relation(true, RELATIONS | RULE_END)?;
            }
            Ok(())
        })
    }

    /// Parses sums and products; a right side contains only operators that bind at least as tightly as `min_precedence`.
    fn calc(&mut self, min_precedence: u8, follow: TokenSet) -> Step {
        self.rule(follow, |recognizer| {
            recognizer.unary(TERM_END)?;
            loop {
                if recognizer.is(PRODUCT_OPERATORS) && min_precedence <= 2 {
                    recognizer.take(PRODUCT_OPERATORS, EXPR)?;
                    recognizer.calc(3, TERM_END)?;
                } else if recognizer.is(SUM_OPERATORS) && min_precedence <= 1 {
                    recognizer.take(SUM_OPERATORS, EXPR)?;
                    recognizer.calc(2, TERM_END)?;
                } else {
                    return Ok(());
                }
            }
        })
    }

    fn unary(&mut self, follow: TokenSet) -> Step {
        self.rule(follow, |recognizer| {
            recognizer.choose(EXPR)?;
            if recognizer.is(NOT) {
                while recognizer.is(NOT) {
                    recognizer.take(NOT, EXPR)?;
                    recognizer.choose_again(EXPR)?;
                }
            } else if recognizer.is(MINUS) && !recognizer.next_is(SIGNED) {
                recognizer.minuses()?;
            } else if !recognizer.is(PRIMARY) {
                return recognizer.no_viable(0);
            }
            recognizer.member(RULE_END)
        })
    }

    fn minuses(&mut self) -> Step {
        loop {
            if !self.next_is(PRIMARY) {
                return self.no_viable(1);
            }
            self.take(MINUS, PRIMARY)?;
            self.choose_again(PRIMARY)?;
            if !self.is(MINUS) {
                return if self.is(PRIMARY) { Ok(()) } else { self.no_viable(0) };
            }
        }
    }

    fn member(&mut self, follow: TokenSet) -> Step {
        self.rule(follow, |recognizer| {
            recognizer.primary(DOT | OPEN_LIST | RULE_END)?;
            loop {
                if recognizer.is(OPEN_LIST) {
                    recognizer.index()?;
                } else if !recognizer.is(DOT) {
                    return Ok(());
                } else if recognizer.next_is(IDENT) && recognizer.ahead(2) == Token::Mark("(") {
                    recognizer.take(DOT, IDENT)?;
                    recognizer.take(IDENT, OPEN)?;
                    recognizer.arguments(DOT | OPEN_LIST | RULE_END)?;
                } else if recognizer.next_is(NAME | QUESTION) {
                    recognizer.take(DOT, NAME | QUESTION)?;
                    recognizer.optional_mark(NAME)?;
                    if !recognizer.is(NAME) && !recognizer.next_is(NAME) {
                        let offset = recognizer.offset_of(recognizer.at);
                        recognizer.deferred.push(Issue::at(offset, "unsupported ident kind"));
                    }
                    recognizer.field_name(DOT | OPEN_LIST | RULE_END)?;
                } else {
                    return recognizer.no_viable(1);
                }
            }
        })
    }

    fn index(&mut self) -> Step {
        self.take(OPEN_LIST, EXPR | QUESTION)?;
        self.optional_mark(EXPR)?;
        self.expr(CLOSE_LIST)?;
        self.take(CLOSE_LIST, DOT | OPEN_LIST | RULE_END)
    }

    /// Parses an optional question mark before these tokens.
    fn optional_mark(&mut self, before: TokenSet) -> Step {
        self.choose(QUESTION | before)?;
        if self.is(QUESTION) { self.take(QUESTION, before) } else { Ok(()) }
    }

    fn field_name(&mut self, follow: TokenSet) -> Step {
        self.rule(follow, |recognizer| {
            recognizer.choose(NAME)?;
            if recognizer.is(NAME) { recognizer.take(NAME, RULE_END) } else { recognizer.no_viable(0) }
        })
    }

    /// Parses arguments with their parentheses.
    fn arguments(&mut self, after: TokenSet) -> Step {
        self.take(OPEN, EXPR | CLOSE)?;
        self.choose(EXPR | CLOSE)?;
        if self.is(EXPR) {
            self.rule(CLOSE, |recognizer| {
                recognizer.expr(COMMA | RULE_END)?;
                while recognizer.is(COMMA) {
                    recognizer.take(COMMA, EXPR)?;
                    recognizer.expr(COMMA | RULE_END)?;
                }
                Ok(())
            })?;
        }
        self.take(CLOSE, after)
    }

    fn primary(&mut self, follow: TokenSet) -> Step {
        self.rule(follow, |recognizer| {
            recognizer.choose(PRIMARY)?;
            match recognizer.ahead(0) {
                Token::Mark("(") => {
                    recognizer.take(OPEN, EXPR)?;
                    recognizer.expr(CLOSE)?;
                    recognizer.take(CLOSE, RULE_END)
                }
                Token::Mark("[") => recognizer.list(),
                Token::Mark("{") => recognizer.map(),
                Token::Mark(".") | Token::Ident => recognizer.name(),
                _ if recognizer.is(LITERAL) => recognizer.literal(),
                _ => recognizer.no_viable(0),
            }
        })
    }

    fn name(&mut self) -> Step {
        let first = usize::from(self.is(DOT));
        if self.ahead(first) != Token::Ident {
            return self.no_viable(first);
        }
        let mut end = first + 1;
        let called = self.ahead(end) == Token::Mark("(");
        while self.ahead(end) == Token::Mark(".") && self.ahead(end + 1) == Token::Ident {
            end += 2;
        }
        let object = self.ahead(end) == Token::Mark("{");
        if called && first == 0 {
            self.presence();
        }
        if first > 0 {
            self.take(DOT, IDENT)?;
        }
        if object {
            return self.object();
        }
        self.take(IDENT, if called { OPEN } else { RULE_END })?;
        if called { self.arguments(RULE_END) } else { Ok(()) }
    }

    /// Checks `has(name`: upstream's macro requires a selection, and reports this even if there are other errors.
    fn presence(&mut self) {
        let goes_on = match self.ahead(3) {
            Token::Mark(".") => matches!(self.ahead(4), Token::Ident | Token::Escaped | Token::Mark("?")),
            // A complete call is reported by the expansion of the macro.
            Token::Mark(mark) => !["]", "}", ":"].contains(&mark),
            Token::In => true,
            _ => false,
        };
        if self.current_text() == "'has'" && self.ahead(2) == Token::Ident && !goes_on {
            let offset = self.offset_of(self.at + 2);
            self.deferred.push(Issue::at(offset, "invalid argument to has() macro"));
        }
    }

    fn object(&mut self) -> Step {
        self.take(IDENT, DOT | OPEN_MAP)?;
        while self.is(DOT) {
            self.take(DOT, IDENT)?;
            self.take(IDENT, DOT | OPEN_MAP)?;
        }
        self.enclosed(OPEN_MAP, QUESTION | NAME, CLOSE_MAP, Self::field)
    }

    fn field(&mut self) -> Step {
        self.rule(COLON, |recognizer| {
            recognizer.optional_mark(NAME)?;
            recognizer.field_name(RULE_END)
        })?;
        self.take(COLON, EXPR)?;
        self.expr(COMMA | RULE_END)
    }

    fn list(&mut self) -> Step {
        self.enclosed(OPEN_LIST, QUESTION | EXPR, CLOSE_LIST, |it| it.item(COMMA | RULE_END))
    }

    fn map(&mut self) -> Step {
        self.enclosed(OPEN_MAP, QUESTION | EXPR, CLOSE_MAP, Self::entry)
    }

    fn entry(&mut self) -> Step {
        self.item(COLON)?;
        self.take(COLON, EXPR)?;
        self.expr(COMMA | RULE_END)
    }

    fn item(&mut self, follow: TokenSet) -> Step {
        self.rule(follow, |recognizer| {
            recognizer.optional_mark(EXPR)?;
            recognizer.expr(RULE_END)
        })
    }

    /// Parses a list, a map or an object: elements between two marks.
    fn enclosed(
        &mut self,
        open: TokenSet,
        element_start: TokenSet,
        close: TokenSet,
        each: impl Fn(&mut Self) -> Step,
    ) -> Step {
        self.take(open, element_start | COMMA | close)?;
        self.choose(element_start | COMMA | close)?;
        if self.is(element_start) {
            self.rule(COMMA | close, |it| {
                each(it)?;
                while it.is(COMMA) && it.next_is(element_start) {
                    it.take(COMMA, element_start)?;
                    each(it)?;
                }
                Ok(())
            })?;
        }
        self.close(close)
    }

    /// Parses the end of a list, a map or an object, with an optional comma before it.
    fn close(&mut self, mark: TokenSet) -> Step {
        self.choose(COMMA | mark)?;
        if self.is(COMMA) {
            self.take(COMMA, mark)?;
        }
        self.take(mark, RULE_END)
    }

    fn literal(&mut self) -> Step {
        self.rule(RULE_END, |recognizer| {
            if recognizer.is(MINUS) {
                if !recognizer.next_is(SIGNED) {
                    return recognizer.no_viable(1);
                }
                recognizer.take(MINUS, SIGNED)?;
            }
            recognizer.take(LITERAL, RULE_END)
        })
    }
}
