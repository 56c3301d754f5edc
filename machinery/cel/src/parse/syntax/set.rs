//! Sets of tokens, printed as upstream prints what it expects.

use std::fmt;
use std::ops::{BitOr, Sub};

use crate::parse::lexer::Token;

/// A set of tokens; one more member says that the end of a rule may come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Set(u64);

/// Tokens with their names, in the order that upstream's grammar gives them.
const NAMES: [(Token, &str); 36] = [
    (Token::End, "<EOF>"),
    (Token::Mark("=="), "'=='"),
    (Token::Mark("!="), "'!='"),
    (Token::In, "'in'"),
    (Token::Mark("<"), "'<'"),
    (Token::Mark("<="), "'<='"),
    (Token::Mark(">="), "'>='"),
    (Token::Mark(">"), "'>'"),
    (Token::Mark("&&"), "'&&'"),
    (Token::Mark("||"), "'||'"),
    (Token::Mark("["), "'['"),
    (Token::Mark("]"), "']'"),
    (Token::Mark("{"), "'{'"),
    (Token::Mark("}"), "'}'"),
    (Token::Mark("("), "'('"),
    (Token::Mark(")"), "')'"),
    (Token::Mark("."), "'.'"),
    (Token::Mark(","), "','"),
    (Token::Mark("-"), "'-'"),
    (Token::Mark("!"), "'!'"),
    (Token::Mark("?"), "'?'"),
    (Token::Mark(":"), "':'"),
    (Token::Mark("+"), "'+'"),
    (Token::Mark("*"), "'*'"),
    (Token::Mark("/"), "'/'"),
    (Token::Mark("%"), "'%'"),
    (Token::True, "'true'"),
    (Token::False, "'false'"),
    (Token::Null, "'null'"),
    (Token::Float, "NUM_FLOAT"),
    (Token::Int, "NUM_INT"),
    (Token::Uint, "NUM_UINT"),
    (Token::Text, "STRING"),
    (Token::Bytes, "BYTES"),
    (Token::Ident, "IDENTIFIER"),
    (Token::Escaped, "ESC_IDENTIFIER"),
];

const fn bit(at: usize) -> Set {
    Set(1 << at)
}

const fn both(a: Set, b: Set) -> Set {
    Set(a.0 | b.0)
}

/// The end of the text.
pub(super) const END: Set = bit(0);
pub(super) const RELATIONS: Set = Set(0b1111_1110);
pub(super) const AND: Set = bit(8);
pub(super) const OR: Set = bit(9);
pub(super) const OPEN_LIST: Set = bit(10);
pub(super) const CLOSE_LIST: Set = bit(11);
pub(super) const OPEN_MAP: Set = bit(12);
pub(super) const CLOSE_MAP: Set = bit(13);
pub(super) const OPEN: Set = bit(14);
pub(super) const CLOSE: Set = bit(15);
pub(super) const DOT: Set = bit(16);
pub(super) const COMMA: Set = bit(17);
pub(super) const MINUS: Set = bit(18);
pub(super) const NOT: Set = bit(19);
pub(super) const QUESTION: Set = bit(20);
pub(super) const COLON: Set = bit(21);
pub(super) const SUMS: Set = both(MINUS, bit(22));
pub(super) const PRODUCTS: Set = Set(0b111 << 23);
/// Numbers that a minus may belong to.
pub(super) const SIGNED: Set = Set(0b11 << 29);
pub(super) const IDENT: Set = bit(34);
/// Names, those between backticks, too.
pub(super) const NAME: Set = Set(0b11 << 34);
pub(super) const LITERAL: Set = both(MINUS, Set(0b1111_1111 << 26));
pub(super) const PRIMARY: Set = both(both(both(OPEN_LIST, OPEN_MAP), both(OPEN, DOT)), both(IDENT, LITERAL));
/// Tokens that start an expression.
pub(super) const EXPR: Set = both(PRIMARY, NOT);
/// The end of the rule.
pub(super) const BEHIND: Set = bit(63);
/// Tokens that may follow a term.
pub(super) const TERM_END: Set = both(both(PRODUCTS, SUMS), BEHIND);

impl Set {
    pub fn has(self, token: Token) -> bool {
        let at = NAMES.iter().position(|(held, _)| *held == token);
        at.is_some_and(|at| self.0 & (1 << at) != 0)
    }

    pub fn has_behind(self) -> bool {
        self.0 & BEHIND.0 != 0
    }
}

impl BitOr for Set {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Sub for Set {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = NAMES.iter().enumerate().filter(|(at, _)| self.0 & (1 << at) != 0);
        let names: Vec<&str> = held.map(|(_, (_, name))| *name).collect();
        match names.as_slice() {
            [one] => f.write_str(one),
            several => write!(f, "{{{}}}", several.join(", ")),
        }
    }
}
