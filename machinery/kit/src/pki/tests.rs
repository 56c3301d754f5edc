//! Tests of issuing, storing, parsing and verifying certificates.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use rustls_pki_types::UnixTime;

use super::chain::is_valid_client_chain;
use super::*;
use crate::fixture::{HOUR, client_pair, server_pair};
use crate::tls::CertPair;

fn now() -> UnixTime {
    UnixTime::now()
}

fn later(offset: Duration) -> UnixTime {
    UnixTime::since_unix_epoch(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() + offset)
}

#[test]
fn a_certificate_has_the_requested_fields() {
    let authority = Authority::create("portico-ca").unwrap();
    let server = server_pair(&authority, &["localhost", "a.ns.svc", "127.0.0.1", "::1"]);
    let info = server.info();
    assert_eq!(info.dns_names, ["localhost", "a.ns.svc"]);
    assert_eq!(info.ip_addresses.len(), 2);
    assert_eq!((info.issuer.as_str(), info.is_ca, info.client_auth), ("portico-ca", false, false));
    let client = client_pair(&authority, "alice", &["system:masters", "devs"]);
    assert_eq!(client.info().common_name, "alice");
    assert_eq!(client.info().organizations, ["system:masters", "devs"]);
    assert!(client.info().client_auth && !client.info().sha1_signature);
    assert_eq!(client.info().fingerprint_hex().len(), 64);
    assert_eq!(client.info().fingerprint, fingerprint(&client.chain()[0]));
}

#[test]
fn a_signed_certificate_matches_the_key_of_the_request() {
    let authority = Authority::create("portico-ca").unwrap();
    let profile = CertProfile::server("root", &["f.example".to_owned(), "10.0.0.1".to_owned()], HOUR);
    let request = SigningRequest::create(&profile).unwrap();
    assert!(!format!("{request:?}").contains("PRIVATE"));
    let signed =
        authority.sign(&request.request_pem, &CertProfile::client("facade-1", &["facades"], HOUR)).unwrap();
    let pair =
        PemPair { cert_pem: signed.cert_pem, key_pem: request.key_pem.clone() }.cert_pair("facade").unwrap();
    assert_eq!(signed.not_after, pair.info().not_after_text());
    assert!(is_valid_client_chain(authority.cert_pem(), pair.chain(), now()));
    let signed = authority.sign(&request.request_pem, &CertProfile::server("facade-1", &[], HOUR)).unwrap();
    let pair = PemPair { cert_pem: signed.cert_pem, key_pem: request.key_pem }.cert_pair("facade").unwrap();
    assert_eq!((pair.info().dns_names.len(), pair.info().ip_addresses.len()), (1, 1));
    assert!(authority.sign(authority.cert_pem(), &profile).is_err());
}

#[test]
fn more_than_two_organizations_are_rejected() {
    let authority = Authority::create("ca").unwrap();
    let error = authority.issue(&CertProfile::client("a", &["1", "2", "3"], HOUR)).unwrap_err().to_string();
    assert!(error.contains("more than 2 organizations"), "{error}");
}

#[test]
fn renewal_is_due_after_two_thirds_of_life() {
    let info = CertInfo { not_before: 1000, not_after: 1300, ..CertInfo::default() };
    assert!(!info.needs_renewal(1199));
    assert!(info.needs_renewal(1200));
    assert!(info.needs_renewal(5000));
    // The clock of the issuer was ahead.
    assert!(!info.needs_renewal(1000));
    assert!(info.needs_renewal(999));
}

#[test]
fn an_authority_is_created_once_with_private_permissions() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("pki");
    let first = Authority::load_or_create(&folder, "ca", "portico-ca").unwrap();
    let second = Authority::load_or_create(&folder, "ca", "portico-ca").unwrap();
    assert_eq!(first.cert_pem(), second.cert_pem());
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&folder), mode(&folder.join("ca.key")), mode(&folder.join("ca.crt"))),
        (0o700, 0o600, 0o644)
    );
    // Certificates of the reloaded authority are valid for servers that trust the first one.
    assert!(is_valid_client_chain(first.cert_pem(), client_pair(&second, "bob", &[]).chain(), now()));
}

#[test]
fn an_authority_without_key_or_certificate_is_rejected() {
    for (lost, present) in [("ca.crt", "ca.key"), ("ca.key", "ca.crt")] {
        let dir = tempfile::tempdir().unwrap();
        Authority::load_or_create(dir.path(), "ca", "portico-ca").unwrap();
        let original = std::fs::read(dir.path().join(present)).unwrap();
        std::fs::remove_file(dir.path().join(lost)).unwrap();
        let error = Authority::load_or_create(dir.path(), "ca", "portico-ca").err().unwrap().to_string();
        assert!(error.contains(&format!("{present} exists, but ")), "{error}");
        assert!(error.contains(&format!("{lost} is missing")), "{error}");
        assert_eq!(std::fs::read(dir.path().join(present)).unwrap(), original);
    }
}

#[test]
fn a_stored_pair_is_reused_until_it_no_longer_matches() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::create("portico-ca").unwrap();
    let server = |names: &[&str], life| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        CertProfile::server("portico", &names, life)
    };
    let issue = |authority: &Authority, profile: &CertProfile| {
        authority.load_or_issue(dir.path(), "apiserver", profile).unwrap()
    };
    let profile = server(&["localhost", "127.0.0.1"], 24 * HOUR);
    let (first, new) = issue(&authority, &profile);
    assert!(new);
    let (again, new) = issue(&authority, &profile);
    assert_eq!((again.cert_pem, new), (first.cert_pem, false));
    assert!(issue(&authority, &server(&["localhost", "10.0.0.1"], 24 * HOUR)).1, "other names");
    std::fs::write(dir.path().join("apiserver.key"), "nonsense").unwrap();
    assert!(issue(&authority, &server(&["localhost", "10.0.0.1"], 24 * HOUR)).1, "broken key");
    let short = server(&["localhost", "10.0.0.1"], Duration::from_secs(100));
    std::fs::remove_file(dir.path().join("apiserver.key")).unwrap();
    assert!(issue(&authority, &short).1, "our certificate without its key");
    // Backdated by 300 s with 100 s left: more than two thirds of its lifetime are over.
    assert!(issue(&authority, &short).1, "soon to expire");
    let other_authority = Authority::create("portico-ca").unwrap();
    assert!(
        issue(&other_authority, &server(&["localhost", "10.0.0.1"], 24 * HOUR)).1,
        "another authority of the same name"
    );
}

#[test]
fn a_pair_of_another_authority_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (Authority::create("ours").unwrap(), Authority::create("theirs").unwrap());
    let profile = CertProfile::server("portico", &["localhost".to_owned()], 24 * HOUR);
    let (foreign, _) = theirs.load_or_issue(dir.path(), "apiserver", &profile).unwrap();
    let refused = ours.load_or_issue(dir.path(), "apiserver", &profile).unwrap_err();
    assert!(matches!(refused, PkiError::ForeignCertificate { .. }), "{refused}");
    let stored = ours.foreign_pair(dir.path(), "apiserver").unwrap().unwrap();
    assert_eq!((stored.cert_pem, stored.key_pem), (foreign.cert_pem, foreign.key_pem));
    assert!(theirs.foreign_pair(dir.path(), "apiserver").unwrap().is_none());
    assert!(ours.foreign_pair(dir.path(), "other").unwrap().is_none());
    // A single file of the pair is not overwritten either.
    for lost in ["apiserver.crt", "apiserver.key"] {
        theirs.load_or_issue(dir.path(), "other", &profile).unwrap();
        let removed = dir.path().join(lost.replace("apiserver", "other"));
        std::fs::remove_file(&removed).unwrap();
        assert!(ours.load_or_issue(dir.path(), "other", &profile).is_err());
        assert!(!removed.exists());
        for suffix in ["crt", "key"] {
            let _ = std::fs::remove_file(dir.path().join(format!("other.{suffix}")));
        }
    }
    std::fs::write(dir.path().join("apiserver.crt"), "foreign").unwrap();
    assert!(ours.load_or_issue(dir.path(), "apiserver", &profile).is_err());
    assert_eq!(std::fs::read_to_string(dir.path().join("apiserver.crt")).unwrap(), "foreign");
}

#[test]
fn issued_keys_are_in_sec1_format() {
    let authority = Authority::create("ours").unwrap();
    let pair = authority.issue(&CertProfile::client("alice", &[], HOUR)).unwrap();
    assert!(pair.key_pem.starts_with("-----BEGIN EC PRIVATE KEY-----\n"), "{}", pair.key_pem.len());
    assert!(pair.key_pem.lines().all(|line| line.len() <= 64));
    let key = rustls_pki_types::PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).unwrap();
    assert!(matches!(key, rustls_pki_types::PrivateKeyDer::Sec1(_)));
    // The key matches its certificate.
    pair.cert_pair("alice").unwrap();
}

#[test]
fn a_chain_is_valid_only_for_clients_of_the_authority_within_its_validity() {
    let (ours, theirs) = (Authority::create("ours").unwrap(), Authority::create("theirs").unwrap());
    let alice = client_pair(&ours, "alice", &[]);
    let client_at = |pair: &CertPair, at| is_valid_client_chain(ours.cert_pem(), pair.chain(), at);
    assert!(client_at(&alice, now()));
    assert!(!client_at(&alice, later(2 * HOUR)), "expired");
    assert!(!client_at(&client_pair(&theirs, "mallory", &[]), now()), "signed by another authority");
    assert!(!client_at(&server_pair(&ours, &["localhost"]), now()), "server certificate");
    assert!(!is_valid_client_chain(ours.cert_pem(), &[], now()), "empty chain");
}

#[test]
fn bad_bundles_name_themselves_and_the_certificate() {
    let pem = Authority::create("ca").unwrap().cert_pem().to_owned();
    let error = |pem: &str| root_store("caBundle", pem.as_bytes()).unwrap_err().to_string();
    assert_eq!(error("no pem at all"), "caBundle: contains no certificate");
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(error(&format!("{pem}{broken}")).starts_with("caBundle: certificate 2: "));
    assert!(
        error("-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n")
            .starts_with("caBundle: not valid PEM")
    );
    assert_eq!(root_store("caBundle", format!("{pem}{pem}").as_bytes()).unwrap().len(), 2);
}

#[test]
fn a_pair_never_prints_its_key() {
    let pair = Authority::create("ca").unwrap().issue(&CertProfile::client("a", &[], HOUR)).unwrap();
    assert!(pair.key_pem.contains("PRIVATE KEY"));
    assert!(!format!("{pair:?}").contains("PRIVATE"));
}

#[test]
fn a_request_is_signed_for_the_profile_and_not_for_its_own_subject() {
    let authority = Authority::create("ca").unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["facade.example.com".to_owned()]).unwrap();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "system:masters");
    let request = params.serialize_request(&key).unwrap().pem().unwrap();
    let life = Duration::from_secs(3600);
    let client = authority.sign(&request, &CertProfile::client("facade", &["facades"], life)).unwrap();
    let info = CertInfo::parse(&parse_certs("client", client.cert_pem.as_bytes()).unwrap()[0]).unwrap();
    assert_eq!(
        (info.common_name.as_str(), info.organizations.as_slice()),
        ("facade", &["facades".to_owned()][..])
    );
    assert!(info.dns_names.is_empty());
    let server = authority.sign(&request, &CertProfile::server("facade", &[], life)).unwrap();
    let info = CertInfo::parse(&parse_certs("server", server.cert_pem.as_bytes()).unwrap()[0]).unwrap();
    assert_eq!(info.dns_names, ["facade.example.com"]);
    assert!(info.organizations.is_empty());
    assert!(authority.sign("no request", &CertProfile::server("facade", &[], life)).is_err());
}
