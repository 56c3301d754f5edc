//! Continue tokens (upstream's `storage.EncodeContinue`): position in a list. Tokens are untrusted input and validated strictly.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::{DecodeError, Engine as _};
use portico_machinery::Status;
use portico_schema::decode::syntax_error_in;
use serde::{Deserialize, Serialize};

use crate::Result;

const VERSION: &str = "meta.k8s.io/v1";

/// Position at which a list continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Revision of the list; `None` for the newest state, after the first revision was compacted.
    pub(crate) revision: Option<i64>,
    /// Key after which the list continues, relative to the path of the list.
    pub(crate) after: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Wire {
    v: String,
    rv: i64,
    start: String,
}

impl Token {
    /// Encodes the token for the client.
    #[must_use]
    pub fn encode(&self) -> String {
        let wire = Wire {
            v: VERSION.to_owned(),
            rv: self.revision.unwrap_or(-1),
            start: format!("{}\0", self.after),
        };
        // A struct of strings and a number always serializes.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&wire).unwrap_or_default())
    }

    /// Decodes a token from a client.
    ///
    /// # Errors
    /// Status 400 for an invalid token, with upstream's message if its JSON can be read.
    pub fn decode(text: &str) -> Result<Self> {
        let refuse = |reason: String| {
            Box::new(Status::bad_request(format!(
                "invalid continue token: continue key is not valid: {reason}"
            )))
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|e| refuse(base64_error(text, &e)))?;
        let wire: Wire = serde_json::from_slice(&bytes)
            .map_err(|error| refuse(syntax_error_in(&bytes).unwrap_or_else(|| error.to_string())))?;
        if wire.v != VERSION {
            return Err(refuse(format!("server does not recognize this encoded version {}", wire.v)));
        }
        if wire.rv == 0 || wire.rv < -1 {
            return Err(refuse(
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)".to_owned(),
            ));
        }
        let after = wire.start.strip_suffix('\0').unwrap_or(&wire.start);
        if after.is_empty() {
            return Err(refuse("encoded start key empty (version meta.k8s.io/v1)".to_owned()));
        }
        // Kubernetes starts the keys of a collection in all namespaces, and those of cluster-scoped resources, with a slash.
        let after = after.strip_prefix('/').unwrap_or(after);
        let is_invalid_segment = |part: &str| part.is_empty() || matches!(part, "." | "..");
        if after.split('/').any(is_invalid_segment) || after.split('/').count() > 2 {
            return Err(refuse(wire.start));
        }
        Ok(Self { revision: (wire.rv > 0).then_some(wire.rv), after: after.to_owned() })
    }
}

/// Base64 error in the form of Go's decoder.
fn base64_error(text: &str, error: &DecodeError) -> String {
    let offset = match error {
        DecodeError::InvalidByte(offset, _) | DecodeError::InvalidLastSymbol { offset, .. } => *offset,
        // Offset of the incomplete group.
        DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => text.len() / 4 * 4,
    };
    format!("illegal base64 data at input byte {offset}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_a_round_trip_in_upstreams_format() {
        let token = Token { revision: Some(7), after: "ns/a".to_owned() };
        let text = token.encode();
        assert_eq!(
            URL_SAFE_NO_PAD.decode(&text).unwrap(),
            br#"{"v":"meta.k8s.io/v1","rv":7,"start":"ns/a\u0000"}"#
        );
        assert_eq!(Token::decode(&text).unwrap(), token);
        let inconsistent = Token { revision: None, after: "a".to_owned() };
        assert_eq!(Token::decode(&inconsistent.encode()).unwrap(), inconsistent);
    }

    #[test]
    fn a_token_of_kube_apiserver_is_accepted() {
        for (start, after) in [("/ns/a", "ns/a"), ("/a", "a"), ("a", "a")] {
            let wire = format!(r#"{{"v":"meta.k8s.io/v1","rv":7,"start":"{start}\u0000"}}"#);
            let token = Token { revision: Some(7), after: after.to_owned() };
            assert_eq!(Token::decode(&URL_SAFE_NO_PAD.encode(wire)).unwrap(), token, "{start}");
        }
    }

    #[test]
    fn foreign_tokens_are_refused_with_400() {
        let refused = |text: &str| {
            let status = Token::decode(text).unwrap_err();
            assert_eq!(status.code, 400, "{text}");
            status
                .message
                .strip_prefix("invalid continue token: continue key is not valid: ")
                .unwrap()
                .to_owned()
        };
        for (wire, reason) in [
            ("", "unexpected end of JSON input"),
            ("{}", "server does not recognize this encoded version "),
            (
                r#"{"v":"other","rv":1,"start":"a\u0000"}"#,
                "server does not recognize this encoded version other",
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a\u0000"}"#,
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":-2,"start":"a\u0000"}"#,
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../a\u0000"}"#, "../a\0"),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a//b\u0000"}"#, "a//b\0"),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"//b\u0000"}"#, "//b\0"),
            (
                r#"{"v":"meta.k8s.io/v1","rv":1,"start":""}"#,
                "encoded start key empty (version meta.k8s.io/v1)",
            ),
        ] {
            assert_eq!(refused(&URL_SAFE_NO_PAD.encode(wire)), reason, "{wire}");
        }
        assert_eq!(refused("nonsense"), r"invalid character '\u009e' looking for beginning of value");
        assert_eq!(refused("a!!"), "illegal base64 data at input byte 1");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_decoder_panic(text in ".*") {
            let _ = Token::decode(&text);
            let _ = Token::decode(&URL_SAFE_NO_PAD.encode(&text));
        }

        #[test]
        fn every_name_survives_a_round_trip(after in "[a-z0-9.-]{1,40}(/[a-zA-Z0-9_:-]{1,40})?", revision in 1..i64::MAX) {
            let token = Token { revision: Some(revision), after };
            if !token.after.split('/').any(|p| matches!(p, "." | "..")) {
                proptest::prop_assert_eq!(Token::decode(&token.encode()).unwrap(), token);
            }
        }
    }
}
