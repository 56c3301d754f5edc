//! Sets of tokens, printed as upstream prints what it expects.

use std::fmt;
use std::ops::{BitOr, Sub};

use crate::parse::lexer::Token;

/// Set of tokens; one more member represents the end of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TokenSet(u64);

/// Tokens with their names, in the order of upstream's grammar.
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

const fn bit(index: usize) -> TokenSet {
    TokenSet(1 << index)
}

const fn both(a: TokenSet, b: TokenSet) -> TokenSet {
    TokenSet(a.0 | b.0)
}

/// End of the text.
pub(super) const END: TokenSet = bit(0);
pub(super) const RELATIONS: TokenSet = TokenSet(0b1111_1110);
pub(super) const AND: TokenSet = bit(8);
pub(super) const OR: TokenSet = bit(9);
pub(super) const OPEN_LIST: TokenSet = bit(10);
pub(super) const CLOSE_LIST: TokenSet = bit(11);
pub(super) const OPEN_MAP: TokenSet = bit(12);
pub(super) const CLOSE_MAP: TokenSet = bit(13);
pub(super) const OPEN: TokenSet = bit(14);
pub(super) const CLOSE: TokenSet = bit(15);
pub(super) const DOT: TokenSet = bit(16);
pub(super) const COMMA: TokenSet = bit(17);
pub(super) const MINUS: TokenSet = bit(18);
pub(super) const NOT: TokenSet = bit(19);
pub(super) const QUESTION: TokenSet = bit(20);
pub(super) const COLON: TokenSet = bit(21);
pub(super) const SUM_OPERATORS: TokenSet = both(MINUS, bit(22));
pub(super) const PRODUCT_OPERATORS: TokenSet = TokenSet(0b111 << 23);
/// Numbers that may have a minus.
pub(super) const SIGNED: TokenSet = TokenSet(0b11 << 29);
pub(super) const IDENT: TokenSet = bit(34);
/// Names, including those between backticks.
pub(super) const NAME: TokenSet = TokenSet(0b11 << 34);
pub(super) const LITERAL: TokenSet = both(MINUS, TokenSet(0b1111_1111 << 26));
pub(super) const PRIMARY: TokenSet =
    both(both(both(OPEN_LIST, OPEN_MAP), both(OPEN, DOT)), both(IDENT, LITERAL));
/// Tokens that start an expression.
pub(super) const EXPR: TokenSet = both(PRIMARY, NOT);
/// End of the rule.
pub(super) const RULE_END: TokenSet = bit(63);
/// Tokens that may follow a term.
pub(super) const TERM_END: TokenSet = both(both(PRODUCT_OPERATORS, SUM_OPERATORS), RULE_END);

impl TokenSet {
    pub fn has(self, token: Token) -> bool {
        let index = NAMES.iter().position(|(known_token, _)| *known_token == token);
        index.is_some_and(|index| self.0 & (1 << index) != 0)
    }

    pub fn has_rule_end(self) -> bool {
        self.0 & RULE_END.0 != 0
    }
}

impl BitOr for TokenSet {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Sub for TokenSet {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Display for TokenSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = NAMES.iter().enumerate().filter(|(index, _)| self.0 & (1 << index) != 0);
        let names: Vec<&str> = members.map(|(_, (_, name))| *name).collect();
        match names.as_slice() {
            [one] => f.write_str(one),
            several => write!(f, "{{{}}}", several.join(", ")),
        }
    }
}
