//! The rules of the grammar, each with its choices as the generated parser makes them.

use super::set::{
    AND, BEHIND, CLOSE, CLOSE_LIST, CLOSE_MAP, COLON, COMMA, DOT, EXPR, IDENT, LITERAL, MINUS, NAME, NOT,
    OPEN, OPEN_LIST, OPEN_MAP, OR, PRIMARY, PRODUCTS, QUESTION, RELATIONS, SIGNED, SUMS, Set, TERM_END,
};
use super::{Recogniser, Step};
use crate::diagnostics::Issue;
use crate::parse::lexer::Token;

impl Recogniser<'_> {
    pub(super) fn expr(&mut self, follow: Set) -> Step {
        self.rule(follow, |it| {
            it.either(QUESTION | BEHIND)?;
            if it.is(QUESTION) {
                it.take(QUESTION, EXPR)?;
                it.either(COLON)?;
                it.take(COLON, EXPR)?;
                it.expr(BEHIND)?;
            }
            Ok(())
        })
    }

    fn either(&mut self, follow: Set) -> Step {
        self.rule(follow, |it| {
            it.both(OR | BEHIND)?;
            while it.is(OR) {
                it.take(OR, EXPR)?;
                it.both(OR | BEHIND)?;
            }
            Ok(())
        })
    }

    fn both(&mut self, follow: Set) -> Step {
        self.rule(follow, |it| {
            it.relation(false, AND | BEHIND)?;
            while it.is(AND) {
                it.take(AND, EXPR)?;
                it.relation(false, AND | BEHIND)?;
            }
            Ok(())
        })
    }

    /// A relation; the right side of another has no operator of its own.
    fn relation(&mut self, right: bool, follow: Set) -> Step {
        self.rule(follow, |it| {
            it.calc(0, RELATIONS | BEHIND)?;
            while it.is(RELATIONS) && !right {
                it.take(RELATIONS, EXPR)?;
                it.relation(true, RELATIONS | BEHIND)?;
            }
            Ok(())
        })
    }

    /// Sums and products; a right side takes what binds at least so tightly.
    fn calc(&mut self, least: u8, follow: Set) -> Step {
        self.rule(follow, |it| {
            it.unary(TERM_END)?;
            loop {
                if it.is(PRODUCTS) && least <= 2 {
                    it.take(PRODUCTS, EXPR)?;
                    it.calc(3, TERM_END)?;
                } else if it.is(SUMS) && least <= 1 {
                    it.take(SUMS, EXPR)?;
                    it.calc(2, TERM_END)?;
                } else {
                    return Ok(());
                }
            }
        })
    }

    fn unary(&mut self, follow: Set) -> Step {
        self.rule(follow, |it| {
            it.choose(EXPR)?;
            if it.is(NOT) {
                while it.is(NOT) {
                    it.take(NOT, EXPR)?;
                    it.choose_again(EXPR)?;
                }
            } else if it.is(MINUS) && !it.next_is(SIGNED) {
                it.minuses()?;
            } else if !it.is(PRIMARY) {
                return it.no_viable(0);
            }
            it.member(BEHIND)
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

    fn member(&mut self, follow: Set) -> Step {
        self.rule(follow, |it| {
            it.primary(DOT | OPEN_LIST | BEHIND)?;
            loop {
                if it.is(OPEN_LIST) {
                    it.index()?;
                } else if !it.is(DOT) {
                    return Ok(());
                } else if it.next_is(IDENT) && it.ahead(2) == Token::Mark("(") {
                    it.take(DOT, IDENT)?;
                    it.take(IDENT, OPEN)?;
                    it.arguments(DOT | OPEN_LIST | BEHIND)?;
                } else if it.next_is(NAME | QUESTION) {
                    it.take(DOT, NAME | QUESTION)?;
                    it.optional_mark(NAME)?;
                    if !it.is(NAME) && !it.next_is(NAME) {
                        let place = it.place_of(it.at);
                        it.deferred.push(Issue::at(place, "unsupported ident kind"));
                    }
                    it.field_name(DOT | OPEN_LIST | BEHIND)?;
                } else {
                    return it.no_viable(1);
                }
            }
        })
    }

    fn index(&mut self) -> Step {
        self.take(OPEN_LIST, EXPR | QUESTION)?;
        self.optional_mark(EXPR)?;
        self.expr(CLOSE_LIST)?;
        self.take(CLOSE_LIST, DOT | OPEN_LIST | BEHIND)
    }

    /// A question mark that may stand before these.
    fn optional_mark(&mut self, before: Set) -> Step {
        self.choose(QUESTION | before)?;
        if self.is(QUESTION) { self.take(QUESTION, before) } else { Ok(()) }
    }

    fn field_name(&mut self, follow: Set) -> Step {
        self.rule(follow, |it| {
            it.choose(NAME)?;
            if it.is(NAME) { it.take(NAME, BEHIND) } else { it.no_viable(0) }
        })
    }

    /// Arguments with their parentheses.
    fn arguments(&mut self, after: Set) -> Step {
        self.take(OPEN, EXPR | CLOSE)?;
        self.choose(EXPR | CLOSE)?;
        if self.is(EXPR) {
            self.rule(CLOSE, |it| {
                it.expr(COMMA | BEHIND)?;
                while it.is(COMMA) {
                    it.take(COMMA, EXPR)?;
                    it.expr(COMMA | BEHIND)?;
                }
                Ok(())
            })?;
        }
        self.take(CLOSE, after)
    }

    fn primary(&mut self, follow: Set) -> Step {
        self.rule(follow, |it| {
            it.choose(PRIMARY)?;
            match it.ahead(0) {
                Token::Mark("(") => {
                    it.take(OPEN, EXPR)?;
                    it.expr(CLOSE)?;
                    it.take(CLOSE, BEHIND)
                }
                Token::Mark("[") => it.list(),
                Token::Mark("{") => it.map(),
                Token::Mark(".") | Token::Ident => it.name(),
                _ if it.is(LITERAL) => it.literal(),
                _ => it.no_viable(0),
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
        self.take(IDENT, if called { OPEN } else { BEHIND })?;
        if called { self.arguments(BEHIND) } else { Ok(()) }
    }

    /// `has(name`: its macro wants a selection, and says so whatever else is wrong with the text.
    fn presence(&mut self) {
        let goes_on = match self.ahead(3) {
            Token::Mark(".") => matches!(self.ahead(4), Token::Ident | Token::Escaped | Token::Mark("?")),
            // A call that is read to its end is reported by the macro's expansion.
            Token::Mark(mark) => !["]", "}", ":"].contains(&mark),
            Token::In => true,
            _ => false,
        };
        if self.shown() == "'has'" && self.ahead(2) == Token::Ident && !goes_on {
            let place = self.place_of(self.at + 2);
            self.deferred.push(Issue::at(place, "invalid argument to has() macro"));
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
        self.rule(COLON, |it| {
            it.optional_mark(NAME)?;
            it.field_name(BEHIND)
        })?;
        self.take(COLON, EXPR)?;
        self.expr(COMMA | BEHIND)
    }

    fn list(&mut self) -> Step {
        self.enclosed(OPEN_LIST, QUESTION | EXPR, CLOSE_LIST, |it| it.item(COMMA | BEHIND))
    }

    fn map(&mut self) -> Step {
        self.enclosed(OPEN_MAP, QUESTION | EXPR, CLOSE_MAP, Self::entry)
    }

    fn entry(&mut self) -> Step {
        self.item(COLON)?;
        self.take(COLON, EXPR)?;
        self.expr(COMMA | BEHIND)
    }

    fn item(&mut self, follow: Set) -> Step {
        self.rule(follow, |it| {
            it.optional_mark(EXPR)?;
            it.expr(BEHIND)
        })
    }

    /// A list, a map or an object: what begins with some of these, between two marks.
    fn enclosed(&mut self, open: Set, inside: Set, close: Set, each: impl Fn(&mut Self) -> Step) -> Step {
        self.take(open, inside | COMMA | close)?;
        self.choose(inside | COMMA | close)?;
        if self.is(inside) {
            self.rule(COMMA | close, |it| {
                each(it)?;
                while it.is(COMMA) && it.next_is(inside) {
                    it.take(COMMA, inside)?;
                    each(it)?;
                }
                Ok(())
            })?;
        }
        self.close(close)
    }

    /// The end of a list, a map or an object, and a comma that may stand before it.
    fn close(&mut self, mark: Set) -> Step {
        self.choose(COMMA | mark)?;
        if self.is(COMMA) {
            self.take(COMMA, mark)?;
        }
        self.take(mark, BEHIND)
    }

    fn literal(&mut self) -> Step {
        self.rule(BEHIND, |it| {
            if it.is(MINUS) {
                if !it.next_is(SIGNED) {
                    return it.no_viable(1);
                }
                it.take(MINUS, SIGNED)?;
            }
            it.take(LITERAL, BEHIND)
        })
    }
}
