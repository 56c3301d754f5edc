//! Parser of label selectors, like `labels.Parse`.

use std::collections::BTreeSet;

use super::requirement::{InvalidLabelSelector, Operator, Requirement};

type Result<T> = std::result::Result<T, InvalidLabelSelector>;

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];
const SYMBOLS: [&str; 9] = ["!=", "==", "=", "!", "(", ")", ",", ">", "<"];
/// Characters that end a word. Upstream's lexer treats NUL as the end of a token, skips it, and continues.
const DELIMITERS: [char; 12] = [' ', '\t', '\r', '\n', '=', '!', '(', ')', ',', '<', '>', '\0'];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    Symbol(&'static str),
    End,
}

impl<'t> Token<'t> {
    fn text(self) -> &'t str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

fn lex(text: &str) -> Vec<Token<'_>> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start_matches(SPACE);
        if rest.is_empty() || rest.starts_with('\0') {
            tokens.push(Token::End);
            return tokens;
        }
        let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
        let token = symbol.map_or_else(
            || Token::Word(&rest[..rest.find(DELIMITERS).unwrap_or(rest.len())]),
            |symbol| Token::Symbol(symbol),
        );
        tokens.push(token);
        rest = &rest[token.text().len()..];
        rest = rest.strip_prefix('\0').unwrap_or(rest);
    }
}

/// Parses the requirements of a selector.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>> {
    let mut parser = Parser { tokens: lex(text), index: 0 };
    parser.requirements()
}

struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    index: usize,
}

fn expected<T>(found: Token<'_>, expected: &str) -> Result<T> {
    Err(InvalidLabelSelector(format!("found '{}', expected: {expected}", found.text())))
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Token<'t> {
        self.tokens.get(self.index).copied().unwrap_or(Token::End)
    }

    fn take(&mut self) -> Token<'t> {
        let token = self.peek();
        self.index += 1;
        token
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::End => return Ok(requirements),
                Token::Word(_) | Token::Symbol("!") => {
                    let requirement = self.requirement().map_err(|InvalidLabelSelector(message)| {
                        InvalidLabelSelector(format!("unable to parse requirement: {message}"))
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
                other => return expected(other, "',' or 'end of string'"),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement> {
        let absent = self.peek() == Token::Symbol("!");
        self.index += usize::from(absent);
        let key = match self.take() {
            Token::Word(key) => key,
            other => return expected(other, "identifier"),
        };
        Requirement::check_key(key, "<nil>")?;
        let bare = matches!(self.peek(), Token::End | Token::Symbol(","));
        if absent || bare {
            let operator = if absent { Operator::DoesNotExist } else { Operator::Exists };
            return Requirement::new(key, operator, Vec::new());
        }
        let operator = self.take();
        let (operator, values) = match operator.text() {
            "=" | "==" => (Operator::Equals, self.exact_value()?),
            "!=" => (Operator::NotEquals, self.exact_value()?),
            ">" => (Operator::GreaterThan, self.exact_value()?),
            "<" => (Operator::LessThan, self.exact_value()?),
            "in" => (Operator::In, self.set()?),
            "notin" => (Operator::NotIn, self.set()?),
            _ => return expected(operator, "in, notin, =, ==, !=, gt, lt"),
        };
        Requirement::new(key, operator, values)
    }

    fn exact_value(&mut self) -> Result<Vec<String>> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(vec![String::new()]);
        }
        match self.take() {
            Token::Word(value) => Ok(vec![value.to_owned()]),
            other => expected(other, "identifier"),
        }
    }

    /// Parses values in parentheses. The result is sorted, without duplicates.
    fn set(&mut self) -> Result<Vec<String>> {
        let open = self.take();
        if open != Token::Symbol("(") {
            // The only error message that upstream writes without a comma.
            return Err(InvalidLabelSelector(format!("found '{}' expected: '('", open.text())));
        }
        let values = match self.peek() {
            Token::Word(_) | Token::Symbol(",") => self.values()?,
            Token::Symbol(")") => BTreeSet::from([""]),
            other => return expected(other, "',', ')' or identifier"),
        };
        // Closing parenthesis.
        self.index += 1;
        Ok(values.into_iter().map(str::to_owned).collect())
    }

    /// Parses values up to the closing parenthesis. There is an empty value between two commas, before a leading comma and after
    /// a trailing one.
    fn values(&mut self) -> Result<BTreeSet<&'t str>> {
        let mut values = BTreeSet::new();
        loop {
            match self.take() {
                Token::Word(value) => {
                    values.insert(value);
                    match self.peek() {
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => return Ok(values),
                        other => return expected(other, "',' or ')'"),
                    }
                }
                Token::Symbol(",") => {
                    let next = self.peek();
                    if values.is_empty() || matches!(next, Token::Symbol("," | ")")) {
                        values.insert("");
                    }
                    if next == Token::Symbol(")") {
                        return Ok(values);
                    }
                }
                other => return expected(other, "',', or identifier"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::LabelSelector;

    /// Returns upstream's name of an operator, where both spellings of equality are distinct.
    fn operator(text: &str) -> &str {
        if text == "==" { "=" } else { text }
    }

    #[test]
    fn label_selectors_read_as_recorded() {
        let rows = include_str!("../../testdata/label_selectors.jsonl").lines();
        let (mut read, mut refused) = (0, 0);
        for row in rows {
            let row: Value = serde_json::from_str(row).unwrap();
            let selector = match LabelSelector::parse(row["text"].as_str().unwrap()) {
                Ok(selector) => selector,
                Err(error) => {
                    assert_eq!(error.to_string(), row["error"].as_str().unwrap_or("(none)"), "{row}");
                    refused += 1;
                    continue;
                }
            };
            assert!(row["error"].is_null(), "{row}");
            let want: Vec<(&str, &str, Vec<&str>)> = row["requirements"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|r| {
                    let values = r["values"].as_array().into_iter().flatten();
                    let values = values.map(|v| v.as_str().unwrap()).collect();
                    (r["key"].as_str().unwrap(), operator(r["operator"].as_str().unwrap()), values)
                })
                .collect();
            let got: Vec<(&str, &str, Vec<&str>)> = selector
                .requirements()
                .iter()
                .map(|r| (r.key.as_str(), r.operator.name(), r.values.iter().map(String::as_str).collect()))
                .collect();
            assert_eq!(got, want, "{row}");
            for (name, matches) in row["matches"].as_object().unwrap() {
                let labels: serde_json::Map<String, Value> = serde_json::from_str(name).unwrap();
                let got = selector
                    .matches(labels.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap())));
                assert_eq!(got, matches.as_bool().unwrap(), "{name}: {row}");
            }
            read += 1;
        }
        assert!(read > 150 && refused > 300, "{read} read, {refused} refused");
    }
}
