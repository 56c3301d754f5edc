//! PEM: blocks as upstream's decoder finds them, and validation of the certificates and certificate requests in them.
//!
//! Errors have upstream's message where upstream writes it, else the message of the parser.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use portico_kit::pki::CertificateRequest;
use x509_parser::prelude::{FromDer, SubjectPublicKeyInfo, X509Certificate};

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// PEM block.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    label: String,
    has_headers: bool,
    der: Vec<u8>,
}

/// Reads a certificate request and checks its self-signature.
///
/// # Errors
/// The reason, as a human-readable message.
pub fn certificate_request(pem: &[u8]) -> Result<CertificateRequest, String> {
    let text = String::from_utf8_lossy(pem);
    let block = next_block(&text).map(|(block, _)| block).filter(|b| b.label == "CERTIFICATE REQUEST");
    let block = block.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    CertificateRequest::from_der(&block.der)
}

/// Requires at least one certificate, and no other blocks.
///
/// # Errors
/// The reason, as a human-readable message.
pub fn validate_certificates(pem: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(pem);
    let (mut rest, mut found) = (&*text, false);
    while let Some((block, after)) = next_block(rest) {
        if block.label != "CERTIFICATE" {
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {:?}", block.label));
        }
        if block.has_headers {
            return Err("no PEM block headers are permitted".to_owned());
        }
        if block.der.is_empty() {
            return Err("found CERTIFICATE PEM block containing 0 certificates".to_owned());
        }
        X509Certificate::from_der(&block.der).map_err(|e| format!("x509: {e}"))?;
        (rest, found) = (after, true);
    }
    if found { Ok(()) } else { Err("must contain at least one CERTIFICATE PEM block".to_owned()) }
}

/// Validates that a certificate matches a private key (Go's `tls.X509KeyPair`).
///
/// # Errors
/// The reason, with the message of Go's library.
pub fn key_pair(certificate: &[u8], key: &[u8]) -> Result<(), String> {
    let chain = first_certificate(&String::from_utf8_lossy(certificate))?;
    let key = first_private_key(&String::from_utf8_lossy(key))?;
    let (_, leaf) =
        X509Certificate::from_der(&chain).map_err(|_| "x509: malformed certificate".to_owned())?;
    match portico_kit::pki::public_key_of(&key) {
        None => Err("tls: failed to parse private key".to_owned()),
        Some(public) if public == leaf.public_key().raw => Ok(()),
        Some(public) => {
            let same_type = SubjectPublicKeyInfo::from_der(&public)
                .is_ok_and(|(_, public)| public.algorithm.algorithm == leaf.public_key().algorithm.algorithm);
            Err(if same_type {
                "tls: private key does not match public key".to_owned()
            } else {
                "tls: private key type does not match public key type".to_owned()
            })
        }
    }
}

/// Returns the first certificate of a text, DER-encoded.
fn first_certificate(mut text: &str) -> Result<Vec<u8>, String> {
    let mut skipped = Vec::new();
    while let Some((block, after)) = next_block(text) {
        if block.label == "CERTIFICATE" {
            return Ok(block.der);
        }
        skipped.push(block.label);
        text = after;
    }
    Err(match skipped.as_slice() {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        [one] if one.ends_with("PRIVATE KEY") => "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned(),
        _ => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]",
            skipped.join(" ")
        ),
    })
}

/// Returns the first private key of a text, DER-encoded.
fn first_private_key(mut text: &str) -> Result<Vec<u8>, String> {
    let mut skipped = Vec::new();
    while let Some((block, after)) = next_block(text) {
        if block.label == "PRIVATE KEY" || block.label.ends_with(" PRIVATE KEY") {
            return Ok(block.der);
        }
        skipped.push(block.label);
        text = after;
    }
    Err(match skipped.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [one] if one == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        _ => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
            skipped.join(" ")
        ),
    })
}

/// Returns the reason why a bundle contains no CA certificate, with the message of upstream's transport.
pub fn missing_authority_reason(pem: &[u8]) -> &'static str {
    let text = String::from_utf8_lossy(pem);
    let mut rest = &*text;
    while !rest.is_empty() {
        let Some((block, after)) = next_block(rest) else { return "unable to parse bytes as PEM block" };
        let certificate = block.label == "CERTIFICATE" && !block.has_headers;
        if certificate && X509Certificate::from_der(&block.der).is_err() {
            return "failed to parse certificate: x509: malformed certificate";
        }
        rest = after.strip_prefix('\n').unwrap_or(after);
    }
    "no valid certificate authority data seen"
}

/// Returns the next complete block and the text after it. Ignores text around blocks, and malformed blocks. Reads every byte a
/// constant number of times: the text may come from any client.
fn next_block(mut text: &str) -> Option<(Block, &str)> {
    const END: &str = "-----END ";
    loop {
        let (before, rest) = text.split_at(text.find(END)?);
        text = &rest[END.len()..];
        if let Some((label, inside)) = last_begin(before)
            && let Some(after) = text.strip_prefix(label).and_then(|rest| rest.strip_prefix("-----"))
            && let Some(block) = decode_block(label, inside)
        {
            return Some((block, after));
        }
    }
}

/// Returns the label of the last BEGIN line, and the text after that line.
fn last_begin(text: &str) -> Option<(&str, &str)> {
    const BEGIN: &str = "-----BEGIN ";
    let at = text.rfind(BEGIN).filter(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n')?;
    let (line, inside) = text[at + BEGIN.len()..].split_once('\n')?;
    Some((line.trim_end().strip_suffix("-----")?, inside))
}

fn decode_block(label: &str, inside: &str) -> Option<Block> {
    let headers = inside.lines().take_while(|line| line.contains(':')).count();
    let digits: String =
        inside.lines().skip(headers).flat_map(str::chars).filter(|c| !c.is_whitespace()).collect();
    let der = BASE64.decode(digits).ok()?;
    Some(Block { label: label.to_owned(), has_headers: headers > 0, der })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_malformed_blocks_are_read_in_linear_time() {
        let text = "-----BEGIN A-----\n".repeat(60_000) + "-----END B-----";
        assert_eq!(next_block(&text), None);
        let none = "tls: failed to find any PEM data in certificate input";
        assert_eq!(key_pair(text.as_bytes(), b"").unwrap_err(), none);
    }

    #[test]
    fn blocks_are_found_between_other_text_and_malformed_ones_are_ignored() {
        let text = "x\n-----BEGIN A-----\n!!\n-----END A-----\n-----BEGIN B-----\nk: v\n\nQUI=\n-----END B-----\nrest";
        let (block, after) = next_block(text).unwrap();
        assert_eq!(block, Block { label: "B".into(), has_headers: true, der: b"AB".to_vec() });
        assert_eq!(after, "\nrest");
        assert!(next_block(after).is_none());
        assert!(next_block("-----BEGIN ").is_none());
    }

    #[test]
    fn only_complete_certificates_without_headers_are_accepted() {
        for (pem, reason) in [
            ("foo", "must contain at least one CERTIFICATE PEM block"),
            (
                "-----BEGIN X-----\nQUI=\n-----END X-----\n",
                "only CERTIFICATE PEM blocks are allowed, found \"X\"",
            ),
            (
                "-----BEGIN CERTIFICATE-----\na: b\n\nQUI=\n-----END CERTIFICATE-----\n",
                "no PEM block headers are permitted",
            ),
            (
                "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
                "found CERTIFICATE PEM block containing 0 certificates",
            ),
        ] {
            assert_eq!(validate_certificates(pem.as_bytes()).unwrap_err(), reason, "{pem}");
        }
        assert!(
            validate_certificates(b"-----BEGIN CERTIFICATE-----\nQUI=\n-----END CERTIFICATE-----\n").is_err()
        );
    }

    #[test]
    fn the_reason_for_a_missing_authority_depends_on_the_bundle() {
        for (pem, reason) in [
            ("foo", "unable to parse bytes as PEM block"),
            ("-----BEGIN X-----\nQUI=\n-----END X-----\n", "no valid certificate authority data seen"),
            ("-----BEGIN X-----\nQUI=\n-----END X-----\nfoo", "unable to parse bytes as PEM block"),
            (
                "-----BEGIN CERTIFICATE-----\nQUI=\n-----END CERTIFICATE-----\n",
                "failed to parse certificate: x509: malformed certificate",
            ),
        ] {
            assert_eq!(missing_authority_reason(pem.as_bytes()), reason, "{pem}");
        }
    }

    #[test]
    fn only_certificate_requests_are_accepted() {
        let message = "PEM block type must be CERTIFICATE REQUEST";
        assert_eq!(certificate_request(b"foo").unwrap_err(), message);
        assert_eq!(
            certificate_request(b"-----BEGIN CERTIFICATE-----\nQUI=\n-----END CERTIFICATE-----\n")
                .unwrap_err(),
            message
        );
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in "(-----BEGIN |-----END |CERTIFICATE|-----|\n|QUI=|a: b|[a-z]){0,20}") {
            let _ = (certificate_request(bytes.as_bytes()), validate_certificates(bytes.as_bytes()));
        }
    }
}
