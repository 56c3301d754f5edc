//! Header of a token that an external signer has signed, and its validation (`validateJWTHeader`).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use portico_gostd::strconv::quote;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Algorithm;

/// Maximum length of a key ID.
const MAX_KEY_ID: usize = 1024;

/// Reason why a header is rejected. Messages are upstream's.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The header is not base64url.
    #[error("while unwrapping header: {0}")]
    Base64(String),
    /// The header is not a JSON object with string values.
    #[error("while parsing header JSON: {0}")]
    Json(String),
    /// The header has an unknown field.
    #[error("while parsing header JSON: json: unknown field {}", quote(.0))]
    UnknownField(String),
    /// The type is not that of a JWT.
    #[error("bad type")]
    Type,
    /// The key ID is missing.
    #[error("key id missing")]
    NoKeyId,
    /// The key ID is too long.
    #[error("key id longer than 1 kb")]
    LongKeyId,
    /// The algorithm is not supported.
    #[error("bad signing algorithm {}", quote(.0))]
    Algorithm(String),
}

/// Validated header.
#[derive(Debug, PartialEq, Eq)]
pub struct ExternalHeader {
    /// Signature algorithm.
    pub algorithm: Algorithm,
    /// ID of the key.
    pub key_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    alg: String,
    kid: String,
    typ: String,
    #[serde(flatten)]
    unknown_fields: BTreeMap<String, IgnoredAny>,
}

impl ExternalHeader {
    /// Parses and validates the first part of a token.
    ///
    /// # Errors
    /// Returns [`HeaderError`].
    pub fn parse(header: &str) -> Result<Self, HeaderError> {
        let json = URL_SAFE_NO_PAD.decode(header).map_err(|error| HeaderError::Base64(error.to_string()))?;
        let opens = json.trim_ascii_start().first() == Some(&b'{');
        let fields = opens.then(|| portico_gostd::json::from_slice::<Fields>(&json));
        let Some(fields) = fields else { return Err(HeaderError::Json("not an object".to_owned())) };
        let fields = fields.map_err(|error| HeaderError::Json(portico_gostd::json::error_text(&error)))?;
        if let Some((name, _)) = fields.unknown_fields.into_iter().next() {
            return Err(HeaderError::UnknownField(name));
        }
        if fields.typ != "JWT" {
            return Err(HeaderError::Type);
        }
        match fields.kid.len() {
            0 => return Err(HeaderError::NoKeyId),
            1..=MAX_KEY_ID => {}
            _ => return Err(HeaderError::LongKeyId),
        }
        let algorithm = Algorithm::from_name(&fields.alg).ok_or(HeaderError::Algorithm(fields.alg))?;
        Ok(Self { algorithm, key_id: fields.kid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<ExternalHeader, String> {
        ExternalHeader::parse(&URL_SAFE_NO_PAD.encode(json)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_header_names_algorithm_key_and_type_and_nothing_else() {
        let good = parse(r#"{"alg":"ES256","kid":"k","typ":"JWT"}"#).unwrap();
        assert_eq!(good, ExternalHeader { algorithm: Algorithm::Es256, key_id: "k".to_owned() });
        let long = format!(r#"{{"alg":"ES256","kid":"{}","typ":"JWT"}}"#, "k".repeat(1025));
        for (json, words) in [
            (r#"{"alg":"ES256","kid":"k"}"#, "bad type"),
            (r#"{"alg":"ES256","kid":"k","typ":"jwt"}"#, "bad type"),
            (r#"{"alg":"ES256","typ":"JWT"}"#, "key id missing"),
            (long.as_str(), "key id longer than 1 kb"),
            (r#"{"alg":"none","kid":"k","typ":"JWT"}"#, r#"bad signing algorithm "none""#),
            (r#"{"kid":"k","typ":"JWT"}"#, r#"bad signing algorithm """#),
            (r#"{"alg":"ES256","kid":"k","typ":"JWT","crit":["b64"]}"#, r#"json: unknown field "crit""#),
            (r#"{"alg":"ES256","alg":"none","kid":"k","typ":"JWT"}"#, r#"bad signing algorithm "none""#),
            (r#"["ES256","k","JWT"]"#, "while parsing header JSON: "),
            ("", "while parsing header JSON: "),
        ] {
            assert!(parse(json).is_err_and(|error| error.contains(words)), "{json}: {:?}", parse(json));
        }
        let no_base64 = ExternalHeader::parse("%").unwrap_err().to_string();
        assert!(no_base64.starts_with("while unwrapping header: "), "{no_base64}");
    }
}
