//! Encoding of values in the database: a format byte, then the content.

use crate::seal::StoredValue;

/// Format: plain JSON.
const PLAIN_JSON: u8 = 1;
/// Format: sealed JSON. The content starts with the prefix of the provider, like values of upstream.
pub(crate) const SEALED_JSON: u8 = 2;

/// Encodes a plain value for the database.
pub(crate) fn encode(json: &[u8]) -> Vec<u8> {
    with_format(PLAIN_JSON, json)
}

/// Encodes a sealed value for the database.
pub(crate) fn encode_sealed(sealed: &[u8]) -> Vec<u8> {
    with_format(SEALED_JSON, sealed)
}

fn with_format(format: u8, bytes: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(bytes.len() + 1);
    stored.push(format);
    stored.extend_from_slice(bytes);
    stored
}

/// Decodes a value from the database. Returns the reason if the format is not known.
pub(crate) fn decode(stored: &[u8]) -> Result<StoredValue<'_>, String> {
    match stored.split_first() {
        Some((&PLAIN_JSON, json)) => Ok(StoredValue::Plain(json)),
        Some((&SEALED_JSON, sealed)) => Ok(StoredValue::Sealed(sealed)),
        Some((format, _)) => Err(format!("unknown value format {format}")),
        None => Err("the value is empty".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_round_trip_and_unknown_formats_are_reported() {
        assert_eq!(decode(&encode(b"{}")), Ok(StoredValue::Plain(b"{}")));
        assert_eq!(decode(&encode_sealed(b"k8s:enc:")), Ok(StoredValue::Sealed(b"k8s:enc:")));
        assert_eq!(decode(&[9, 1]), Err("unknown value format 9".to_owned()));
        assert!(decode(&[]).is_err());
    }
}
