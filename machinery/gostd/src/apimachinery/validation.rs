//! `util/validation`: DNS labels and subdomains, qualified names, label values, path segments.
//!
//! Each function returns kube-apiserver's messages; an empty list means that the text is valid.
//!
//! ```
//! use portico_gostd::apimachinery::validation::dns1123_label;
//!
//! assert!(dns1123_label("my-name").is_empty());
//! assert_eq!(dns1123_label("My name").len(), 1);
//! ```

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;
/// Message for an invalid DNS-1123 label.
pub const DNS1123_LABEL_MESSAGE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
/// Message for a subdomain instead of a DNS-1123 label.
pub const NO_DOTS_MESSAGE: &str = "must not contain dots";
/// Message for an invalid DNS-1123 subdomain.
pub const DNS1123_SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
/// Message for an invalid DNS-1035 label.
pub const DNS1035_LABEL_MESSAGE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
/// Message for an invalid name of a qualified name.
pub const QUALIFIED_NAME_MESSAGE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
/// Message for an invalid label value.
pub const LABEL_VALUE_MESSAGE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn is_lower_alnum(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = |b: Option<&u8>| b.is_some_and(|b| is_lower_alnum(*b));
    ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(|b| is_lower_alnum(*b) || *b == b'-')
}

fn is_qualified_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn max_characters_message(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

fn max_bytes_message(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

/// Validates a DNS-1123 label (namespaces, port names).
#[must_use]
pub fn dns1123_label(text: &str) -> Vec<String> {
    let dots = text.contains('.') && text.split('.').all(is_dns_label);
    let message = if dots { NO_DOTS_MESSAGE } else { DNS1123_LABEL_MESSAGE };
    problems(text, LABEL_MAX, max_characters_message, is_dns_label(text), message)
}

/// Validates a DNS-1123 subdomain (most names, groups).
#[must_use]
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    subdomain(text, max_characters_message)
}

fn subdomain(text: &str, length_message: fn(usize) -> String) -> Vec<String> {
    let ok = text.split('.').all(is_dns_label);
    problems(text, SUBDOMAIN_MAX, length_message, ok, DNS1123_SUBDOMAIN_MESSAGE)
}

/// Validates a DNS-1035 label (API versions, older Service names).
#[must_use]
pub fn dns1035_label(text: &str) -> Vec<String> {
    let ok = is_dns_label(text) && text.as_bytes()[0].is_ascii_lowercase();
    problems(text, LABEL_MAX, max_characters_message, ok, DNS1035_LABEL_MESSAGE)
}

/// Validates a group followed by a resource, `apps.deployments`.
#[must_use]
pub fn group_and_resource(text: &str) -> Vec<String> {
    let Some((group, resource)) = text.rsplit_once('.') else {
        return vec!["name must be in the form of <group>.<resource>".to_owned()];
    };
    let of = |segment: &'static str| move |message: String| format!("the {segment} segment {message}");
    let group = dns1123_subdomain(group).into_iter().map(of("group"));
    group.chain(dns1035_label(resource).into_iter().map(of("resource"))).collect()
}

/// Validates a label value.
#[must_use]
pub fn label_value(text: &str) -> Vec<String> {
    problems(
        text,
        LABEL_MAX,
        max_bytes_message,
        text.is_empty() || is_qualified_word(text),
        LABEL_VALUE_MESSAGE,
    )
}

/// Validates a qualified name such as `example.com/role` (keys of labels and annotations, finalizers).
#[must_use]
pub fn qualified_name(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((_, rest)) if rest.contains('/') => {
            return vec![format!(
                "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    let mut messages = Vec::new();
    match prefix {
        Some("") => messages.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            // Upstream counts the subdomains of keys in bytes, and other ones in characters.
            let problems = subdomain(prefix, max_bytes_message).into_iter();
            messages.extend(problems.map(|m| format!("prefix part {m}")));
        }
        None => {}
    }
    if name.is_empty() {
        messages.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        messages.push(format!("name part {}", max_bytes_message(LABEL_MAX)));
    }
    if !is_qualified_word(name) {
        messages.push(QUALIFIED_NAME_MESSAGE.to_owned());
    }
    messages
}

/// Returns the messages for a text that is too long or malformed. Upstream's messages about the length of some texts mention
/// bytes, those of others characters (`length_message`); the number of bytes is compared in both cases.
fn problems(
    text: &str,
    limit: usize,
    length_message: fn(usize) -> String,
    well_formed: bool,
    message: &str,
) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > limit {
        messages.push(length_message(limit));
    }
    if !well_formed {
        messages.push(message.to_owned());
    }
    messages
}

/// Validates a name as a segment of a URL path.
#[must_use]
pub fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ['/', '%'].iter().filter(|c| name.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_of_a_key_is_counted_in_bytes() {
        let (long, part) = (format!("{}/b", "a".repeat(254)), "prefix part must be no more than 253 bytes");
        assert!(qualified_name(&long).contains(&part.to_owned()));
    }

    #[test]
    fn names_are_accepted_as_upstream_accepts_them() {
        for ok in ["a", "a-b", "1a", "a.b.c"] {
            assert_eq!(dns1123_subdomain(ok), Vec::<String>::new(), "{ok}");
        }
        for bad in ["", "-a", "a-", "A", "a..b", "a_b", &"a".repeat(254)] {
            assert!(!dns1123_subdomain(bad).is_empty(), "{bad}");
        }
        assert!(dns1035_label("1a").len() == 1 && dns1035_label("").len() == 1);
        for (text, ok) in [("a/b", true), ("A_b.c", true), ("/b", false), ("a/", false), ("a/b/c", false)] {
            assert_eq!(qualified_name(text).is_empty(), ok, "{text}");
        }
        assert_eq!(path_segment("a%b"), ["may not contain '%'"]);
        assert_eq!(path_segment(".."), ["may not be '..'"]);
    }
}
