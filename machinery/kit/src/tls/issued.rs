//! Server certificates that may themselves sign certificates (CA:TRUE) and that an authority of the bundle has signed.
//!
//! Go (`Certificate.Verify`) accepts them; webpki rejects every authority as a leaf before it looks for its issuer. This module
//! accepts only certificates that an authority of the bundle has signed directly: without intermediates, and not if the authority
//! has name constraints, which only a complete chain verification could apply.

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, ParsedExtension, X509Certificate};

use crate::pki::has_signed;

/// True if one of these authorities is valid at `now` and has signed the certificate.
pub(super) fn is_signed_by_any(
    leaf: &CertificateDer<'_>,
    authorities: &[CertificateDer<'static>],
    algorithms: &WebPkiSupportedAlgorithms,
    now: UnixTime,
) -> bool {
    let Ok((_, leaf)) = X509Certificate::from_der(leaf) else { return false };
    authorities.iter().any(|authority| {
        let Ok((_, authority)) = X509Certificate::from_der(authority) else { return false };
        authority.subject().as_raw() == leaf.issuer().as_raw()
            && may_sign(&authority, now)
            && has_signed(&authority, &leaf, algorithms)
    })
}

/// Performs the checks of Go's `Certificate.CheckSignatureFrom`, and checks the dates, which Go does for roots as well.
fn may_sign(authority: &X509Certificate<'_>, now: UnixTime) -> bool {
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let (begin, end) = (authority.validity().not_before, authority.validity().not_after);
    // Extensions that cannot be parsed or are repeated permit nothing.
    let signs =
        authority.key_usage().is_ok_and(|usage| usage.is_none_or(|usage| usage.value.key_cert_sign()));
    let limited = authority
        .extensions()
        .iter()
        .any(|extension| matches!(extension.parsed_extension(), ParsedExtension::NameConstraints(_)));
    let unknown = authority.extensions().iter().any(|extension| {
        let parsed = extension.parsed_extension();
        extension.critical && (parsed.unsupported() || parsed.error().is_some())
    });
    let served = authority
        .extended_key_usage()
        .is_ok_and(|usage| usage.is_none_or(|usage| usage.value.server_auth || usage.value.any));
    authority.is_ca()
        && signs
        && served
        && !limited
        && !unknown
        && (begin.timestamp()..=end.timestamp()).contains(&now)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer,
        KeyPair, KeyUsagePurpose, NameConstraints,
    };

    use crate::dial::DialError;
    use crate::fixture::{Backend, HOUR, connector, server_tls, target};
    use crate::pki::PemPair;
    use crate::tls::{ClientTls, FaultKind, Roots};

    const DAY: Duration = Duration::from_secs(86_400);

    struct Ca {
        issuer: Issuer<'static, KeyPair>,
        pem: String,
    }

    fn authority(adjust: impl FnOnce(&mut CertificateParams)) -> Ca {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "bundled");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        adjust(&mut params);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Ca { issuer: Issuer::new(params, key), pem }
    }

    impl Ca {
        /// Issues a server certificate that may sign certificates.
        fn issue(&self, adjust: impl FnOnce(&mut CertificateParams)) -> PemPair {
            let mut params = CertificateParams::new(["a.b.svc".to_owned()]).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            adjust(&mut params);
            let key = KeyPair::generate().unwrap();
            let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
            PemPair { cert_pem: pem, key_pem: key.serialize_pem() }
        }
    }

    async fn dial(presented_pair: &PemPair, bundle: &str, name: &str) -> Result<(), DialError> {
        let pair = presented_pair.cert_pair("backend").unwrap();
        let backend = Backend::start(server_tls(pair), |_, _| http::Response::default());
        let roots = Roots::bundle("caBundle", bundle.as_bytes());
        let tls = ClientTls::builder().roots(roots).server_name(name).build().unwrap();
        connector(HOUR, HOUR).connect_tls(&target(backend.addr), &tls).await.map(drop)
    }

    async fn fault(presented_pair: &PemPair, bundle: &str, name: &str) -> FaultKind {
        dial(presented_pair, bundle, name).await.unwrap_err().certificate().unwrap().kind
    }

    #[tokio::test]
    async fn an_authority_that_one_of_the_bundle_signed_may_serve() {
        let (ca, other) = (authority(|_| ()), authority(|_| ()));
        let leaf = ca.issue(|_| ());
        dial(&leaf, &ca.pem, "a.b.svc").await.unwrap();
        dial(&leaf, &format!("{}{}", other.pem, ca.pem), "a.b.svc").await.unwrap();
    }

    #[tokio::test]
    async fn names_dates_and_purpose_of_an_authority_leaf_are_verified() {
        let ca = authority(|_| ());
        assert_eq!(fault(&ca.issue(|_| ()), &ca.pem, "c.d.svc").await, FaultKind::NameMismatch);
        let old = ca.issue(|params| {
            params.not_before = (SystemTime::now() - 2 * DAY).into();
            params.not_after = (SystemTime::now() - DAY).into();
        });
        assert_eq!(fault(&old, &ca.pem, "a.b.svc").await, FaultKind::Expired);
        let client =
            ca.issue(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
        assert_eq!(fault(&client, &ca.pem, "a.b.svc").await, FaultKind::Unusable);
    }

    /// Both authorities have the same name, so that only the signature differs.
    #[tokio::test]
    async fn the_name_of_an_authority_is_not_its_signature() {
        let (ca, other) = (authority(|_| ()), authority(|_| ()));
        let error = dial(&other.issue(|_| ()), &ca.pem, "a.b.svc").await.unwrap_err();
        assert_eq!(error.certificate().unwrap().kind, FaultKind::Unusable);
        let text = error.to_string();
        assert!(text.contains("neither trusted nor signed by a trusted CA"), "{text}");
    }

    #[tokio::test]
    async fn an_authority_that_may_not_sign_it_does_not_count() {
        let refused = [
            authority(|params| params.key_usages = vec![KeyUsagePurpose::DigitalSignature]),
            authority(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]),
            authority(|params| {
                params.not_before = (SystemTime::now() - 2 * DAY).into();
                params.not_after = (SystemTime::now() - DAY).into();
            }),
            authority(|params| {
                let permitted_subtrees = vec![GeneralSubtree::DnsName("elsewhere".to_owned())];
                let excluded_subtrees = Vec::new();
                params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees });
            }),
        ];
        for (at, ca) in refused.iter().enumerate() {
            assert!(dial(&ca.issue(|_| ()), &ca.pem, "a.b.svc").await.is_err(), "{at}");
        }
    }
}
