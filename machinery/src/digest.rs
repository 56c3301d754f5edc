//! The name of bytes by their content: documents and CA bundles go by it on both sides of the stream.

use aws_lc_rs::digest::{Context, SHA256, digest};

/// SHA-256, lower-case hex.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// SHA-256 as upstream's metrics name configurations: with the algorithm before it; empty for no bytes.
#[must_use]
pub fn sha256_label(bytes: &[u8]) -> String {
    if bytes.is_empty() { String::new() } else { format!("sha256:{}", sha256_hex(bytes)) }
}

/// How names begin that are not of the content but of all that it is made of: the same inputs give the same bytes, so
/// such a document need not be made to be named.
const MADE: &str = "made-";

/// The name of a document that is made when somebody asks for it, by everything that goes into it.
#[must_use]
pub fn made_of(inputs: &[&[u8]]) -> String {
    let mut context = Context::new(&SHA256);
    for input in inputs {
        context.update(&input.len().to_le_bytes());
        context.update(input);
    }
    format!("{MADE}{}", hex(context.finish().as_ref()))
}

/// Whether bytes may go by this name: those of its hash, and any where the name is of what they are made of.
#[must_use]
pub fn may_be(name: &str, bytes: &[u8]) -> bool {
    name.starts_with(MADE) || sha256_hex(bytes) == name
}

/// The digits of a name.
#[must_use]
pub fn digits(name: &str) -> &str {
    name.strip_prefix(MADE).unwrap_or(name)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_nothing_is_the_known_one() {
        assert_eq!(sha256_hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn names_are_of_the_content_or_of_what_it_is_made_of() {
        let made = made_of(&[b"a", b"bc"]);
        assert_ne!(made, made_of(&[b"ab", b"c"]));
        assert_eq!(digits(&made).len(), 64);
        assert!(may_be(&made, b"x") && may_be(&sha256_hex(b"x"), b"x") && !may_be(&sha256_hex(b"x"), b"y"));
    }
}
