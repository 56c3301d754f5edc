//! Certificate authority on disk: ECDSA P-256, created at the first start.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::{AsDer, EcPrivateKeyRfc5915Der};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls_pki_types::UnixTime;

use super::chain::is_valid_client_chain;
use super::files::{PairFiles, read_text};
use super::profile::{CertProfile, CertUsage, PemPair};
use super::request::{VerifiedRequest, set_names};
use super::request_signer::RequestSigner;
use super::{CertInfo, PkiError, pem_text};
use crate::tls::CertPair;

/// Lifetime of an authority, ten years. Authorities are not renewed automatically, since that would break all clients at once.
const AUTHORITY_LIFETIME: Duration = Duration::from_secs(3650 * 86_400);
/// Time by which the beginning of the validity lies in the past, for clocks that differ.
const BACKDATE: Duration = Duration::from_secs(300);

/// Certificate for a key that stays with the requester.
#[derive(Clone, Debug)]
pub struct SignedCertificate {
    /// Certificate in PEM.
    pub cert_pem: String,
    /// End of the validity in RFC 3339 format.
    pub not_after: String,
}

/// Certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pair: PemPair,
}

impl Authority {
    /// Creates a self-signed authority that is valid for ten years.
    pub fn create(common_name: &str) -> Result<Self, PkiError> {
        let failed = |source| PkiError::Issue { name: common_name.to_owned(), source };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        set_validity(&mut params, SystemTime::now(), AUTHORITY_LIFETIME);
        let cert_pem = params.self_signed(&key).map_err(failed)?.pem();
        let pair = PemPair { cert_pem, key_pem: key.serialize_pem() };
        Ok(Self { issuer: Issuer::new(params, key), pair })
    }

    /// Parses an authority from PEM; `label` names it in errors.
    pub fn from_pem(label: &str, cert_pem: &str, key_pem: &str) -> Result<Self, PkiError> {
        let failed = |source| PkiError::Issue { name: label.to_owned(), source };
        CertPair::from_pem(label, cert_pem.as_bytes(), key_pem.as_bytes())?;
        let key = KeyPair::from_pem(key_pem).map_err(failed)?;
        let issuer = Issuer::from_ca_cert_pem(cert_pem, key).map_err(failed)?;
        Ok(Self { issuer, pair: PemPair { cert_pem: cert_pem.to_owned(), key_pem: key_pem.to_owned() } })
    }

    /// Reads `<dir>/<name>.crt` and `.key`, or creates them (folder 0700, key 0600) if neither exists.
    pub fn load_or_create(dir: &Path, name: &str, common_name: &str) -> Result<Self, PkiError> {
        let files = PairFiles::new(dir, name);
        if let Some(pair) = files.read()? {
            return Self::from_pem(&files.cert().display().to_string(), &pair.cert_pem, &pair.key_pem);
        }
        let authority = Self::create(common_name)?;
        files.write(&authority.pair)?;
        Ok(authority)
    }

    /// Returns the certificate of the authority, for trust bundles and kubeconfigs.
    pub fn cert_pem(&self) -> &str {
        &self.pair.cert_pem
    }

    /// Returns a signer of this authority that takes subjects and names from requests.
    pub fn signer(&self) -> Result<RequestSigner, PkiError> {
        RequestSigner::new("authority", &self.pair.cert_pair("authority")?)
    }

    /// Issues a pair with a new ECDSA P-256 key. Its validity begins shortly before the current time.
    pub fn issue(&self, profile: &CertProfile) -> Result<PemPair, PkiError> {
        let failed = |source| PkiError::Issue { name: profile.common_name.clone(), source };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let params = leaf_params(profile, SystemTime::now())?;
        let cert_pem = params.signed_by(&key, &self.issuer).map_err(failed)?.pem();
        Ok(PemPair { cert_pem, key_pem: sec1_pem(&key).map_err(failed)? })
    }

    /// Signs the key of a PKCS#10 request (PEM). Subject and usage are those of the profile; the subject of the request is
    /// ignored. For servers, the alternative names of the request are added to those of the profile.
    pub fn sign(&self, request_pem: &str, profile: &CertProfile) -> Result<SignedCertificate, PkiError> {
        let failed = |source| PkiError::Issue { name: profile.common_name.clone(), source };
        let request = VerifiedRequest::parse(request_pem)?;
        let mut profile = profile.clone();
        if profile.usage != CertUsage::Client {
            profile.dns_names.extend(request.dns_names);
            profile.ip_addresses.extend(request.ip_addresses);
        }
        let params = leaf_params(&profile, SystemTime::now())?;
        let cert = params.signed_by(&request.public_key, &self.issuer).map_err(failed)?;
        let not_after = CertInfo::parse(cert.der())?.not_after_text();
        Ok(SignedCertificate { cert_pem: cert.pem(), not_after })
    }

    /// Issues a pair whose validity begins at `start`, for tests of expiry.
    #[cfg(test)]
    pub(crate) fn issue_at(&self, profile: &CertProfile, start: SystemTime) -> Result<PemPair, PkiError> {
        let failed = |source| PkiError::Issue { name: profile.common_name.clone(), source };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let cert_pem = leaf_params(profile, start)?.signed_by(&key, &self.issuer).map_err(failed)?.pem();
        Ok(PemPair { cert_pem, key_pem: key.serialize_pem() })
    }

    /// Reads the pair `<dir>/<name>.crt` and `.key` if this authority issued it, it matches the profile, and a third of its
    /// lifetime is left; otherwise issues and stores a new pair. Returns true if the pair is new. A certificate of another issuer
    /// is never overwritten: [`PkiError::ForeignCertificate`].
    pub fn load_or_issue(
        &self,
        dir: &Path,
        name: &str,
        profile: &CertProfile,
    ) -> Result<(PemPair, bool), PkiError> {
        let files = PairFiles::new(dir, name);
        if self.is_foreign(&files)? {
            return Err(PkiError::ForeignCertificate { path: files.cert().to_owned() });
        }
        let stored = match files.read() {
            // The certificate names this authority as its issuer, and is useless without its key.
            Err(PkiError::IncompletePair { present, .. }) if present == files.cert() => None,
            read => read?,
        };
        if let Some(pair) = stored.filter(|pair| self.is_current(pair, profile)) {
            return Ok((pair, false));
        }
        let pair = self.issue(profile)?;
        files.write(&pair)?;
        Ok((pair, true))
    }

    /// Returns the pair `<dir>/<name>.crt` and `.key` if another authority has issued it.
    pub fn foreign_pair(&self, dir: &Path, name: &str) -> Result<Option<PemPair>, PkiError> {
        let files = PairFiles::new(dir, name);
        if self.is_foreign(&files)? { files.read() } else { Ok(None) }
    }

    /// True if a certificate exists that no authority of this common name has issued, neither this one nor an earlier one.
    fn is_foreign(&self, files: &PairFiles) -> Result<bool, PkiError> {
        let Some(cert_pem) = read_text(files.cert())? else { return Ok(false) };
        let (authority_info, label) =
            (CertInfo::from_pem("authority", &self.pair.cert_pem)?, files.cert().display().to_string());
        Ok(CertInfo::from_pem(&label, &cert_pem)
            .map_or(true, |info| info.issuer != authority_info.common_name))
    }

    fn is_current(&self, pair: &PemPair, profile: &CertProfile) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Ok(parsed) = pair.cert_pair("stored pair") else { return false };
        let Ok(seconds) = i64::try_from(now.as_secs()) else { return false };
        let is_signed = self.has_signed_leaf(&parsed, UnixTime::since_unix_epoch(now));
        is_signed && profile.matches_cert(parsed.info()) && !parsed.info().needs_renewal(seconds)
    }

    /// True if this authority has signed the leaf: a matching issuer name is not sufficient.
    fn has_signed_leaf(&self, pair: &CertPair, now: UnixTime) -> bool {
        let Ok(roots) = super::root_store("authority", self.pair.cert_pem.as_bytes()) else { return false };
        let Some(leaf) = pair.chain().first() else { return false };
        let Ok(cert) = rustls::server::ParsedCertificate::try_from(leaf) else { return false };
        let algorithms = crate::tls::provider().signature_verification_algorithms.all;
        rustls::client::verify_server_cert_signed_by_trust_anchor(&cert, &roots, &[], now, algorithms).is_ok()
            || is_valid_client_chain(&self.pair.cert_pem, pair.chain(), now)
    }
}

/// Encodes a P-256 key as SEC1.
fn sec1_pem(key: &KeyPair) -> Result<String, rcgen::Error> {
    let unreadable = |_| rcgen::Error::CouldNotParseKeyPair;
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.serialized_der())
        .map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
    let der: EcPrivateKeyRfc5915Der<'_> = pair.private_key().as_der().map_err(unreadable)?;
    Ok(pem_text("EC PRIVATE KEY", der.as_ref()))
}

fn leaf_params(profile: &CertProfile, start: SystemTime) -> Result<CertificateParams, PkiError> {
    let mut params = CertificateParams::default();
    set_names(&mut params, profile)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let (server, client) = (ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth);
    params.extended_key_usages = match profile.usage {
        CertUsage::Server => vec![server],
        CertUsage::Client => vec![client],
        CertUsage::Both => vec![server, client],
    };
    params.use_authority_key_identifier_extension = true;
    set_validity(&mut params, start, profile.validity);
    Ok(params)
}

fn set_validity(params: &mut CertificateParams, start: SystemTime, lifetime: Duration) {
    let since_epoch = start.duration_since(UNIX_EPOCH).unwrap_or_default();
    let start = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(since_epoch.as_secs());
    params.not_before = start - BACKDATE;
    params.not_after = start + lifetime;
}
