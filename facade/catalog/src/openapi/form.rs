//! Negotiation of the encoding of a document.

use portico_machinery::accept::parse_accept;

/// Encoding of a document: JSON, or the protobuf message of its OpenAPI version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Protobuf,
}

/// Media types of one version of OpenAPI.
pub(super) struct MediaTypes {
    protobuf: &'static str,
    /// Spelling of older clients; the response has the current spelling.
    old_protobuf: &'static str,
}

pub(super) const V2: MediaTypes = MediaTypes {
    protobuf: "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    old_protobuf: "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
};

pub(super) const V3: MediaTypes = MediaTypes {
    protobuf: "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    old_protobuf: "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
};

const JSON: &str = "application/json";

impl MediaTypes {
    /// Media type of a response.
    pub(super) fn media_type(&self, form: Form) -> &'static str {
        match form {
            Form::Json => JSON,
            Form::Protobuf => self.protobuf,
        }
    }

    /// Selects the preferred form of the client, JSON by default; `None` if it accepts neither.
    pub(super) fn negotiate(&self, accept: &str) -> Option<Form> {
        if accept.trim().is_empty() {
            return Some(Form::Json);
        }
        parse_accept(accept).iter().find_map(|clause| {
            if clause.covers(JSON) {
                Some(Form::Json)
            } else {
                let protobuf = clause.covers(self.protobuf) || clause.covers(self.old_protobuf);
                protobuf.then_some(Form::Protobuf)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_chooses_among_json_and_both_spellings_of_protobuf() {
        let old = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
        let new = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
        for (accept, want) in [
            ("", Some(Form::Json)),
            ("*/*", Some(Form::Json)),
            ("application/*", Some(Form::Json)),
            (old, Some(Form::Protobuf)),
            (new, Some(Form::Protobuf)),
            ("application/yaml", None),
            ("application/yaml, application/json", Some(Form::Json)),
            (V2.protobuf, None),
        ] {
            assert_eq!(V3.negotiate(accept), want, "{accept}");
        }
        assert_eq!(V3.media_type(Form::Protobuf), new);
        assert_eq!(V3.negotiate(&format!("application/json;q=0.5, {old}")), Some(Form::Protobuf));
    }
}
