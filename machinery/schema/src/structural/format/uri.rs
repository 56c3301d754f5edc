//! The format `uri`: an absolute URI or an absolute path, as Go's `ParseRequestURI` takes them.

use std::net::Ipv6Addr;

use portico_gostd::url::escapes_are_whole;

pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = scheme(text) else { return false };
    let path = rest.split('?').next().unwrap_or(rest);
    if !path.starts_with('/') {
        // What follows a scheme and is no path is opaque.
        return !scheme.is_empty();
    }
    let authority = path.strip_prefix("//").filter(|_| !scheme.is_empty());
    match authority {
        None => escapes_are_whole(path),
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            is_authority(scheme, authority) && escapes_are_whole(path)
        }
    }
}

/// The scheme, which may be empty, and what follows it; nothing when a colon stands where no scheme ends.
fn scheme(text: &str) -> Option<(&str, &str)> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return None,
            b':' => return Some((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(scheme: &str, text: &str) -> bool {
    let (user, host) = text.rsplit_once('@').map_or(("", text), |(user, host)| (user, host));
    let in_user = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
    user.bytes().all(in_user) && escapes_are_whole(user) && is_host(scheme, host)
}

fn is_host(scheme: &str, host: &str) -> bool {
    match host.rfind('[') {
        Some(0) => {
            let Some((inside, port)) = host[1..].rsplit_once(']') else { return false };
            let address = inside.split("%25").next().unwrap_or(inside);
            is_port(port) && escapes_are_whole(inside) && address.parse::<Ipv6Addr>().is_ok()
        }
        Some(_) => false,
        None => {
            let strict = scheme == "http" || scheme == "https";
            let colon = if strict { host.find(':') } else { host.rfind(':') };
            colon.is_none_or(|at| is_port(&host[at..])) && host_bytes_fit(host)
        }
    }
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

/// Only what hosts may hold; escapes only of what is not ASCII.
fn host_bytes_fit(host: &str) -> bool {
    let plain = |b: u8| b >= 0x80 || b.is_ascii_alphanumeric() || b"!$&'()*+,;=:[]<>\"-_.~%".contains(&b);
    let escapes = host.bytes().enumerate().filter(|(_, b)| *b == b'%');
    let mut escaped = escapes.map(|(at, _)| host.as_bytes().get(at + 1).copied().unwrap_or(b'0'));
    host.bytes().all(plain)
        && escapes_are_whole(host)
        && escaped.all(|digit| char::from(digit).to_digit(16).is_some_and(|digit| digit >= 8))
}
