//! URLs as upstream's library reads them: more kindly than browsers do, and refused in its words.
//!
//! Only what validation looks at: no resolving, no normalising.

/// The parts of a URL, unescaped only where nothing was escaped.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Url<'a> {
    /// In lower case; empty for a reference without one.
    pub(crate) scheme: String,
    /// What stands before an `@`.
    pub(crate) user: Option<&'a str>,
    /// Host and port.
    pub(crate) host: &'a str,
    /// Without the question mark.
    pub(crate) query: &'a str,
    /// Without the hash.
    pub(crate) fragment: &'a str,
}

/// Reads a URL.
///
/// # Errors
/// Why not, as upstream says it.
pub(crate) fn parse(text: &str) -> Result<Url<'_>, String> {
    let (whole, fragment) = text.split_once('#').unwrap_or((text, ""));
    let refused = |why: String| format!("parse {whole:?}: {why}");
    let mut url = without_fragment(whole).map_err(refused)?;
    escapes(fragment).map_err(|why| format!("parse {text:?}: {why}"))?;
    url.fragment = fragment;
    Ok(url)
}

fn without_fragment(text: &str) -> Result<Url<'_>, String> {
    if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let (scheme, rest) = scheme(text)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url { scheme: scheme.to_ascii_lowercase(), query, ..Url::default() };
    if !rest.starts_with('/') {
        let first = rest.split('/').next().unwrap_or_default();
        // With a scheme, what follows is opaque: nobody looks into it.
        return match (scheme, first.contains(':')) {
            ("", true) => Err("first path segment in URL cannot contain colon".to_owned()),
            ("", false) => escapes(rest).map(|()| url),
            _ => Ok(url),
        };
    }
    let Some(rest) = rest.strip_prefix("//").filter(|more| !scheme.is_empty() || !more.starts_with('/'))
    else {
        return escapes(rest).map(|()| url);
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (url.user, url.host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    check_host(url.host)?;
    if !url
        .user
        .unwrap_or_default()
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c))
    {
        return Err("net/url: invalid userinfo".to_owned());
    }
    escapes(path)?;
    Ok(url)
}

/// The scheme, empty when there is none, and what follows the colon.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn check_host(host: &str) -> Result<(), String> {
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        &host[end + 1..]
    } else {
        host.rfind(':').map_or("", |at| &host[at..])
    };
    let digits = port.strip_prefix(':');
    if !(port.is_empty() || digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))) {
        return Err(format!("invalid port {port:?} after host"));
    }
    // What is not ASCII stands for itself.
    let strange =
        |c: &char| c.is_ascii() && !(c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(*c));
    match host.chars().find(strange) {
        Some(c) => Err(format!("invalid character {:?} in host name", c.to_string())),
        None => escapes(host).and_then(|()| only_foreign(host)),
    }
}

/// What is ASCII must not be escaped in a host.
fn only_foreign(host: &str) -> Result<(), String> {
    let escaped = host.match_indices('%').map(|(at, _)| &host[at..at + 3]);
    let mut plain = escaped.filter(|escape| escape.as_bytes()[1] < b'8' && *escape != "%25");
    plain.next().map_or(Ok(()), |escape| Err(format!("invalid URL escape {escape:?}")))
}

/// Each `%` begins two hexadecimal digits.
fn escapes(text: &str) -> Result<(), String> {
    for (at, _) in text.match_indices('%') {
        let digits = text.as_bytes().get(at + 1..at + 3);
        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            let shown: String = text[at..].chars().take(3).collect();
            return Err(format!("invalid URL escape {shown:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_falls_into_its_parts() {
        let url = parse("HTTPS://u:p@h.example:8443/a/b?q=1#f").unwrap();
        let want = Url {
            scheme: "https".into(),
            user: Some("u:p"),
            host: "h.example:8443",
            query: "q=1",
            fragment: "f",
        };
        assert_eq!(url, want);
        assert_eq!(parse("https:opaque").unwrap().host, "");
        assert_eq!(parse("/only/a/path").unwrap(), Url::default());
        assert_eq!(parse("https://[::1]:80/").unwrap().host, "[::1]:80");
    }

    #[test]
    fn what_is_no_url_is_refused_in_upstreams_words() {
        for (text, why) in [
            (":x", r#"parse ":x": missing protocol scheme"#),
            ("1http://a", r#"parse "1http://a": first path segment in URL cannot contain colon"#),
            ("https://a:b/", r#"parse "https://a:b/": invalid port ":b" after host"#),
            ("https://a b/", r#"parse "https://a b/": invalid character " " in host name"#),
            ("https://a/%zz", r#"parse "https://a/%zz": invalid URL escape "%zz""#),
            ("https://[::1/", r#"parse "https://[::1/": missing ']' in host"#),
            ("https://a b@c/", r#"parse "https://a b@c/": net/url: invalid userinfo"#),
            ("https://%41/", r#"parse "https://%41/": invalid URL escape "%41""#),
            ("a\nb", r#"parse "a\nb": net/url: invalid control character in URL"#),
        ] {
            assert_eq!(parse(text).unwrap_err(), why, "{text:?}");
        }
    }
}
