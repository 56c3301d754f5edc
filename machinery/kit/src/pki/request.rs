//! Certificate signing requests (PKCS#10), so that a key does not leave the process that created it.

use std::net::IpAddr;

use rcgen::{
    CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType, KeyPair,
    PKCS_ECDSA_P256_SHA256, PublicKey, SanType,
};

use super::PkiError;
use super::profile::CertProfile;

/// New key with the request to certify it.
#[derive(Clone)]
pub struct SigningRequest {
    /// PKCS#10 request in PEM, which is sent to the signer.
    pub request_pem: String,
    /// PKCS#8 key in PEM, which the requester keeps.
    pub key_pem: String,
}

impl std::fmt::Debug for SigningRequest {
    /// Omits the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningRequest").field("request_pem", &self.request_pem).finish_non_exhaustive()
    }
}

impl SigningRequest {
    /// Creates an ECDSA P-256 key and a request with the subject and alternative names of the profile.
    pub fn create(profile: &CertProfile) -> Result<Self, PkiError> {
        let failed = |source| PkiError::Issue { name: profile.common_name.clone(), source };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let mut params = CertificateParams::default();
        set_names(&mut params, profile)?;
        let request_pem = params.serialize_request(&key).and_then(|request| request.pem()).map_err(failed)?;
        Ok(Self { request_pem, key_pem: key.serialize_pem() })
    }
}

/// Request whose signature proves possession of its key.
pub(super) struct VerifiedRequest {
    /// Requested DNS names.
    pub(super) dns_names: Vec<String>,
    /// Requested IP addresses.
    pub(super) ip_addresses: Vec<IpAddr>,
    pub(super) public_key: PublicKey,
}

impl VerifiedRequest {
    /// Parses PEM and verifies the signature of the request. Ignores the subject.
    pub(super) fn parse(pem: &str) -> Result<Self, PkiError> {
        let request = CertificateSigningRequestParams::from_pem(pem)
            .map_err(|error| PkiError::Parse(format!("certificate signing request: {error}")))?;
        let (mut dns_names, mut ip_addresses) = (Vec::new(), Vec::new());
        for name in request.params.subject_alt_names {
            match name {
                SanType::DnsName(name) => dns_names.push(name.as_str().to_owned()),
                SanType::IpAddress(address) => ip_addresses.push(address),
                other => return Err(PkiError::Parse(format!("certificate signing request: name {other:?}"))),
            }
        }
        Ok(Self { dns_names, ip_addresses, public_key: request.public_key })
    }
}

/// Sets the subject and alternative names of the profile.
pub(super) fn set_names(params: &mut CertificateParams, profile: &CertProfile) -> Result<(), PkiError> {
    let failed = |source| PkiError::Issue { name: profile.common_name.clone(), source };
    params.distinguished_name = DistinguishedName::new();
    // The library supports one value per attribute type; a second organization is added by its plain OID.
    let second = DnType::CustomDnType(vec![2, 5, 4, 10]);
    let types = [DnType::OrganizationName, second];
    if profile.organizations.len() > types.len() {
        return Err(PkiError::Parse(format!(
            "a certificate for {:?} with more than {} organizations is not supported",
            profile.common_name,
            types.len()
        )));
    }
    for (kind, organization) in types.into_iter().zip(&profile.organizations) {
        params.distinguished_name.push(kind, organization.as_str());
    }
    params.distinguished_name.push(DnType::CommonName, profile.common_name.as_str());
    for name in &profile.dns_names {
        let name = name.as_str().try_into().map_err(failed)?;
        params.subject_alt_names.push(SanType::DnsName(name));
    }
    params.subject_alt_names.extend(profile.ip_addresses.iter().copied().map(SanType::IpAddress));
    Ok(())
}
