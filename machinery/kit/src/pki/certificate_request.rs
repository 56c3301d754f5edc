//! Parser of certificate signing requests (PKCS#10), equivalent to Go's `x509.ParseCertificateRequest`.
//!
//! Does not decide what is granted: the signer does, based on the parts of the request.

use std::net::IpAddr;

use x509_parser::asn1_rs::Tag;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509CertificationRequest};
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// Subject attributes that are copied to a certificate, as the last part of an OID below 2.5.4, in the order in which
/// `pkix.Name.ToRDNSequence` writes them.
const ATTRIBUTES: [u64; 9] = [6, 8, 7, 9, 17, ORGANIZATION, 11, COMMON_NAME, SERIAL_NUMBER];
const ORGANIZATION: u64 = 10;
const COMMON_NAME: u64 = 3;
const SERIAL_NUMBER: u64 = 5;

/// Attributes of a subject: the last part of each OID below 2.5.4, and its values.
pub(super) type Subject = Vec<(u64, Vec<String>)>;

/// Certificate request that is signed with its own key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRequest {
    /// Subject attributes in the order of a certificate; attributes without values are omitted.
    pub(super) subject: Subject,
    /// Requested DNS names.
    pub dns_names: Vec<String>,
    /// Requested email addresses.
    pub email_addresses: Vec<String>,
    /// Requested IP addresses.
    pub ip_addresses: Vec<IpAddr>,
    /// Requested URIs.
    pub uris: Vec<String>,
    /// Public key (SubjectPublicKeyInfo, DER).
    pub(super) public_key: Vec<u8>,
}

impl CertificateRequest {
    /// Parses DER and verifies the signature of the request.
    ///
    /// # Errors
    /// Returns a message for users.
    pub fn from_der(der: &[u8]) -> Result<Self, String> {
        let (rest, request) = X509CertificationRequest::from_der(der).map_err(|e| format!("x509: {e}"))?;
        if !rest.is_empty() {
            return Err("x509: trailing data after the certificate request".to_owned());
        }
        request
            .verify_signature()
            .map_err(|_| "x509: the request is not signed with its own key".to_owned())?;
        let info = &request.certification_request_info;
        let mut read = Self {
            subject: subject(&info.subject)?,
            dns_names: Vec::new(),
            email_addresses: Vec::new(),
            ip_addresses: Vec::new(),
            uris: Vec::new(),
            public_key: info.subject_pki.raw.to_vec(),
        };
        for extension in request.requested_extensions().into_iter().flatten() {
            if let ParsedExtension::SubjectAlternativeName(names) = extension {
                names.general_names.iter().try_for_each(|name| read.add(name))?;
            }
        }
        Ok(read)
    }

    /// Returns the common name of the subject: the last one if there are several, an empty string if there is none.
    #[must_use]
    pub fn common_name(&self) -> &str {
        self.values(COMMON_NAME).first().map_or("", String::as_str)
    }

    /// Returns the organizations of the subject.
    #[must_use]
    pub fn organizations(&self) -> &[String] {
        self.values(ORGANIZATION)
    }

    fn values(&self, attribute: u64) -> &[String] {
        self.subject.iter().find(|(part, _)| *part == attribute).map_or(&[], |(_, values)| values)
    }

    fn add(&mut self, name: &GeneralName<'_>) -> Result<(), String> {
        match name {
            GeneralName::DNSName(name) => self.dns_names.push(ia5_string(name, "dNSName")?),
            GeneralName::RFC822Name(address) => self.email_addresses.push(ia5_string(address, "rfc822Name")?),
            GeneralName::URI(uri) => self.uris.push(ia5_string(uri, "uniformResourceIdentifier")?),
            GeneralName::IPAddress(bytes) => self.ip_addresses.push(address(bytes)?),
            GeneralName::Invalid(..) => return Err("x509: invalid subject alternative name".to_owned()),
            // Names of other kinds are not copied.
            _ => {}
        }
        Ok(())
    }
}

pub(super) fn address(bytes: &[u8]) -> Result<IpAddr, String> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .map_err(|_| format!("x509: cannot parse IP address of length {}", bytes.len()))
}

/// Returns a name that is a valid IA5String, the type with which the certificate will contain it.
fn ia5_string(name: &str, kind: &str) -> Result<String, String> {
    if name.is_ascii() { Ok(name.to_owned()) } else { Err(format!("x509: SAN {kind} is malformed")) }
}

/// Returns the subject attributes that are copied.
///
/// # Errors
/// A value has an unsupported encoding: without the value, the certificate would have another subject.
fn subject(name: &X509Name<'_>) -> Result<Subject, String> {
    let values = |attribute: u64| -> Result<Vec<String>, String> {
        let of_type = |value: &&AttributeTypeAndValue<'_>| {
            value.attr_type().iter().is_some_and(|parts| parts.eq([2, 5, 4, attribute]))
        };
        let mut values: Vec<String> =
            name.iter_attributes().filter(of_type).map(attribute_text).collect::<Result<_, _>>()?;
        if matches!(attribute, COMMON_NAME | SERIAL_NUMBER) && values.len() > 1 {
            values.drain(..values.len() - 1);
        }
        Ok(values)
    };
    let mut subject = Subject::new();
    for attribute in ATTRIBUTES {
        let values = values(attribute)?;
        // An empty common name counts as absent.
        if values.iter().any(|value| !value.is_empty()) {
            subject.push((attribute, values));
        }
    }
    Ok(subject)
}

/// Returns the text of a value, in any of the encodings that Go supports.
fn attribute_text(value: &AttributeTypeAndValue<'_>) -> Result<String, String> {
    let unreadable = || "x509: failed to parse subject: unsupported encoding of a value".to_owned();
    let bytes = value.as_slice();
    match value.attr_value().tag() {
        Tag::T61String => Ok(bytes.iter().copied().map(char::from).collect()),
        Tag::BmpString => {
            let units: Vec<u16> =
                bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
            String::from_utf16(&units).map_err(|_| unreadable())
        }
        _ => value.as_str().map(str::to_owned).map_err(|_| unreadable()),
    }
}
