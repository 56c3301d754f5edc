//! How a value stands in the database: a format byte, then the bytes. Later formats (encryption) get other bytes.

/// JSON as it is.
const PLAIN_JSON: u8 = 1;

/// A value's bytes for the database.
pub(crate) fn encode(json: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(json.len() + 1);
    stored.push(PLAIN_JSON);
    stored.extend_from_slice(json);
    stored
}

/// The JSON of a value from the database, or what is wrong with it.
pub(crate) fn decode(stored: &[u8]) -> Result<&[u8], String> {
    match stored.split_first() {
        Some((&PLAIN_JSON, json)) => Ok(json),
        Some((format, _)) => Err(format!("unknown value format {format}")),
        None => Err("the value is empty".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_unknown_formats_are_named() {
        assert_eq!(decode(&encode(b"{}")), Ok(&b"{}"[..]));
        assert_eq!(decode(&[9, 1]), Err("unknown value format 9".to_owned()));
        assert!(decode(&[]).is_err());
    }
}
