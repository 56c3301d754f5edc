//! Tests without sockets. Handshakes over real sockets are tested in `listener` and `dial`.

use super::*;
use crate::fixture::{HOUR, client_pair, server_pair};
use crate::pki::{Authority, CertProfile};

#[test]
fn a_pair_must_match_and_errors_name_the_missing_part() {
    let authority = Authority::create("ca").unwrap();
    let issue = || authority.issue(&CertProfile::client("a", &[], HOUR)).unwrap();
    let (one, two) = (issue(), issue());
    let load = |cert: &str, key: &str| {
        CertPair::from_pem("proxy-client", cert.as_bytes(), key.as_bytes())
            .err()
            .map(|error| error.to_string())
    };
    assert_eq!(load(&one.cert_pem, &one.key_pem), None);
    let mismatch = "proxy-client: the private key does not match the certificate";
    assert_eq!(load(&one.cert_pem, &two.key_pem).as_deref(), Some(mismatch));
    assert_eq!(load(&one.key_pem, &one.key_pem).as_deref(), Some("proxy-client: contains no certificate"));
    assert_eq!(load(&one.cert_pem, &one.cert_pem).as_deref(), Some("proxy-client: contains no private key"));
}

#[test]
fn suites_and_versions_have_upstreams_names() {
    let one = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256".to_owned();
    let suites = provider_with(&[one], &[]).unwrap().cipher_suites.clone();
    assert_eq!(suites.iter().filter(|suite| suite.tls13().is_none()).count(), 1);
    assert!(suites.iter().any(|suite| suite.tls13().is_some()));
    let error = provider_with(&["TLS_RSA_WITH_RC4_128_SHA".to_owned()], &[]).unwrap_err();
    assert_eq!(error.to_string(), "cipher suite \"TLS_RSA_WITH_RC4_128_SHA\" is not supported");
    assert_eq!(MinVersion::from_flag("VersionTLS13").unwrap(), MinVersion::Tls13);
    assert!(MinVersion::from_flag("VersionTLS10").is_err());
}

#[test]
fn a_client_needs_usable_roots_and_a_valid_name() {
    let build = |pem: &[u8], name: &str| {
        let builder = ClientTls::builder().roots(Roots::bundle("caBundle", pem)).server_name(name);
        builder.build().err().map(|error| error.to_string())
    };
    let authority = Authority::create("ca").unwrap();
    assert_eq!(build(authority.cert_pem().as_bytes(), "a.b.svc"), None);
    assert_eq!(build(authority.cert_pem().as_bytes(), "[::1]"), None);
    assert_eq!(build(b"junk", "a.b.svc").as_deref(), Some("caBundle: contains no certificate"));
    let error = build(authority.cert_pem().as_bytes(), "a b").unwrap();
    assert_eq!(error, "\"a b\" is not a valid server name");
}

#[test]
fn clones_share_an_id_and_builds_have_distinct_ids() {
    let authority = Authority::create("ca").unwrap();
    let build = || {
        let roots = Roots::bundle("caBundle", authority.cert_pem().as_bytes());
        let pair = client_pair(&authority, "proxy", &[]);
        ClientTls::builder().roots(roots).client_cert(Some(pair)).build().unwrap()
    };
    let one = build();
    assert_eq!(one.clone().id(), one.id());
    assert_ne!(build().id(), one.id());
    let h2 = one.with_alpn(Alpn::Http2);
    assert_ne!(h2.id(), one.id());
    assert_eq!(h2.config().alpn_protocols, [b"h2".to_vec()]);
}

#[test]
fn the_default_pair_is_replaced_in_place() {
    let authority = Authority::create("ca").unwrap();
    let (old, new) = (server_pair(&authority, &["old"]), server_pair(&authority, &["new"]));
    let tls = ServerTls::new(old.clone(), &[], &ServerTlsOptions::default()).unwrap();
    let other = tls.clone();
    tls.replace_default(new.clone());
    assert!(other.default_pair() == new && other.default_pair() != old);
}
