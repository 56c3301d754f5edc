//! References of container images, as far as validation and the default pull policy need them.

use portico_machinery::Cursor;

use crate::Errors;

/// Validates the image of a container in a pod: no leading or trailing whitespace. Templates are exempt.
pub fn image_without_padding(container: &Cursor<'_>, errors: &mut Errors) {
    let image = container.field("image");
    if image.str().trim() != image.str() {
        errors.push(image.invalid("must not have leading or trailing whitespace"));
    }
}

/// Returns the default pull policy: `Always` for the tag `latest` and for a reference without tag and digest.
pub fn pull_policy(image: &str) -> &'static str {
    match tag(image) {
        Some(Some("latest")) => "Always",
        _ => "IfNotPresent",
    }
}

/// Returns the tag of a reference: `latest` if it has neither tag nor digest. The outer `None` is an invalid reference.
fn tag(image: &str) -> Option<Option<&str>> {
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    if !is_name(name) || tag.is_some_and(|tag| !is_tag(tag)) || digest.is_some_and(|d| !is_digest(d)) {
        return None;
    }
    Some(match (tag, digest) {
        (None, None) => Some("latest"),
        (tag, _) => tag,
    })
}

/// True for `[domain[:port]/]path` with path components in lower case.
fn is_name(name: &str) -> bool {
    let (domain, path) = match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" || has_upper(first) => {
            (Some(first), rest)
        }
        _ => (None, name),
    };
    domain.is_none_or(is_domain) && path.split('/').all(is_component) && name.len() <= 255
}

fn has_upper(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_uppercase())
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = domain.split_once(':').unwrap_or((domain, "1"));
    let host_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    host.split('.').all(host_part) && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
}

/// True for lower-case words joined by one `.`, one or two `_`, or any number of `-`.
fn is_component(component: &str) -> bool {
    let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = component.as_bytes();
    bytes.first().is_some_and(|b| word(*b))
        && bytes.last().is_some_and(|b| word(*b))
        && component
            .split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            .all(|joint| matches!(joint, "" | "." | "_" | "__") || joint.bytes().all(|b| b == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= 128
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|b| word(b) || matches!(b, b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, hex)| {
        !algorithm.is_empty() && hex.len() >= 32 && hex.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::pull_policy;

    #[test]
    fn only_latest_and_untagged_images_are_always_pulled() {
        for image in ["nginx", "nginx:latest", "a.b/c", "localhost:5000/x/y", "localhost:5000/x:latest"] {
            assert_eq!(pull_policy(image), "Always", "{image}");
        }
        let digest = format!("app@sha256:{}", "a".repeat(64));
        for image in ["nginx:1.27", "B:latest", " ", ":", "", "a..b", "a//b", &digest] {
            assert_eq!(pull_policy(image), "IfNotPresent", "{image}");
        }
    }
}
