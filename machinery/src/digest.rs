//! Content hashes as identifiers: the configuration stream identifies documents and CA bundles by hash.

use aws_lc_rs::digest::{Context, SHA256, digest};

/// Returns the SHA-256 in lower-case hex.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// Returns the SHA-256 in the form of upstream's metrics, with the algorithm as a prefix. Empty for empty input.
#[must_use]
pub fn sha256_label(bytes: &[u8]) -> String {
    if bytes.is_empty() { String::new() } else { format!("sha256:{}", sha256_hex(bytes)) }
}

/// Prefix of identifiers that are hashes of a document's inputs instead of its content: equal inputs produce equal documents,
/// so the document need not be built to compute its identifier.
const INPUTS_PREFIX: &str = "made-";

/// Returns the identifier of a document that is built on demand from these inputs.
#[must_use]
pub fn id_of_inputs(inputs: &[&[u8]]) -> String {
    let mut context = Context::new(&SHA256);
    for input in inputs {
        context.update(&input.len().to_le_bytes());
        context.update(input);
    }
    format!("{INPUTS_PREFIX}{}", hex(context.finish().as_ref()))
}

/// True if bytes can have this identifier: the hash matches, or the identifier is a hash of inputs and cannot be checked.
#[must_use]
pub fn can_identify(name: &str, bytes: &[u8]) -> bool {
    name.starts_with(INPUTS_PREFIX) || sha256_hex(bytes) == name
}

/// Returns the hexadecimal digits of an identifier.
#[must_use]
pub fn digits(name: &str) -> &str {
    name.strip_prefix(INPUTS_PREFIX).unwrap_or(name)
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
    fn the_hash_of_empty_input_is_known() {
        assert_eq!(sha256_hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn ids_are_hashes_of_content_or_of_inputs() {
        let id = id_of_inputs(&[b"a", b"bc"]);
        assert_ne!(id, id_of_inputs(&[b"ab", b"c"]));
        assert_eq!(digits(&id).len(), 64);
        assert!(
            can_identify(&id, b"x")
                && can_identify(&sha256_hex(b"x"), b"x")
                && !can_identify(&sha256_hex(b"x"), b"y")
        );
    }
}
