//! Parsing of the JSON of a custom resource, with any content. Duplicate fields are reported, and the last one wins.

use std::fmt::Write as _;

use portico_machinery::Bounded;
use portico_machinery::object::cut;
use serde_json::{Map, Value};

use crate::decode::{Reader, Start, SyntaxError, number_value, strict_errors};

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
pub(crate) fn body(text: &str) -> Result<Body, SyntaxError> {
    let mut walk = Walk {
        reader: Reader::new(text),
        body: Body::default(),
        path: String::new(),
        duplicates: strict_errors(),
    };
    let value = walk.value()?;
    walk.reader.end()?;
    Ok(Body { value, duplicates: walk.duplicates.into_items(), ..walk.body })
}

struct Walk<'t> {
    reader: Reader<'t>,
    body: Body,
    path: String,
    duplicates: Bounded<String>,
}

impl Walk<'_> {
    fn value(&mut self) -> Result<Value, SyntaxError> {
        Ok(match self.reader.start()? {
            Start::Object => Value::Object(self.object()?),
            Start::Array => Value::Array(self.array()?),
            Start::String => Value::String(self.reader.string()?.into_owned()),
            Start::Number => self.number()?,
            Start::Bool => Value::Bool(self.reader.bool()?),
            Start::Null => {
                self.reader.null()?;
                Value::Null
            }
        })
    }

    fn object(&mut self) -> Result<Map<String, Value>, SyntaxError> {
        self.reader.enter()?;
        let mut map = Map::new();
        let here = self.path.len();
        while let Some(key) = self.reader.key(map.is_empty())? {
            if here > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            let value = self.value()?;
            if map.insert(key.into_owned(), value).is_some() {
                self.duplicate();
            }
            self.path.truncate(here);
        }
        Ok(map)
    }

    fn array(&mut self) -> Result<Vec<Value>, SyntaxError> {
        self.reader.enter()?;
        let mut list = Vec::new();
        let here = self.path.len();
        while self.reader.element(list.is_empty())? {
            // Writing to a string cannot fail.
            let _ = write!(self.path, "[{}]", list.len());
            list.push(self.value()?);
            self.path.truncate(here);
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
    fn duplicates_are_named_once_and_the_last_counts() {
        let body = body(r#"{"s":{"a":1,"a":2,"l":[{"q":1,"q":2}],"a":3},"s":{"b":4}}"#).unwrap();
        assert_eq!(
            body.duplicates,
            [r#"duplicate field "s.a""#, r#"duplicate field "s.l[0].q""#, r#"duplicate field "s""#]
        );
        assert_eq!(body.value, serde_json::json!({"s": {"b": 4}}));
    }

    #[test]
    fn numbers_written_with_a_fraction_stay_floats() {
        let body = body("[4, 4.0, 4.5, 1e3, 12345678901234567890]").unwrap();
        assert_eq!(body.value.to_string(), "[4,4.0,4.5,1000.0,1.2345678901234567e+19]");
    }

    #[test]
    fn what_is_too_much_is_refused() {
        assert!(super::body(&"[".repeat(10_000)).is_err());
        assert!(super::body(&format!("[{}0]", "0,".repeat(MAX_VALUES - 1))).is_ok());
        assert!(super::body(&format!("[{}0]", "0,".repeat(MAX_VALUES))).is_err());
        let members =
            |count: usize| (1..count).fold("{\"0\":0".to_owned(), |text, at| text + &format!(",\"{at}\":0"));
        assert!(super::body(&(members(MAX_VALUES) + "}")).is_ok());
        assert!(super::body(&(members(MAX_VALUES + 1) + "}")).is_err());
    }

    #[test]
    fn long_paths_are_not_named_without_end() {
        let key = "k".repeat(1024 * 1024);
        let fields: String = (0..50).map(|n| format!(r#""f{n}":1,"f{n}":1,"#)).collect();
        let text = format!(r#"{{"{key}":{{{fields}"last":1}}}}"#);
        let bytes: usize = body(&text).unwrap().duplicates.iter().map(String::len).sum();
        assert!(bytes < 2 * crate::decode::MAX_STRICT_BYTES, "{bytes}");
    }
}
