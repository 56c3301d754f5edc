//! Parsing of the JSON of a custom resource, with any content. Duplicate fields are reported, and the last one wins.

use std::fmt::Write as _;

use portico_machinery::Bounded;
use portico_machinery::object::cut;
use serde_json::{Map, Value};

use crate::decode::{Reader, SyntaxError, ValueKind, number_value, strict_errors};

/// Parsed body.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub value: Value,
    /// `duplicate field "spec.x"`, in text order, each once.
    pub duplicates: Vec<String>,
    /// First number outside the range of floats.
    pub error: Option<String>,
}

/// Parses one value, which must be the whole text.
pub(crate) fn parse_body(text: &str) -> Result<Body, SyntaxError> {
    let mut walk = BodyParser {
        reader: Reader::new(text),
        body: Body::default(),
        path: String::new(),
        duplicates: strict_errors(),
    };
    let value = walk.value()?;
    walk.reader.end()?;
    Ok(Body { value, duplicates: walk.duplicates.into_items(), ..walk.body })
}

struct BodyParser<'t> {
    reader: Reader<'t>,
    body: Body,
    path: String,
    duplicates: Bounded<String>,
}

impl BodyParser<'_> {
    fn value(&mut self) -> Result<Value, SyntaxError> {
        Ok(match self.reader.peek_kind()? {
            ValueKind::Object => Value::Object(self.object()?),
            ValueKind::Array => Value::Array(self.array()?),
            ValueKind::String => Value::String(self.reader.string()?.into_owned()),
            ValueKind::Number => self.number()?,
            ValueKind::Bool => Value::Bool(self.reader.bool()?),
            ValueKind::Null => {
                self.reader.null()?;
                Value::Null
            }
        })
    }

    fn object(&mut self) -> Result<Map<String, Value>, SyntaxError> {
        self.reader.enter()?;
        let mut map = Map::new();
        let path_len = self.path.len();
        while let Some(key) = self.reader.key(map.is_empty())? {
            if path_len > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            let value = self.value()?;
            if map.insert(key.into_owned(), value).is_some() {
                self.duplicate();
            }
            self.path.truncate(path_len);
        }
        Ok(map)
    }

    fn array(&mut self) -> Result<Vec<Value>, SyntaxError> {
        self.reader.enter()?;
        let mut list = Vec::new();
        let path_len = self.path.len();
        while self.reader.element(list.is_empty())? {
            // Writing to a string cannot fail.
            let _ = write!(self.path, "[{}]", list.len());
            list.push(self.value()?);
            self.path.truncate(path_len);
        }
        Ok(list)
    }

    fn number(&mut self) -> Result<Value, SyntaxError> {
        let text = self.reader.number()?;
        let value = number_value(text);
        if value.is_none() && self.body.error.is_none() {
            let error = format!("json: cannot unmarshal number {text} into Go value of type float64");
            self.body.error = Some(error);
        }
        Ok(value.unwrap_or_default())
    }

    fn duplicate(&mut self) {
        self.duplicates.push_new_with(|| format!("duplicate field {:?}", cut(self.path.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::MAX_VALUES;

    #[test]
    fn duplicates_are_reported_once_and_the_last_wins() {
        let body = parse_body(r#"{"s":{"a":1,"a":2,"l":[{"q":1,"q":2}],"a":3},"s":{"b":4}}"#).unwrap();
        assert_eq!(
            body.duplicates,
            [r#"duplicate field "s.a""#, r#"duplicate field "s.l[0].q""#, r#"duplicate field "s""#]
        );
        assert_eq!(body.value, serde_json::json!({"s": {"b": 4}}));
    }

    #[test]
    fn numbers_written_with_a_fraction_stay_floats() {
        let body = parse_body("[4, 4.0, 4.5, 1e3, 12345678901234567890]").unwrap();
        assert_eq!(body.value.to_string(), "[4,4.0,4.5,1000.0,1.2345678901234567e+19]");
    }

    #[test]
    fn bodies_above_the_limits_are_rejected() {
        assert!(super::parse_body(&"[".repeat(10_000)).is_err());
        assert!(super::parse_body(&format!("[{}0]", "0,".repeat(MAX_VALUES - 1))).is_ok());
        assert!(super::parse_body(&format!("[{}0]", "0,".repeat(MAX_VALUES))).is_err());
        let members =
            |count: usize| (1..count).fold("{\"0\":0".to_owned(), |text, at| text + &format!(",\"{at}\":0"));
        assert!(super::parse_body(&(members(MAX_VALUES) + "}")).is_ok());
        assert!(super::parse_body(&(members(MAX_VALUES + 1) + "}")).is_err());
    }

    #[test]
    fn long_paths_are_truncated() {
        let key = "k".repeat(1024 * 1024);
        let fields: String = (0..50).map(|n| format!(r#""f{n}":1,"f{n}":1,"#)).collect();
        let text = format!(r#"{{"{key}":{{{fields}"last":1}}}}"#);
        let bytes: usize = parse_body(&text).unwrap().duplicates.iter().map(String::len).sum();
        assert!(bytes < 2 * crate::decode::MAX_STRICT_BYTES, "{bytes}");
    }
}
