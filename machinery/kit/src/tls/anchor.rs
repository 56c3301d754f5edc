//! Server certificates that are themselves contained in the trust bundle and therefore need no issuer.
//!
//! Go (`Certificate.Verify`) accepts a leaf that is in the pool of roots as a complete chain. webpki requires an
//! authority above each leaf, and does not accept an authority as a leaf, so it rejects certificates made by
//! `openssl req -x509`, which test environments put into definitions.

use std::collections::HashSet;

use rustls::CertificateError;
use rustls::client::verify_server_name;
use rustls::server::ParsedCertificate;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::pki::{CertInfo, fingerprint};

/// Certificates of a bundle, and their SHA-256 digests.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    certs: Vec<CertificateDer<'static>>,
    digests: HashSet<[u8; 32]>,
}

impl Anchors {
    pub(super) fn new(certs: &[CertificateDer<'static>]) -> Self {
        Self { certs: certs.to_vec(), digests: certs.iter().map(|cert| fingerprint(cert)).collect() }
    }

    /// Returns all certificates.
    pub(super) fn certs(&self) -> &[CertificateDer<'static>] {
        &self.certs
    }

    /// True if the bundle contains exactly this certificate, compared byte for byte.
    pub(super) fn contains(&self, cert: &CertificateDer<'_>) -> bool {
        self.digests.contains(&fingerprint(cert))
    }
}

/// Verifies the remaining properties of a certificate that is trusted by itself: form, dates, purpose and names.
pub(super) fn verify_anchor(
    leaf: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<(), rustls::Error> {
    // Parsing also rejects unknown critical extensions.
    let parsed = ParsedCertificate::try_from(leaf)?;
    let info = CertInfo::parse(leaf).map_err(|_| CertificateError::BadEncoding)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < info.not_before {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > info.not_after {
        return Err(CertificateError::Expired.into());
    }
    if !info.server_auth {
        return Err(CertificateError::InvalidPurpose.into());
    }
    verify_server_name(&parsed, name)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair};

    use crate::dial::{DialError, Target};
    use crate::fixture::{Backend, HOUR, connector, server_tls, target};
    use crate::pki::{Authority, CertProfile, PemPair};
    use crate::tls::{CertPair, ClientTls, FaultKind, Roots};

    /// Returns a certificate like that of `openssl req -x509`, which is an authority and a server certificate at once.
    fn self_signed(adjust: impl FnOnce(&mut CertificateParams)) -> PemPair {
        let mut params = CertificateParams::new(["a.b.svc".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        adjust(&mut params);
        let key = KeyPair::generate().unwrap();
        PemPair { cert_pem: params.self_signed(&key).unwrap().pem(), key_pem: key.serialize_pem() }
    }

    /// Returns a certificate of an authority that is not in the bundle.
    fn signed_by_another() -> PemPair {
        let profile = CertProfile::server("backend", &["a.b.svc".to_owned(), "10.0.0.1".to_owned()], HOUR);
        Authority::create("another").unwrap().issue(&profile).unwrap()
    }

    fn pair(pem: &PemPair) -> CertPair {
        pem.cert_pair("backend").unwrap()
    }

    async fn dial(presented_pair: CertPair, bundle: &str, name: &str) -> Result<(), DialError> {
        let backend = Backend::start(server_tls(presented_pair), |_, _| http::Response::default());
        let roots = Roots::bundle("caBundle", bundle.as_bytes());
        let tls = ClientTls::builder().roots(roots).server_name(name).build().unwrap();
        let at: Target = target(backend.addr);
        connector(HOUR, HOUR).connect_tls(&at, &tls).await.map(drop)
    }

    async fn fault(presented_pair: CertPair, bundle: &str, name: &str) -> FaultKind {
        dial(presented_pair, bundle, name).await.unwrap_err().certificate().unwrap().kind
    }

    #[tokio::test]
    async fn a_servers_certificate_in_the_bundle_is_trusted_as_it_is() {
        let (leaf, both) = (signed_by_another(), self_signed(|_| ()));
        dial(pair(&leaf), &leaf.cert_pem, "a.b.svc").await.unwrap();
        dial(pair(&leaf), &leaf.cert_pem, "10.0.0.1").await.unwrap();
        dial(pair(&both), &both.cert_pem, "a.b.svc").await.unwrap();
        let many =
            format!("{}{}{}", Authority::create("x").unwrap().cert_pem(), both.cert_pem, leaf.cert_pem);
        dial(pair(&leaf), &many, "a.b.svc").await.unwrap();
        dial(pair(&both), &many, "a.b.svc").await.unwrap();
    }

    #[tokio::test]
    async fn names_dates_and_purpose_of_an_anchor_are_verified() {
        for pem in [signed_by_another(), self_signed(|_| ())] {
            assert_eq!(fault(pair(&pem), &pem.cert_pem, "c.d.svc").await, FaultKind::NameMismatch);
        }
        let day = Duration::from_secs(86_400);
        let old = self_signed(|params| {
            params.not_before = (SystemTime::now() - 2 * day).into();
            params.not_after = (SystemTime::now() - day).into();
        });
        assert_eq!(fault(pair(&old), &old.cert_pem, "a.b.svc").await, FaultKind::Expired);
        let early = self_signed(|params| params.not_before = (SystemTime::now() + day).into());
        assert_eq!(fault(pair(&early), &early.cert_pem, "a.b.svc").await, FaultKind::NotYetValid);
        let client =
            self_signed(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
        assert_eq!(fault(pair(&client), &client.cert_pem, "a.b.svc").await, FaultKind::Unusable);
    }

    /// Returns a pair with these names whose issuer is a server certificate used as an authority, and that issuer.
    fn signed_by_a_leaf(names: &[&str]) -> (CertPair, PemPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["leaf.svc".to_owned()]).unwrap();
        params.is_ca = IsCa::ExplicitNoCa;
        let cert_pem = params.self_signed(&key).unwrap().pem();
        let leaf = PemPair { cert_pem: cert_pem.clone(), key_pem: key.serialize_pem() };
        let issuer = rcgen::Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let cert = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        let pem_pair = PemPair { cert_pem: cert.pem(), key_pem: key.serialize_pem() };
        (pair(&pem_pair), leaf)
    }

    #[tokio::test]
    async fn a_servers_certificate_in_the_bundle_signs_no_other() {
        let (presented_pair, leaf) = signed_by_a_leaf(&["a.b.svc"]);
        assert_eq!(
            fault(presented_pair.clone(), &leaf.cert_pem, "a.b.svc").await,
            FaultKind::UnknownAuthority
        );
        let bundle = format!("{}{}", Authority::create("x").unwrap().cert_pem(), leaf.cert_pem);
        assert_eq!(fault(presented_pair, &bundle, "a.b.svc").await, FaultKind::UnknownAuthority);
        dial(pair(&leaf), &leaf.cert_pem, "leaf.svc").await.unwrap();
    }

    #[tokio::test]
    async fn another_certificate_of_the_same_name_is_not_trusted() {
        let (ours, theirs) = (self_signed(|_| ()), self_signed(|_| ()));
        assert!(dial(pair(&theirs), &ours.cert_pem, "a.b.svc").await.is_err());
        let (leaf, other) = (signed_by_another(), signed_by_another());
        assert_eq!(fault(pair(&other), &leaf.cert_pem, "a.b.svc").await, FaultKind::UnknownAuthority);
    }
}
