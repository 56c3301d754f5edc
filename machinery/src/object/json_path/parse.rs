//! Parser of paths, with the grammar and the peculiarities of upstream's parser.

use super::error::InvalidJsonPath as Invalid;
use super::quoted;

type Result<T> = std::result::Result<T, Invalid>;

/// Steps that are applied in order.
pub(super) type Steps = Box<[Step]>;

/// Step from values to other values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// `.name`
    Field(Box<str>),
    /// `.*`
    Wildcard,
    /// `..`
    Recursive,
    /// `[0]`, `[1:3]`, `[::2]`, `[*]`
    Slice(Slice),
    /// `[0,2]`
    Union(Box<[Steps]>),
    /// `[?(@.a=="b")]`
    Filter(Box<Filter>),
    /// String, number or Boolean, which replaces the current values.
    Literal(Literal),
    /// `range`, `end` and all other words, which have no effect in a column.
    Word,
}

/// Range of list elements; negative indices count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// First index; `None` for the first element.
    pub(super) start: Option<i64>,
    /// Index after the last element; `None` for the end of the list.
    pub(super) end: Option<i64>,
    /// True if only the start was given: the end is the next index.
    pub(super) single: bool,
    /// Step width.
    pub(super) step: Option<i64>,
}

/// Condition for list elements.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filter {
    pub(super) left: Steps,
    /// Comparison. Without it, elements in which `left` finds a value match.
    pub(super) test: Option<(Operator, Steps)>,
}

/// Comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// Unknown operator, which fails when it is evaluated.
    Unknown,
}

/// Literal value in a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
}

/// Maximum nesting of filters and unions.
const MAX_DEPTH: usize = 32;

/// Parses the brace expressions of a template whose first braces contain this text. Returns at least one list.
pub(super) fn parse_template(text: &str) -> Result<Vec<Steps>> {
    parse_nested(text, 0)
}

fn parse_nested(text: &str, depth: usize) -> Result<Vec<Steps>> {
    if depth > MAX_DEPTH {
        return Err(Invalid::TooDeep);
    }
    let template = format!("{{{text}}}");
    let mut parser = Parser { rest: &template, depth };
    let mut lists = Vec::new();
    while let Some(start) = parser.rest.find('{') {
        parser.rest = &parser.rest[start + 1..];
        lists.push(parser.steps()?);
    }
    Ok(lists)
}

struct Parser<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Parser<'t> {
    /// Parses steps up to the closing brace.
    fn steps(&mut self) -> Result<Steps> {
        let mut steps = Vec::new();
        loop {
            if self.skip("}") {
                return Ok(steps.into());
            }
            if self.skip("[?(") {
                steps.push(self.filter()?);
                continue;
            }
            if self.skip("..") {
                self.recursive(&mut steps)?;
                continue;
            }
            let before = self.rest;
            match self.next() {
                None | Some('\n' | '\r') => return Err(Invalid::Unclosed("an action")),
                Some(' ' | '@' | '$') => {}
                Some('[') => self.brackets(&mut steps)?,
                Some(quote @ ('"' | '\'')) => steps.push(self.quoted(before, quote)?),
                Some('.') => steps.push(self.field()),
                Some(sign) if matches!(sign, '+' | '-') || sign.is_numeric() => {
                    steps.push(self.number(before)?);
                }
                Some(letter) if is_alphanumeric(letter) => steps.push(self.word(before)),
                Some(other) => return Err(Invalid::Unexpected(other)),
            }
        }
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    fn skip(&mut self, text: &str) -> bool {
        let after = self.rest.strip_prefix(text);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    /// Consumes the text before the first character that ends it.
    fn until(&mut self, ends: impl Fn(char) -> bool) -> &'t str {
        let (prefix, rest) = self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        prefix
    }

    fn recursive(&mut self, steps: &mut Vec<Step>) -> Result<()> {
        if steps.last() == Some(&Step::Recursive) {
            return Err(Invalid::DoubleRecursive);
        }
        steps.push(Step::Recursive);
        if self.rest.starts_with(is_alphanumeric) {
            steps.push(self.field());
        }
        Ok(())
    }

    /// Parses a name, in which a backslash escapes the next character.
    fn field(&mut self) -> Step {
        let mut escaped = false;
        let end = self.rest.find(|c| {
            let ends = !escaped && is_terminator(c);
            escaped = !escaped && c == '\\';
            ends
        });
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        match name {
            "*" => Step::Wildcard,
            name => Step::Field(name.replace('\\', "").into()),
        }
    }

    fn number(&mut self, from: &'t str) -> Result<Step> {
        self.until(|c| c != '.' && !c.is_numeric());
        let text = &from[..from.len() - self.rest.len()];
        let int = text.parse().map(Literal::Int);
        let number = int.or_else(|_| text.parse().map(Literal::Float));
        number.map(Step::Literal).map_err(|_| Invalid::InvalidNumber(text.to_owned()))
    }

    fn word(&mut self, from: &'t str) -> Step {
        self.until(is_terminator);
        match &from[..from.len() - self.rest.len()] {
            "true" => Step::Literal(Literal::Bool(true)),
            "false" => Step::Literal(Literal::Bool(false)),
            _ => Step::Word,
        }
    }

    /// Parses a quoted text from its opening quote. The closing quote has no backslash before it.
    fn quoted(&mut self, from: &'t str, quote: char) -> Result<Step> {
        let mut before = quote;
        loop {
            match self.next() {
                None | Some('\n') => return Err(Invalid::Unclosed("a quoted text")),
                Some(c) if c == quote && before != '\\' => break,
                Some(c) => before = c,
            }
        }
        let text = &from[..from.len() - self.rest.len()];
        let unquoted = quoted::unquote(&text[1..text.len() - 1], quote);
        let text = unquoted.ok_or_else(|| Invalid::InvalidQuotes(text.to_owned()))?;
        Ok(Step::Literal(Literal::Text(text)))
    }

    /// Parses the content of brackets: an index, a slice, a quoted name, or several of them.
    fn brackets(&mut self, steps: &mut Vec<Step>) -> Result<()> {
        let text = self.until(|c| c == ']' || c == '\n');
        if !self.skip("]") {
            return Err(Invalid::Unclosed("a bracket"));
        }
        if text.contains(',') {
            let members =
                text.split(',').map(|member| self.first_list(&format!("[{}]", member.trim_matches(' '))));
            steps.push(Step::Union(members.collect::<Result<_>>()?));
            return Ok(());
        }
        let name = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        if let Some(name) = name.filter(|name| !name.contains('\'')) {
            steps.extend(self.first_list(&format!(".{name}"))?);
            return Ok(());
        }
        let slice = Slice::parse(if text == "*" { ":" } else { text });
        steps.push(Step::Slice(slice.ok_or_else(|| Invalid::InvalidIndex(text.to_owned()))?));
        Ok(())
    }

    /// Parses a nested path as a separate template.
    fn first_list(&self, text: &str) -> Result<Steps> {
        Ok(parse_nested(text, self.depth + 1)?.into_iter().next().unwrap_or_default())
    }

    /// Parses a filter after `[?(`, up to an unquoted parenthesis and a bracket.
    fn filter(&mut self) -> Result<Step> {
        let (from, mut before) = (self.rest, '\0');
        let (mut pair, mut closed) = (None, false);
        loop {
            let next = self.next();
            match next {
                None | Some('\n') => return Err(Invalid::Unclosed("a filter")),
                Some(quote @ ('"' | '\'')) => match pair {
                    None => pair = Some(quote),
                    Some(pair) => closed |= pair == quote && before != '\\',
                },
                Some(')') if pair.is_some() == closed => break,
                Some(_) => {}
            }
            before = next.unwrap_or_default();
        }
        let text = &from[..from.len() - self.rest.len() - 1];
        if !self.skip("]") {
            return Err(Invalid::Unclosed("a filter's bracket"));
        }
        let filter = match split_comparison(text) {
            None => Filter { left: self.first_list(text)?, test: None },
            Some((left, operator, right)) => {
                let left = self.first_list(left)?;
                Filter { left, test: Some((Operator::of(operator), self.first_list(right)?)) }
            }
        };
        Ok(Step::Filter(Box::new(filter)))
    }
}

/// Splits a comparison into left side, operator and right side. Returns `None` if one is missing.
fn split_comparison(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |c: char| "!<>=".contains(c);
    let start = text.find(is_operator).filter(|start| *start > 0)?;
    let (left, rest) = text.split_at(start);
    let end = rest.find(|c| !is_operator(c)).unwrap_or(rest.len() - 1);
    let (operator, right) = rest.split_at(end);
    (!operator.is_empty()).then_some((left, operator, right))
}

impl Slice {
    fn parse(text: &str) -> Option<Self> {
        let is_index =
            |part: &str| part.strip_prefix('-').unwrap_or(part).bytes().all(|b| b.is_ascii_digit());
        let parts: Vec<&str> = text.split(':').collect();
        if parts.len() > 3 || !parts.iter().all(|part| is_index(part)) {
            return None;
        }
        let number = |index: usize| match parts.get(index).copied().unwrap_or_default() {
            "" => Some(None),
            part => part.parse::<i64>().ok().map(Some),
        };
        let (start, end, step) = (number(0)?, number(1)?, number(2)?);
        let single = parts.len() == 1;
        let end = if single { Some(start.unwrap_or(0).checked_add(1)?) } else { end };
        Some(Self { start, end, single, step })
    }
}

impl Operator {
    fn of(text: &str) -> Self {
        match text {
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            _ => Self::Unknown,
        }
    }
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}
