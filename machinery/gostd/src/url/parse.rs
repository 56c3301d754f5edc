//! `url.Parse`, `url.ParseRequestURI` and `URL.String`.

use std::net::IpAddr;

use super::part::{Part, escape, is_escaped, unescape};
use crate::netip::parse_address;
use crate::strconv::quote;

/// Parsed URL.
#[derive(Clone, Debug, Default)]
pub struct Url {
    /// Scheme in lower case.
    pub scheme: String,
    opaque: String,
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    host: Vec<u8>,
    path: Vec<u8>,
    raw_path: String,
    query: String,
    /// True if the URL ends with `?` without a query.
    bare_query: bool,
    /// True if an absolute path follows the scheme without `//`.
    omit_host: bool,
    fragment: Vec<u8>,
    raw_fragment: String,
}

/// Checks that a text is an absolute URI or an absolute path, like `url.ParseRequestURI`.
///
/// # Errors
/// Go's message: `parse "x": invalid URI for request`.
pub fn check_request_uri(text: &str) -> Result<(), String> {
    parse(text, true).map(|_| ()).map_err(|reason| format!("parse {}: {reason}", quote(text)))
}

impl Url {
    /// Parses an absolute URI or an absolute path (`url.ParseRequestURI`).
    ///
    /// # Errors
    /// Go's message.
    pub fn parse(text: &str) -> Result<Self, String> {
        check_request_uri(text)?;
        Self::read(text)
    }

    /// Parses a URL, which may be relative (`url.Parse`).
    ///
    /// # Errors
    /// Go's message: `parse ":x": missing protocol scheme`.
    pub fn read(text: &str) -> Result<Self, String> {
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = parse(before, false).map_err(|reason| format!("parse {}: {reason}", quote(before)))?;
        url.fragment = unescape(fragment, Part::Fragment)
            .map_err(|reason| format!("parse {}: {reason}", quote(text)))?;
        if escape(&url.fragment, Part::Fragment) != fragment {
            fragment.clone_into(&mut url.raw_fragment);
        }
        Ok(url)
    }

    /// Returns the size of all parts, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let user = |(name, password): &(Vec<u8>, Option<Vec<u8>>)| {
            name.len() + password.as_ref().map_or(0, Vec::len)
        };
        let texts = [&self.scheme, &self.opaque, &self.raw_path, &self.query, &self.raw_fragment];
        let bytes = [&self.host, &self.path, &self.fragment];
        texts.map(String::len).into_iter().sum::<usize>()
            + bytes.map(Vec::len).into_iter().sum::<usize>()
            + self.user.as_ref().map_or(0, user)
    }

    /// Returns the host with its port.
    #[must_use]
    pub fn host(&self) -> String {
        decode_lossy(&self.host)
    }

    /// Returns the user information before the host, `name:password`, if there is any.
    #[must_use]
    pub fn user(&self) -> Option<String> {
        let (name, password) = self.user.as_ref()?;
        let name = escape(name, Part::UserPassword);
        Some(match password {
            Some(password) => format!("{name}:{}", escape(password, Part::UserPassword)),
            None => name,
        })
    }

    /// Returns the raw query after the question mark.
    #[must_use]
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Returns the fragment after the hash.
    #[must_use]
    pub fn fragment(&self) -> String {
        decode_lossy(&self.fragment)
    }

    /// Returns the host without port and brackets.
    #[must_use]
    pub fn hostname(&self) -> String {
        let host = self.host();
        let (name, _) = split_port(&host);
        name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name).to_owned()
    }

    /// Returns the port, or an empty string.
    #[must_use]
    pub fn port(&self) -> String {
        split_port(&self.host()).1.to_owned()
    }

    /// Returns the path as it was written if its encoding is valid, otherwise encoded by Go's rules.
    #[must_use]
    pub fn escaped_path(&self) -> String {
        if !self.raw_path.is_empty() && is_escaped(&self.raw_path, Part::Path) {
            return self.raw_path.clone();
        }
        if self.path == b"*" { "*".to_owned() } else { escape(&self.path, Part::Path) }
    }

    fn set_path(&mut self, path: &str) -> Result<(), String> {
        self.path = unescape(path, Part::Path)?;
        if escape(&self.path, Part::Path) != path {
            path.clone_into(&mut self.raw_path);
        }
        Ok(())
    }

    fn set_authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        self.host = host_bytes(&self.scheme, host)?;
        let Some(user) = user else { return Ok(()) };
        if !user.chars().all(|c| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c)) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) =
            user.split_once(':').map_or((user, None), |(name, secret)| (name, Some(secret)));
        let plain = |text| unescape(text, Part::UserPassword);
        self.user = Some((plain(name)?, password.map(plain).transpose()?));
        Ok(())
    }
}

fn decode_lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn split_port(host: &str) -> (&str, &str) {
    match host.rfind(':') {
        Some(colon) if is_port(&host[colon..]) => (&host[..colon], &host[colon + 1..]),
        _ => (host, ""),
    }
}

/// Returns the scheme and the text after its colon.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// Parses a URL without its fragment. With `request`, only absolute URIs and paths are valid.
fn parse(text: &str, request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.bare_query = text.ends_with('?') && query.is_empty();
    query.clone_into(&mut url.query);
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_authority = !url.scheme.is_empty() || (!request && !rest.starts_with("///"));
    if let Some(authority) = rest.strip_prefix("//").filter(|_| has_authority) {
        let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
        url.set_authority(authority)?;
        rest = path;
    } else {
        url.omit_host = !url.scheme.is_empty() && rest.starts_with('/');
    }
    url.set_path(rest)?;
    Ok(url)
}

fn host_bytes(scheme: &str, host: &str) -> Result<Vec<u8>, String> {
    let bad_port = |port: &str| Err(format!("invalid port {} after host", quote(port)));
    match host.rfind('[') {
        Some(0) => {
            let close = host.rfind(']').ok_or("missing ']' in host")?;
            let port = &host[close + 1..];
            if !is_port(port) {
                return bad_port(port);
            }
            let literal = literal(&host[1..close])?;
            return Ok([b"[", &*literal, b"]", port.as_bytes()].concat());
        }
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // Hosts of other schemes, such as lists of database hosts, may contain several colons.
    let strict = matches!(scheme, "http" | "https");
    let port = if strict { host.find(':') } else { host.rfind(':') };
    if let Some(port) = port.map(|at| &host[at..]).filter(|port| !is_port(port)) {
        return bad_port(port);
    }
    unescape(host, Part::Host)
}

/// Parses a host in brackets: an IPv6 address with an optional zone.
fn literal(text: &str) -> Result<Vec<u8>, String> {
    let literal = match text.find("%25") {
        Some(zone) => [unescape(&text[..zone], Part::Host)?, unescape(&text[zone..], Part::Zone)?].concat(),
        None => unescape(text, Part::Host)?,
    };
    let address = decode_lossy(&literal);
    match parse_address(&address).map_err(|error| format!("invalid host: {error}"))?.ip {
        IpAddr::V4(_) => Err("invalid IP-literal".to_owned()),
        IpAddr::V6(_) => Ok(literal),
    }
}

/// Formats the URL like Go.
impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            self.hierarchy(f)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if self.bare_query || !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if self.fragment.is_empty() {
            return Ok(());
        }
        let written = !self.raw_fragment.is_empty() && is_escaped(&self.raw_fragment, Part::Fragment);
        let text = if written { self.raw_fragment.clone() } else { escape(&self.fragment, Part::Fragment) };
        write!(f, "#{text}")
    }
}

impl Url {
    fn hierarchy(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_authority = !self.host.is_empty() || self.user.is_some();
        let path = self.escaped_path();
        let slashes = has_authority || (!self.scheme.is_empty() && !self.omit_host && !self.path.is_empty());
        if slashes {
            f.write_str("//")?;
        }
        if let Some(user) = self.user() {
            write!(f, "{user}@")?;
        }
        f.write_str(&escape(&self.host, Part::Host))?;
        if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
            f.write_str("/")?;
        }
        f.write_str(&path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_and_printed() {
        for (text, host, hostname, port, path) in [
            (
                "https://user:pass@example.com:80/path?query=val#fragment",
                "example.com:80",
                "example.com",
                "80",
                "/path",
            ),
            ("/absolute-path", "", "", "", "/absolute-path"),
            ("https://[::1]:80/", "[::1]:80", "::1", "80", "/"),
            ("https://[fe80::1%25en0]/", "[fe80::1%en0]", "fe80::1%en0", "", "/"),
            (
                "https://example.com/path with spaces/",
                "example.com",
                "example.com",
                "",
                "/path%20with%20spaces/",
            ),
            ("https://example.com/a%2Fb", "example.com", "example.com", "", "/a%2Fb"),
            ("https://example.com", "example.com", "example.com", "", ""),
            ("mailto:a@b.c", "", "", "", ""),
            ("file:///etc", "", "", "", "/etc"),
            ("postgres://a:1,b:2/x", "a:1,b:2", "a:1,b", "2", "/x"),
        ] {
            let url = Url::parse(text).unwrap();
            let got = (url.host(), url.hostname(), url.port(), url.escaped_path());
            assert_eq!(got, (host.into(), hostname.into(), port.into(), path.into()), "{text}");
            assert_eq!(Url::parse(&url.to_string()).unwrap().to_string(), url.to_string(), "{text}");
        }
        assert_eq!(Url::parse("HTTP://a/b c?d#e f").unwrap().to_string(), "http://a/b%20c?d#e%20f");
    }

    #[test]
    fn a_malformed_url_is_refused() {
        for (text, want) in [
            ("", "empty url"),
            ("../relative-path", "invalid URI for request"),
            (":foo", "missing protocol scheme"),
            ("https://a:b:c/", "invalid port \":b:c\" after host"),
            ("https://a:b/", "invalid port \":b\" after host"),
            ("http://a b/", "invalid character \" \" in host name"),
            ("http://%41/", "invalid URL escape \"%41\""),
            ("/%zz", "invalid URL escape \"%zz\""),
            ("/%", "invalid URL escape \"%\""),
            ("http://[::1", "missing ']' in host"),
            ("http://[1.2.3.4]/", "invalid IP-literal"),
            ("http://x[::1]/", "invalid IP-literal"),
            (
                "http://[::g]/",
                "invalid host: ParseAddr(\"::g\"): each colon-separated field must have at least one digit (at \"g\")",
            ),
            ("http://u ser@a/", "net/url: invalid userinfo"),
            ("/a\u{7f}", "net/url: invalid control character in URL"),
        ] {
            assert_eq!(check_request_uri(text), Err(format!("parse {}: {want}", quote(text))), "{text}");
        }
        let relative = "parse \"1http://a\": first path segment in URL cannot contain colon";
        assert_eq!(Url::read("1http://a").unwrap_err(), relative);
        let url = Url::read("//u:p@h/a?q#f").unwrap();
        let parts = (url.user(), url.host(), url.query(), url.fragment());
        assert_eq!(parts, (Some("u:p".into()), "h".into(), "q", "f".into()));
    }

    #[test]
    fn request_uris_read_and_print_as_recorded() {
        let rows = include_str!("../../testdata/request_uris.jsonl").lines();
        let mut count = 0;
        for row in rows {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            let text = row["text"].as_str().unwrap();
            let refused = check_request_uri(text).err();
            assert_eq!(refused.as_deref(), row["error"].as_str(), "{row}");
            if let Some(printed) = row["printed"].as_str() {
                assert_eq!(parse(text, true).unwrap().to_string(), printed, "{row}");
            }
            count += 1;
        }
        assert!(count > 500, "{count} rows");
    }
}
