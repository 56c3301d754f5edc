//! Label selectors: equality, sets, existence and integer comparison.

use crate::names;

/// How a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `k=v`, `k==v`
    Equals,
    /// `k!=v`; an absent key matches
    NotEquals,
    /// `k in (a,b)`
    In,
    /// `k notin (a,b)`; an absent key matches
    NotIn,
    /// `k`
    Exists,
    /// `!k`
    DoesNotExist,
    /// `k>n`
    GreaterThan,
    /// `k<n`
    LessThan,
}

/// One requirement on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// How to compare.
    pub operator: Operator,
    /// With what.
    pub values: Vec<String>,
}

/// A conjunction of requirements; empty selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// A selector that cannot be read, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidLabelSelector(pub(super) String);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Symbol(&'static str),
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Symbol(symbol) => symbol,
            Self::End => "",
        }
    }
}

const SYMBOLS: [&str; 9] = ["!=", "==", "=", "!", "(", ")", ",", ">", "<"];

fn lex(text: &str) -> Vec<Token> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if rest.is_empty() {
            tokens.push(Token::End);
            return tokens;
        }
        if let Some(symbol) = SYMBOLS.iter().copied().find(|s| rest.starts_with(s)) {
            tokens.push(Token::Symbol(symbol));
            rest = &rest[symbol.len()..];
            continue;
        }
        let end = rest.find(|c: char| " \t\r\n=!(),<>".contains(c)).unwrap_or(rest.len());
        tokens.push(Token::Word(rest[..end].to_owned()));
        rest = &rest[end..];
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

fn expected<T>(found: &Token, want: &str) -> Result<T, InvalidLabelSelector> {
    Err(InvalidLabelSelector(format!("found '{}', expected: {want}", found.text())))
}

impl Parser {
    fn peek(&self) -> &Token {
        // The lexer always closes with End and nothing reads past it.
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(s) if *s == symbol);
        self.at += usize::from(found);
        found
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>, InvalidLabelSelector> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::End => return Ok(requirements),
                Token::Word(_) | Token::Symbol("!") => {
                    let requirement = self.requirement().map_err(|InvalidLabelSelector(m)| {
                        InvalidLabelSelector(format!("unable to parse requirement: {m}"))
                    });
                    requirements.push(requirement?);
                }
                other => return expected(other, "!, identifier, or 'end of string'"),
            }
            match self.take() {
                Token::End => return Ok(requirements),
                Token::Symbol(",") => match self.peek() {
                    Token::Word(_) | Token::Symbol("!") => {}
                    other => return expected(other, "identifier after ','"),
                },
                other => return expected(&other, "',' or 'end of string'"),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, InvalidLabelSelector> {
        let negated = self.take_symbol("!");
        let key = match self.take() {
            Token::Word(word) => word,
            other => return expected(&other, "identifier"),
        };
        valid_key(&key)?;
        if negated {
            return Ok(Requirement { key, operator: Operator::DoesNotExist, values: Vec::new() });
        }
        let (operator, values) = match self.peek().clone() {
            Token::End | Token::Symbol(",") => (Operator::Exists, Vec::new()),
            token => {
                self.at += 1;
                self.comparison(&token)?
            }
        };
        valid_values(&key, operator, &values)?;
        Ok(Requirement { key, operator, values })
    }

    fn comparison(&mut self, token: &Token) -> Result<(Operator, Vec<String>), InvalidLabelSelector> {
        match token.text() {
            "=" | "==" => Ok((Operator::Equals, vec![self.exact_value()?])),
            "!=" => Ok((Operator::NotEquals, vec![self.exact_value()?])),
            ">" => Ok((Operator::GreaterThan, vec![self.exact_value()?])),
            "<" => Ok((Operator::LessThan, vec![self.exact_value()?])),
            "in" => Ok((Operator::In, self.set()?)),
            "notin" => Ok((Operator::NotIn, self.set()?)),
            _ => expected(token, "in, notin, =, ==, !=, gt, lt"),
        }
    }

    fn exact_value(&mut self) -> Result<String, InvalidLabelSelector> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(String::new()),
            Token::Word(_) => Ok(self.take().text().to_owned()),
            other => expected(other, "identifier"),
        }
    }

    fn set(&mut self) -> Result<Vec<String>, InvalidLabelSelector> {
        if !self.take_symbol("(") {
            // The one complaint that upstream writes without a comma.
            let found = self.peek().text();
            return Err(InvalidLabelSelector(format!("found '{found}' expected: '('")));
        }
        let mut values = Vec::new();
        loop {
            match self.take() {
                Token::Word(word) => values.push(word),
                Token::Symbol(",") => {
                    values.push(String::new());
                    continue;
                }
                Token::Symbol(")") => {
                    values.push(String::new());
                    return Ok(values);
                }
                other => return expected(&other, "',', ')' or identifier"),
            }
            match self.take() {
                Token::Symbol(",") => {}
                Token::Symbol(")") => return Ok(values),
                other => return expected(&other, "',' or ')'"),
            }
        }
    }
}

fn valid_key(key: &str) -> Result<(), InvalidLabelSelector> {
    let messages = names::qualified_name(key);
    if messages.is_empty() {
        return Ok(());
    }
    Err(InvalidLabelSelector(format!("<nil>: Invalid value: {key:?}: {}", messages.join("; "))))
}

fn valid_values(key: &str, operator: Operator, values: &[String]) -> Result<(), InvalidLabelSelector> {
    for (i, value) in values.iter().enumerate() {
        let integer = matches!(operator, Operator::GreaterThan | Operator::LessThan);
        if integer && value.parse::<i64>().is_err() {
            return Err(InvalidLabelSelector(format!(
                "values[{i}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
            )));
        }
        let messages = names::label_value(value);
        if !messages.is_empty() {
            return Err(InvalidLabelSelector(format!(
                "values[{i}][{key}]: Invalid value: {value:?}: {}",
                messages.join("; ")
            )));
        }
    }
    Ok(())
}

impl LabelSelector {
    /// Parses the query form.
    ///
    /// # Errors
    /// [`InvalidLabelSelector`], answered with 400.
    pub fn parse(text: &str) -> Result<Self, InvalidLabelSelector> {
        let mut parser = Parser { tokens: lex(text), at: 0 };
        Ok(Self { requirements: parser.requirements()? })
    }

    /// A selector of ready requirements (label selectors inside objects).
    #[must_use]
    pub fn new(requirements: Vec<Requirement>) -> Self {
        Self { requirements }
    }

    /// The requirements, in order.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether everything matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether labels that `get` tells satisfy every requirement.
    pub fn matches<'v>(&self, get: impl Fn(&str) -> Option<&'v str>) -> bool {
        self.requirements.iter().all(|r| r.matches(get(&r.key)))
    }
}

impl Requirement {
    /// A requirement that can hold.
    ///
    /// # Errors
    /// [`InvalidLabelSelector`].
    pub fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, InvalidLabelSelector> {
        valid_key(key)?;
        let refused = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                Some("values set must be empty for exists and does not exist")
            }
            _ => None,
        };
        if let Some(text) = refused {
            return Err(InvalidLabelSelector(format!("values: Invalid value: {values:?}: {text}")));
        }
        valid_values(key, operator, &values)?;
        Ok(Self { key: key.to_owned(), operator, values })
    }

    fn matches(&self, value: Option<&str>) -> bool {
        let listed = |v: &str| self.values.iter().any(|x| x == v);
        let compare = |test: fn(i64, i64) -> bool| {
            let bound = self.values.first().and_then(|v| v.parse().ok());
            value.and_then(|v| v.parse().ok()).zip(bound).is_some_and(|(v, b)| test(v, b))
        };
        match self.operator {
            Operator::Equals | Operator::In => value.is_some_and(listed),
            Operator::NotEquals | Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => compare(|v, b| v > b),
            Operator::LessThan => compare(|v, b| v < b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, value: Option<&'static str>) -> bool {
        LabelSelector::parse(selector).unwrap().matches(|k| if k == "k" { value } else { None })
    }

    #[test]
    fn requirements_match_as_upstream_matches_them() {
        let rows = [
            ("", None, true),
            ("k", Some("v"), true),
            ("k", None, false),
            ("!k", None, true),
            ("k=v", Some("v"), true),
            ("k == v", Some("w"), false),
            ("k!=v", None, true),
            ("k!=v", Some("v"), false),
            ("k in (a, v)", Some("v"), true),
            ("k in (a,b)", None, false),
            ("k notin (a,b)", None, true),
            ("k>5", Some("6"), true),
            ("k<5", Some("x"), false),
            ("k=", Some(""), true),
            ("k,k!=x", Some("y"), true),
        ];
        for (selector, value, want) in rows {
            assert_eq!(matches(selector, value), want, "{selector} {value:?}");
        }
    }

    #[test]
    fn errors_use_upstreams_words() {
        let rows = [
            ("a===b", "unable to parse requirement: found '=', expected: identifier"),
            ("a,", "found '', expected: identifier after ','"),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ];
        for (selector, want) in rows {
            assert_eq!(LabelSelector::parse(selector).unwrap_err().to_string(), want, "{selector}");
        }
        assert!(LabelSelector::parse("-a=b").is_err());
        assert!(LabelSelector::parse("a=b c").is_err());
    }
}
