//! Envelope (`runtime.Unknown`) around a message, and watch event around an envelope.

use std::borrow::Cow;

use super::reader::{Reader, WireError};
use super::writer::{Writer, delimiter};
use super::{ENVELOPE_TAIL, PREFIX};

/// Decoded envelope with undecoded content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// `apiVersion`, empty if the envelope does not contain it.
    pub api_version: Cow<'a, str>,
    /// `kind`, empty if the envelope does not contain it.
    pub kind: Cow<'a, str>,
    /// Encoded message.
    pub raw: &'a [u8],
}

/// Reason why bytes are not an enveloped document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// Empty input.
    #[error("empty data")]
    Empty,
    /// Input without the prefix.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// Input with only the prefix.
    #[error("empty body")]
    EmptyBody,
    /// Malformed message after the prefix.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// Decodes an envelope. Content encoding and content type are ignored, as in upstream.
///
/// # Errors
/// [`EnvelopeError`].
pub fn decode_envelope(bytes: &[u8]) -> Result<Envelope<'_>, EnvelopeError> {
    if bytes.is_empty() {
        return Err(EnvelopeError::Empty);
    }
    let body = bytes.strip_prefix(&PREFIX).ok_or(EnvelopeError::Prefix)?;
    if body.is_empty() {
        return Err(EnvelopeError::EmptyBody);
    }
    let mut envelope = Envelope::default();
    let mut reader = Reader::with_name("Unknown", body);
    let name =
        |number| ["typeMeta", "raw", "contentEncoding", "contentType"].get(number as usize - 1).copied();
    while let Some((number, scalar)) = reader.field_named(name)? {
        match number {
            1 => type_meta(scalar.bytes("typeMeta")?, &mut envelope)?,
            2 => envelope.raw = scalar.bytes("raw")?,
            3 => drop(scalar.bytes("contentEncoding")?),
            4 => drop(scalar.bytes("contentType")?),
            _ => {}
        }
    }
    Ok(envelope)
}

fn type_meta<'a>(bytes: &'a [u8], envelope: &mut Envelope<'a>) -> Result<(), WireError> {
    let mut reader = Reader::with_name("TypeMeta", bytes);
    let name = |number| ["aPIVersion", "kind"].get(number as usize - 1).copied();
    while let Some((number, scalar)) = reader.field_named(name)? {
        match number {
            1 => envelope.api_version = String::from_utf8_lossy(scalar.bytes("aPIVersion")?),
            2 => envelope.kind = String::from_utf8_lossy(scalar.bytes("kind")?),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the bytes before a message of this length; [`ENVELOPE_TAIL`] follows the message.
#[must_use]
pub fn envelope_head(api_version: &str, kind: &str, length: u64) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.raw(&PREFIX);
    writer.message(1, |w| {
        w.string(1, api_version);
        w.string(2, kind);
    });
    writer.raw(&delimiter(2, length));
    writer.into_bytes()
}

/// Encodes a message in an envelope.
#[must_use]
pub fn encode_envelope(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut out = envelope_head(api_version, kind, message.len() as u64);
    out.reserve_exact(message.len() + ENVELOPE_TAIL.len());
    out.extend_from_slice(message);
    out.extend_from_slice(&ENVELOPE_TAIL);
    out
}

/// Encodes a watch event: four bytes of length, and a `WatchEvent`, without a separate envelope, that contains an enveloped
/// document of the object.
#[must_use]
pub fn encode_event(event: &str, enveloped: &[u8]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.raw(&[0; 4]);
    writer.string(1, event);
    let inner = delimiter(1, enveloped.len() as u64);
    writer.raw(&delimiter(2, (inner.len() + enveloped.len()) as u64));
    writer.raw(&inner);
    writer.raw(enveloped);
    let mut out = writer.into_bytes();
    // Bodies and stored objects are far smaller than 4 GiB.
    let length = u32::try_from(out.len() - 4).unwrap_or(u32::MAX);
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_match_upstream() {
        let sealed = encode_envelope("v1", "ConfigMap", &[0x0a, 0]);
        let want = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x0a\0\x1a\0\x22\0";
        assert_eq!(sealed, want);
        let open = decode_envelope(&sealed).unwrap();
        assert_eq!((&*open.api_version, &*open.kind, open.raw), ("v1", "ConfigMap", &[0x0a, 0][..]));
    }

    #[test]
    fn invalid_envelopes_have_upstream_errors() {
        let rows: [(&[u8], &str); 4] = [
            (b"", "empty data"),
            (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
            (b"k8s\0", "empty body"),
            (b"k8s\0\x0a\xff", "unexpected EOF"),
        ];
        for (bytes, want) in rows {
            assert_eq!(decode_envelope(bytes).unwrap_err().to_string(), want);
        }
    }

    #[test]
    fn an_event_is_framed_by_its_length() {
        let frame = encode_event("ADDED", b"abc");
        assert_eq!(frame, b"\0\0\0\x0e\x0a\x05ADDED\x12\x05\x0a\x03abc");
    }
}
