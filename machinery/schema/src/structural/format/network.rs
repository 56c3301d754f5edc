//! Formats of network names and addresses. Leading zeros in IPv4 addresses are accepted where upstream accepts them.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

/// Maximum bytes of a host name and of one of its labels.
const HOSTNAME_MAX: usize = 255;
const LABEL_MAX: usize = 63;

/// A single label, or labels with dots, the last of letters only. Letters and symbols of any script are accepted.
static HOSTNAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let any = r"[a-zA-Z0-9\p{S}\p{L}]";
    let dashed = r"[a-zA-Z0-9\-\p{S}\p{L}]";
    let single = format!("{any}(?:-?{any}{{0,62}})?");
    let labels = format!(r"(?:{any}(?:{dashed}{{0,61}}{any})?\.)+[a-zA-Z\p{{L}}]{{2,63}}");
    Regex::new(&format!("^(?:{single}|{labels})$")).ok()
});

pub(super) fn is_hostname(text: &str) -> bool {
    text.len() <= HOSTNAME_MAX
        && text.split('.').all(|label| label.len() <= LABEL_MAX)
        && HOSTNAME.as_ref().is_some_and(|regex| regex.is_match(text))
}

/// Parses an address like Go's older parser.
fn parse_lenient(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        let Some((head, v4)) = text.rsplit_once(':').filter(|(_, tail)| tail.contains('.')) else {
            return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
        };
        let [a, b, c, d] = parse_ipv4(v4)?;
        return format!("{head}:{a}.{b}.{c}.{d}").parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    parse_ipv4(text).map(IpAddr::from)
}

/// Parses four decimal numbers, which may have leading zeros.
fn parse_ipv4(text: &str) -> Option<[u8; 4]> {
    let mut parts = text.split('.');
    let mut next = || {
        let part = parts.next()?;
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        digits
            .then(|| part.trim_start_matches('0'))
            .and_then(|part| if part.is_empty() { Some(0) } else { part.parse().ok() })
    };
    let quad = [next()?, next()?, next()?, next()?];
    parts.next().is_none().then_some(quad)
}

pub(super) fn is_ipv4(text: &str) -> bool {
    text.contains('.') && parse_lenient(text).is_some()
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let max_bits = match parse_lenient(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
    digits && length.parse::<u32>().is_ok_and(|length| length <= max_bits)
}

/// True for 6, 8 or 20 bytes: `01:23:…`, `01-23-…`, `0123.4567.…`, or digits without separators.
pub(super) fn is_mac(text: &str) -> bool {
    let groups = |separator: char, digits: usize, counts: &[usize]| {
        let groups: Vec<&str> = text.split(separator).collect();
        let hex = |group: &&str| group.len() == digits && group.bytes().all(|b| b.is_ascii_hexdigit());
        counts.contains(&groups.len()) && groups.iter().all(hex)
    };
    let plain = matches!(text.len(), 12 | 16 | 40) && text.bytes().all(|b| b.is_ascii_hexdigit());
    plain || groups(':', 2, &[6, 8, 20]) || groups('-', 2, &[6, 8, 20]) || groups('.', 4, &[3, 4, 10])
}
