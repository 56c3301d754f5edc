//! Encodes the DER of a certificate, field by field as Go's `x509.CreateCertificate` does.
//!
//! Does not depend on the key that signs.

use std::net::IpAddr;

use x509_parser::prelude::X509Certificate;
use yasna::models::ObjectIdentifier;
use yasna::tags::{TAG_GENERALIZEDTIME, TAG_UTCTIME};
use yasna::{DERWriter, DERWriterSeq, Tag, construct_der};

use super::certificate_request::CertificateRequest;

const KEY_USAGE: &[u64] = &[2, 5, 29, 15];
const EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37];
const BASIC_CONSTRAINTS: &[u64] = &[2, 5, 29, 19];
const AUTHORITY_KEY_IDENTIFIER: &[u64] = &[2, 5, 29, 35];
const ALTERNATIVE_NAMES: &[u64] = &[2, 5, 29, 17];
/// The only algorithm whose identifier has parameters: NULL.
const RSA_SHA256: &[u64] = &[1, 2, 840, 113_549, 1, 1, 11];

/// Usages and validity of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateTerms {
    /// Bits of the key usage extension, numbered as RFC 5280 does: bit 0 is digitalSignature.
    pub key_usage: u16,
    /// Extended key usages, in order.
    pub extended_key_usage: Vec<&'static [u64]>,
    /// Beginning of the validity, in Unix seconds.
    pub not_before: i64,
    /// End of the validity, in Unix seconds.
    pub not_after: i64,
}

/// Parts of a certificate to encode.
pub(super) struct CertificateParts<'a> {
    pub(super) request: &'a CertificateRequest,
    pub(super) terms: &'a CertificateTerms,
    pub(super) serial: &'a [u8],
    pub(super) issuer: &'a X509Certificate<'a>,
    pub(super) algorithm: &'a [u64],
}

/// Encodes the part of a certificate that is signed (TBSCertificate).
pub(super) fn encode_tbs(parts: &CertificateParts<'_>) -> Vec<u8> {
    let CertificateParts { request, terms, serial, issuer, algorithm } = parts;
    construct_der(|writer| {
        writer.write_sequence(|fields| {
            fields.next().write_tagged(Tag::context(0), |version| version.write_u8(2));
            fields.next().write_bigint_bytes(serial, true);
            write_algorithm(fields.next(), algorithm);
            fields.next().write_der(issuer.subject().as_raw());
            fields.next().write_sequence(|validity| {
                write_time(validity.next(), terms.not_before);
                write_time(validity.next(), terms.not_after);
            });
            write_subject(fields.next(), request);
            fields.next().write_der(&request.public_key);
            fields.next().write_tagged(Tag::context(3), |extensions| {
                extensions.write_sequence(|list| write_extensions(list, parts));
            });
        });
    })
}

/// Encodes a certificate: the signed part, the algorithm, and the signature.
pub(super) fn encode_certificate(tbs: &[u8], algorithm: &[u64], signature: &[u8]) -> Vec<u8> {
    construct_der(|writer| {
        writer.write_sequence(|fields| {
            fields.next().write_der(tbs);
            write_algorithm(fields.next(), algorithm);
            fields.next().write_bitvec_bytes(signature, signature.len() * 8);
        });
    })
}

fn write_algorithm(writer: DERWriter<'_>, algorithm: &[u64]) {
    writer.write_sequence(|fields| {
        fields.next().write_oid(&ObjectIdentifier::from_slice(algorithm));
        if algorithm == RSA_SHA256 {
            fields.next().write_null();
        }
    });
}

/// Writes UTCTime for the years 1950 to 2049, otherwise GeneralizedTime.
fn write_time(writer: DERWriter<'_>, seconds: i64) {
    let time = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
    let time = time.to_zoned(jiff::tz::TimeZone::UTC);
    let (tag, format) = match time.year() {
        1950..2050 => (TAG_UTCTIME, "%y%m%d%H%M%SZ"),
        _ => (TAG_GENERALIZEDTIME, "%Y%m%d%H%M%SZ"),
    };
    let text = time.strftime(format).to_string();
    writer.write_tagged_implicit(tag, |time| time.write_bytes(text.as_bytes()));
}

/// Writes the subject; each attribute is one set with all of its values.
fn write_subject(writer: DERWriter<'_>, request: &CertificateRequest) {
    writer.write_sequence(|names| {
        for (attribute, values) in &request.subject {
            names.next().write_set_of(|set| {
                for value in values {
                    set.next().write_sequence(|pair| {
                        pair.next().write_oid(&ObjectIdentifier::from_slice(&[2, 5, 4, *attribute]));
                        match value.bytes().all(is_printable) {
                            true => pair.next().write_printable_string(value),
                            false => pair.next().write_utf8_string(value),
                        }
                    });
                }
            });
        }
    });
}

/// True for characters of a PrintableString.
fn is_printable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte)
}

fn write_extensions(list: &mut DERWriterSeq<'_>, parts: &CertificateParts<'_>) {
    let CertificateParts { request, terms, issuer, .. } = parts;
    if terms.key_usage != 0 {
        write_extension(list.next(), KEY_USAGE, true, |value| write_key_usage(value, terms.key_usage));
    }
    if !terms.extended_key_usage.is_empty() {
        write_extension(list.next(), EXTENDED_KEY_USAGE, false, |value| {
            value.write_sequence(|usages| {
                for usage in &terms.extended_key_usage {
                    usages.next().write_oid(&ObjectIdentifier::from_slice(usage));
                }
            });
        });
    }
    write_extension(list.next(), BASIC_CONSTRAINTS, true, |value| value.write_sequence(|_| {}));
    if let Some(identifier) = key_identifier(issuer) {
        write_extension(list.next(), AUTHORITY_KEY_IDENTIFIER, false, |value| {
            value.write_sequence(|fields| {
                fields.next().write_tagged_implicit(Tag::context(0), |id| id.write_bytes(identifier));
            });
        });
    }
    let names = [
        request.dns_names.len(),
        request.email_addresses.len(),
        request.ip_addresses.len(),
        request.uris.len(),
    ];
    if names.iter().any(|count| *count > 0) {
        // Without a subject, only these names identify the certificate, so the extension is critical.
        let critical = request.subject.is_empty();
        write_extension(list.next(), ALTERNATIVE_NAMES, critical, |value| write_names(value, request));
    }
}

fn write_extension(writer: DERWriter<'_>, oid: &[u64], critical: bool, value: impl FnOnce(DERWriter<'_>)) {
    writer.write_sequence(|fields| {
        fields.next().write_oid(&ObjectIdentifier::from_slice(oid));
        if critical {
            fields.next().write_bool(true);
        }
        fields.next().write_bytes(&construct_der(value));
    });
}

/// Writes a bit string that ends with the last bit that is set.
fn write_key_usage(writer: DERWriter<'_>, usage: u16) {
    let bytes = usage.reverse_bits().to_be_bytes();
    let bits = usize::try_from(16 - usage.leading_zeros()).unwrap_or_default();
    writer.write_bitvec_bytes(&bytes[..bits.div_ceil(8)], bits);
}

fn key_identifier<'a>(issuer: &'a X509Certificate<'_>) -> Option<&'a [u8]> {
    issuer.iter_extensions().find_map(|extension| match extension.parsed_extension() {
        x509_parser::prelude::ParsedExtension::SubjectKeyIdentifier(identifier) => Some(identifier.0),
        _ => None,
    })
}

fn write_names(writer: DERWriter<'_>, request: &CertificateRequest) {
    let text = |list: &mut DERWriterSeq<'_>, tag: u64, names: &[String]| {
        for name in names {
            list.next().write_tagged_implicit(Tag::context(tag), |value| value.write_bytes(name.as_bytes()));
        }
    };
    writer.write_sequence(|list| {
        text(list, 2, &request.dns_names);
        text(list, 1, &request.email_addresses);
        for address in &request.ip_addresses {
            list.next().write_tagged_implicit(Tag::context(7), |value| match address {
                IpAddr::V4(address) => value.write_bytes(&address.octets()),
                IpAddr::V6(address) => value.write_bytes(&address.octets()),
            });
        }
        text(list, 6, &request.uris);
    });
}
