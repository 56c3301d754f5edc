//! Package `mime`: media types.
//!
//! ```
//! use portico_gostd::mime::parse_media_type;
//!
//! let media_type = parse_media_type("Application/JSON; charset=UTF-8").unwrap();
//! assert_eq!(media_type.essence, "application/json");
//! assert_eq!(media_type.params, [("charset".to_owned(), "UTF-8".to_owned())]);
//! ```

/// Media type with its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaType {
    /// Type and subtype in lower case, such as `application/json`. A type without a slash is valid.
    pub essence: String,
    /// Parameters, sorted by name, with names in lower case. Those of RFC 2231 (`name*0`, `name*`) are validated and dropped.
    pub params: Vec<(String, String)>,
}

/// Reason why a text is not a media type, with Go's message.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaTypeError {
    /// The text is empty or does not start with a token.
    NoMediaType,
    /// No slash after the first token.
    NoSlash,
    /// No token after the slash.
    NoSubtype,
    /// Unexpected text after the subtype.
    Unexpected,
    /// A parameter is invalid.
    Parameter,
    /// A parameter has two different values.
    Duplicate,
}

impl std::error::Error for MediaTypeError {}

impl std::fmt::Display for MediaTypeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoMediaType => "mime: no media type",
            Self::NoSlash => "mime: expected slash after first token",
            Self::NoSubtype => "mime: expected token after slash",
            Self::Unexpected => "mime: unexpected content after media subtype",
            Self::Parameter => "mime: invalid media parameter",
            Self::Duplicate => "mime: duplicate parameter name",
        })
    }
}

/// Parses a media type (`mime.ParseMediaType`).
///
/// # Errors
/// The text is not a media type, or a parameter is invalid.
pub fn parse_media_type(text: &str) -> Result<MediaType, MediaTypeError> {
    let (base, _) = text.split_once(';').unwrap_or((text, ""));
    let essence = base.to_lowercase().trim().to_owned();
    check_essence(&essence)?;
    let mut params: Vec<(String, String)> = Vec::new();
    let mut rest = text[base.len()..].trim_start();
    while !rest.is_empty() {
        let Some((name, value, after)) = parameter(rest) else {
            if rest.trim() == ";" {
                break;
            }
            return Err(MediaTypeError::Parameter);
        };
        match params.binary_search_by(|(other, _)| other.as_str().cmp(&name)) {
            Ok(index) if params[index].1 != value => return Err(MediaTypeError::Duplicate),
            Ok(_) => {}
            Err(index) => params.insert(index, (name, value)),
        }
        rest = after.trim_start();
    }
    params.retain(|(name, _)| !name.contains('*'));
    Ok(MediaType { essence, params })
}

fn check_essence(essence: &str) -> Result<(), MediaTypeError> {
    let (_, rest) = token(essence).ok_or(MediaTypeError::NoMediaType)?;
    if rest.is_empty() {
        return Ok(());
    }
    let rest = rest.strip_prefix('/').ok_or(MediaTypeError::NoSlash)?;
    let (_, rest) = token(rest).ok_or(MediaTypeError::NoSubtype)?;
    if rest.is_empty() { Ok(()) } else { Err(MediaTypeError::Unexpected) }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`{|}~".contains(&byte)
}

/// Splits a text after its leading token. Returns `None` if there is none.
fn token(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|byte| !is_token(byte)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Parses `; name=value`. Returns the name, the value, and the rest.
fn parameter(text: &str) -> Option<(String, String, &str)> {
    let rest = text.strip_prefix(';')?.trim_start();
    let (name, rest) = token(rest)?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let (value, rest) = match rest.strip_prefix('"') {
        Some(quoted) => quoted_value(quoted)?,
        None => token(rest).map(|(value, rest)| (value.to_owned(), rest))?,
    };
    Some((name.to_ascii_lowercase(), value, rest))
}

/// Parses a quoted string after its opening quotation mark. Returns its content and the rest. A backslash escapes only special
/// characters, and is literal before others.
fn quoted_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[index + 1..])),
            '\r' | '\n' => return None,
            '\\' => {
                let special = |next: char| "()<>@,;:\\\"/[]?=".contains(next);
                match characters.next_if(|(_, next)| special(*next)) {
                    Some((_, escaped)) => value.push(escaped),
                    None => value.push('\\'),
                }
            }
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_parse_as_recorded() {
        let (mut read, mut refused) = (0, 0);
        for row in include_str!("../testdata/media_types.jsonl").lines() {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            match parse_media_type(row["text"].as_str().unwrap()) {
                Ok(media) => {
                    assert_eq!(Some(media.essence.as_str()), row["essence"].as_str(), "{row}");
                    let want = row["params"].as_object().unwrap();
                    let got: serde_json::Map<String, serde_json::Value> =
                        media.params.into_iter().map(|(name, value)| (name, value.into())).collect();
                    assert_eq!(&got, want, "{row}");
                    read += 1;
                }
                Err(error) => {
                    assert_eq!(error.to_string(), row["error"].as_str().unwrap_or("(none)"), "{row}");
                    refused += 1;
                }
            }
        }
        assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
    }
}
