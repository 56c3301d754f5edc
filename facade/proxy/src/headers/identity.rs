//! The caller's identity as headers, and the headers that only the front proxy may set.

use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use portico_machinery::UserInfo;

use crate::refusal::Refusal;

const USER: HeaderName = HeaderName::from_static("x-remote-user");
const UID: HeaderName = HeaderName::from_static("x-remote-uid");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const EXTRA: &str = "x-remote-extra-";

/// Returns true for credentials, identity headers and impersonation headers, which a client's request must not pass on.
/// The chain removes them as well; this is the last check.
pub(super) fn is_private(name: &HeaderName) -> bool {
    if *name == AUTHORIZATION {
        return true;
    }
    let text = name.as_str();
    match text.as_bytes().first() {
        Some(b'x') => text.starts_with("x-remote-"),
        Some(b'i') => text.starts_with("impersonate-"),
        _ => false,
    }
}

/// A caller as backends see it: its identity headers. Created once and used for all requests of the caller.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The headers, or the attribute that is not a valid header value.
    headers: Result<Box<[Header]>, &'static str>,
}

pub(super) type Header = (HeaderName, HeaderValue);

impl Identity {
    /// Creates the headers of this user. If an attribute is not a valid header value, requests of the user are refused.
    pub fn new(user: &UserInfo) -> Self {
        Self { headers: headers_of(user).map(Vec::into_boxed_slice) }
    }

    pub(super) fn headers(&self) -> Result<&[Header], Refusal> {
        self.headers.as_deref().map_err(|what| Refusal::Identity(what))
    }
}

fn headers_of(user: &UserInfo) -> Result<Vec<Header>, &'static str> {
    let mut all = vec![(USER, value(&user.name, "name")?)];
    if !user.uid.is_empty() {
        all.push((UID, value(&user.uid, "uid")?));
    }
    for group in &user.groups {
        all.push((GROUP, value(group, "group")?));
    }
    for (key, values) in &user.extra {
        let name = extra_name(key)?;
        for text in values {
            all.push((name.clone(), value(text, "extra")?));
        }
    }
    Ok(all)
}

fn value(text: &str, what: &'static str) -> Result<HeaderValue, &'static str> {
    HeaderValue::from_str(text).or_else(|_| HeaderValue::from_bytes(text.as_bytes())).map_err(|_| what)
}

/// Encodes a key as a header name: `%` and bytes that are invalid in a header name become `%XX`; the name
/// is lower case on the wire.
fn extra_name(key: &str) -> Result<HeaderName, &'static str> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut name = Vec::with_capacity(EXTRA.len() + key.len() + 8);
    name.extend_from_slice(EXTRA.as_bytes());
    for byte in key.bytes() {
        if is_token(byte) && byte != b'%' {
            name.push(byte.to_ascii_lowercase());
        } else {
            name.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
    HeaderName::from_bytes(&name).map_err(|_| "extra")
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
