//! User that a client certificate names: CN, each O, the uid, and the credential ID.

use std::collections::BTreeMap;

use portico_machinery::UserInfo;
use portico_machinery::digest::sha256_hex;
use x509_parser::asn1_rs::Tag;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::AttributeTypeAndValue;

use super::error::AuthnError;

/// Attribute of a subject that contains the user's uid.
const UID_OID: &str = "1.3.6.1.4.1.57683.2";
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Contents of a leaf certificate that describe its owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subject {
    /// Last CN of the subject; may be empty.
    pub common_name: String,
    /// Each O of the subject, in order.
    pub organizations: Vec<String>,
    /// Values of the uid attribute.
    uids: Vec<String>,
    /// Credential ID, `X509SHA256=<hex of the leaf>`.
    credential_id: String,
    /// End of the validity, in seconds since the epoch.
    pub not_after: i64,
}

impl Subject {
    /// Parses a leaf certificate.
    pub(super) fn parse(der: &[u8]) -> Result<Self, AuthnError> {
        let (_, certificate) = X509Certificate::from_der(der)
            .map_err(|_| AuthnError::Certificate("malformed certificate".to_owned()))?;
        let name = certificate.subject();
        let uids = name.iter_attributes().filter(|a| a.attr_type().to_id_string() == UID_OID);
        Ok(Self {
            common_name: attribute_texts(name.iter_common_name())?.pop().unwrap_or_default(),
            organizations: attribute_texts(name.iter_organization())?,
            uids: attribute_texts(uids)?,
            credential_id: credential_id(der),
            not_after: certificate.validity().not_after.timestamp(),
        })
    }
}

/// Returns the values of attributes. Fails if one cannot be decoded, because the certificate would then name another user.
fn attribute_texts<'a, 'b: 'a>(
    values: impl Iterator<Item = &'a AttributeTypeAndValue<'b>>,
) -> Result<Vec<String>, AuthnError> {
    let unreadable =
        || AuthnError::Certificate("the certificate contains a name with an unsupported encoding".to_owned());
    values.map(|value| attribute_text(value).ok_or_else(unreadable)).collect()
}

fn attribute_text(value: &AttributeTypeAndValue<'_>) -> Option<String> {
    let bytes = value.as_slice();
    match value.attr_value().tag() {
        // Decoded as Latin-1, as in Go's crypto/x509.
        Tag::TeletexString => Some(bytes.iter().copied().map(char::from).collect()),
        Tag::BmpString => {
            let (units, []) = bytes.as_chunks::<2>() else { return None };
            let units: Vec<u16> = units.iter().map(|unit| u16::from_be_bytes(*unit)).collect();
            // Some programs add a terminating zero.
            String::from_utf16(units.strip_suffix(&[0]).unwrap_or(&units)).ok()
        }
        _ => value.as_str().ok().map(str::to_owned),
    }
}

fn credential_id(der: &[u8]) -> String {
    format!("X509SHA256={}", sha256_hex(der))
}

/// Returns the user that a leaf names, or `None` if it has no CN.
pub(super) fn user(subject: &Subject) -> Result<Option<UserInfo>, AuthnError> {
    if subject.common_name.is_empty() {
        return Ok(None);
    }
    let uid = match subject.uids.as_slice() {
        [] => String::new(),
        [uid] if !uid.is_empty() => uid.clone(),
        [_] => return Err(AuthnError::Certificate("the uid is empty".to_owned())),
        _ => return Err(AuthnError::Certificate("expected one uid, found several".to_owned())),
    };
    Ok(Some(UserInfo {
        name: subject.common_name.clone(),
        uid,
        groups: subject.organizations.clone(),
        extra: BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![subject.credential_id.clone()])]),
    }))
}

/// Returns the end of a certificate's validity, in seconds since the epoch.
pub(super) fn not_after(der: &[u8]) -> Option<u64> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    u64::try_from(certificate.validity().not_after.timestamp()).ok()
}
