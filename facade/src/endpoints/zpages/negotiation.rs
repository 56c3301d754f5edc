//! Negotiation of the form of a z-page (FlagzEndpointRestrictions, StatuszEndpointRestrictions), and its encoding.
//!
//! A page is text, or an object of its kind in the group `config.k8s.io`, which the client must name. Does not depend on the
//! content of pages.

use axum::extract::Request;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, USER_AGENT, WARNING};
use portico_machinery::Status;
use portico_machinery::accept::{MediaRange, parse_accept};
use portico_machinery::status::{Details, Reason};
use serde::Serialize;

use crate::render::{JsonStyle, pretty, yaml};
use crate::request::{RequestView, Response};
use crate::respond;

/// Group of the pages' kinds.
const GROUP: &str = "config.k8s.io";
/// Name of the component that the pages describe.
const COMPONENT: &str = "apiserver";
/// Separators between a name and its value. One is chosen at random, so that programs do not parse the text.
const DELIMITERS: [&str; 4] = [":", ": ", "=", " "];
/// Encodings that are offered, in the order in which a media range matches them.
const OFFERED: [Encoding; 3] = [Encoding::Json, Encoding::Yaml, Encoding::Text];

/// Version of a page's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Deprecated; responses have a warning.
    V1Alpha1,
    V1Beta1,
}

impl Version {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V1Alpha1 => "v1alpha1",
            Self::V1Beta1 => "v1beta1",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Json,
    Yaml,
    Text,
}

impl Encoding {
    fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Text => "text/plain",
        }
    }
}

/// Negotiated form of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageForm {
    encoding: Encoding,
    /// Version of the object; `None` for text.
    version: Option<Version>,
    pretty: bool,
}

const TEXT: PageForm = PageForm { encoding: Encoding::Text, version: None, pretty: false };

/// Page with two forms.
pub(super) trait Page {
    /// Kind of the object.
    const KIND: &'static str;
    /// Returns the page as text.
    fn text(&self, delimiter: &str) -> String;
    /// Returns the object in a version, as JSON.
    fn json(&self, version: Version) -> Vec<u8>;
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Object<'a, C> {
    kind: &'static str,
    api_version: String,
    metadata: Metadata,
    #[serde(flatten)]
    content: &'a C,
}

#[derive(Serialize)]
struct Metadata {
    name: &'static str,
}

/// Encodes the object of a page with these fields as JSON.
pub(super) fn object<P: Page>(version: Version, content: &impl Serialize) -> Vec<u8> {
    let api_version = format!("{GROUP}/{}", version.name());
    let object = Object { kind: P::KIND, api_version, metadata: Metadata { name: COMPONENT }, content };
    serde_json::to_vec(&object).unwrap_or_default()
}

/// Serves the page in the form that the client accepts.
pub(super) fn serve_page<P: Page>(request: &Request, page: &P) -> Response {
    let accept = request.header(ACCEPT);
    let Some(choice) = (if accept.trim().is_empty() { Some(TEXT) } else { negotiate(accept, P::KIND) })
    else {
        return not_acceptable(request);
    };
    let Some(version) = choice.version else { return text(page) };
    let (json, style) =
        (page.json(version), JsonStyle::negotiate(request.query(), request.header(USER_AGENT)));
    let body = match choice.encoding {
        Encoding::Yaml => yaml(&json).unwrap_or(json),
        _ if choice.pretty || style == JsonStyle::Pretty => pretty(&json),
        _ => [json.as_slice(), b"\n"].concat(),
    };
    let mut response = respond::with_body(StatusCode::OK, "application/json", body);
    let (media, kind) = (choice.encoding.media_type(), P::KIND);
    // All parts are constants without unusual bytes.
    if let Ok(media) = HeaderValue::try_from(format!("{media};g={GROUP};v={};as={kind}", version.name())) {
        response.headers_mut().insert(CONTENT_TYPE, media);
    }
    if version == Version::V1Alpha1 {
        let page = kind.to_lowercase();
        let text = format!(
            "299 - \"This version of the {page} endpoint is deprecated. Please use a newer version.\""
        );
        if let Ok(text) = HeaderValue::try_from(text) {
            response.headers_mut().insert(WARNING, text);
        }
    }
    response
}

fn text<P: Page>(page: &P) -> Response {
    let delimiter = DELIMITERS[rand::random_range(0..DELIMITERS.len())];
    let title = P::KIND.to_lowercase();
    let body = format!(
        "\n{COMPONENT} {title}\nWarning: This endpoint is not meant to be machine parseable, has no formatting \
         compatibility guarantees and is for debugging purposes only.\n{}",
        page.text(delimiter)
    );
    respond::with_body(StatusCode::OK, "text/plain; charset=utf-8", body)
}

fn not_acceptable(request: &Request) -> Response {
    let offered = OFFERED.map(Encoding::media_type).join(", ");
    let message = format!("only the following media types are accepted: {offered}");
    let status = Status::failure(Reason::NotAcceptable, message).with_details(Details::default());
    respond::status(request, &status)
}

/// Selects by the first media range that can be satisfied (`NegotiateMediaTypeOptions`).
fn negotiate(accept: &str, kind: &str) -> Option<PageForm> {
    parse_accept(accept).iter().find_map(|clause| {
        let mut covered = OFFERED.into_iter().filter(|encoding| clause.covers(encoding.media_type()));
        covered.find_map(|encoding| choice(clause, encoding, kind))
    })
}

/// Text must not be requested as a kind, and an object must be requested by kind, group and version.
fn choice(clause: &MediaRange, encoding: Encoding, kind: &str) -> Option<PageForm> {
    if !clause.param("stream").is_empty() || !clause.param("sv").is_empty() {
        return None;
    }
    let names_kind = ["as", "g", "v"].iter().any(|name| clause.params.contains_key(*name));
    let pretty = clause.param("pretty") == "1";
    if encoding == Encoding::Text {
        return (!names_kind).then_some(TEXT);
    }
    let is_page_kind = clause.param("as") == kind && clause.param("g") == GROUP;
    let version = match clause.param("v") {
        "v1alpha1" if is_page_kind => Version::V1Alpha1,
        "v1beta1" if is_page_kind => Version::V1Beta1,
        _ => return None,
    };
    Some(PageForm { encoding, version: Some(version), pretty })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn got(accept: &str) -> Option<(&'static str, &'static str)> {
        let choice = negotiate(accept, "Flagz")?;
        Some((choice.encoding.media_type(), choice.version.map_or("", Version::name)))
    }

    #[test]
    fn text_is_the_default_and_an_object_must_be_named() {
        let named = "v=v1beta1;g=config.k8s.io;as=Flagz";
        assert_eq!(got("*/*"), Some(("text/plain", "")));
        assert_eq!(got("text/*"), Some(("text/plain", "")));
        assert_eq!(got(&format!("application/json;{named}")), Some(("application/json", "v1beta1")));
        assert_eq!(got(&format!("*/*;{named}")), Some(("application/json", "v1beta1")));
        let older = "application/yaml;v=v1alpha1;g=config.k8s.io;as=Flagz, text/plain;q=0.5";
        assert_eq!(got(older), Some(("application/yaml", "v1alpha1")));
        assert_eq!(got("application/json;v=v1beta1;g=x;as=Flagz, text/plain"), Some(("text/plain", "")));
    }

    #[test]
    fn other_forms_are_not_acceptable() {
        for accept in [
            "application/json",
            "application/json;v=v1beta1;g=config.k8s.io;as=Statusz",
            "application/json;v=v1;g=config.k8s.io;as=Flagz",
            "application/cbor;v=v1beta1;g=config.k8s.io;as=Flagz",
            "text/plain;v=v1beta1;g=config.k8s.io;as=Flagz",
            "application/json;v=v1beta1;g=config.k8s.io;as=Flagz;stream=watch",
        ] {
            assert_eq!(got(accept), None, "{accept}");
        }
    }
}
