//! Entity tags of documents.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA512, digest};

/// Returns the quoted upper-case hex SHA-512, as upstream's tags.
pub(crate) fn quoted_sha512(bytes: &[u8]) -> String {
    let mut tag = String::with_capacity(130);
    tag.push('"');
    for byte in digest(&SHA512, bytes).as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(tag, "{byte:02X}");
    }
    tag.push('"');
    tag
}
