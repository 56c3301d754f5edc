//! Tests of issuing, storing, parsing and verifying certificates.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use rustls_pki_types::UnixTime;

use super::chain::is_client_of;
use super::*;
use crate::fixture::{HOUR, client_pair, server_pair};
use crate::tls::CertPair;

fn now() -> UnixTime {
    UnixTime::now()
}

fn later(by: Duration) -> UnixTime {
    UnixTime::since_unix_epoch(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() + by)
}

#[test]
fn a_certificate_has_the_fields_that_were_asked_for() {
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
fn a_request_proves_its_key_and_the_certificate_fits_it() {
    let authority = Authority::create("portico-ca").unwrap();
    let wanted = Profile::server("root", &["f.example".to_owned(), "10.0.0.1".to_owned()], HOUR);
    let request = SigningRequest::create(&wanted).unwrap();
    assert!(!format!("{request:?}").contains("PRIVATE"));
    let signed =
        authority.sign(&request.request_pem, &Profile::client("facade-1", &["facades"], HOUR)).unwrap();
    let pair =
        PemPair { cert_pem: signed.cert_pem, key_pem: request.key_pem.clone() }.cert_pair("facade").unwrap();
    assert_eq!(signed.not_after, pair.info().not_after_text());
    assert!(is_client_of(authority.cert_pem(), pair.chain(), now()));
    let signed = authority.sign(&request.request_pem, &Profile::server("facade-1", &[], HOUR)).unwrap();
    let pair = PemPair { cert_pem: signed.cert_pem, key_pem: request.key_pem }.cert_pair("facade").unwrap();
    assert_eq!((pair.info().dns_names.len(), pair.info().ip_addresses.len()), (1, 1));
    assert!(authority.sign(authority.cert_pem(), &wanted).is_err());
}

#[test]
fn more_organizations_than_can_be_written_are_refused() {
    let authority = Authority::create("ca").unwrap();
    let error = authority.issue(&Profile::client("a", &["1", "2", "3"], HOUR)).unwrap_err().to_string();
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
fn an_authority_is_made_once_and_kept_private() {
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
    assert!(is_client_of(first.cert_pem(), client_pair(&second, "bob", &[]).chain(), now()));
}

#[test]
fn half_an_authority_is_refused() {
    for (lost, present) in [("ca.crt", "ca.key"), ("ca.key", "ca.crt")] {
        let dir = tempfile::tempdir().unwrap();
        Authority::load_or_create(dir.path(), "ca", "portico-ca").unwrap();
        let kept = std::fs::read(dir.path().join(present)).unwrap();
        std::fs::remove_file(dir.path().join(lost)).unwrap();
        let error = Authority::load_or_create(dir.path(), "ca", "portico-ca").err().unwrap().to_string();
        assert!(error.contains(&format!("{present} exists, but ")), "{error}");
        assert!(error.contains(&format!("{lost} is missing")), "{error}");
        assert_eq!(std::fs::read(dir.path().join(present)).unwrap(), kept);
    }
}

#[test]
fn a_stored_pair_is_used_until_it_no_longer_fits() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::create("portico-ca").unwrap();
    let server = |names: &[&str], life| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        Profile::server("portico", &names, life)
    };
    let issue = |authority: &Authority, profile: &Profile| {
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
    let stranger = Authority::create("portico-ca").unwrap();
    assert!(
        issue(&stranger, &server(&["localhost", "10.0.0.1"], 24 * HOUR)).1,
        "another authority of the same name"
    );
}

#[test]
fn a_pair_that_somebody_else_made_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (Authority::create("ours").unwrap(), Authority::create("theirs").unwrap());
    let profile = Profile::server("portico", &["localhost".to_owned()], 24 * HOUR);
    let (foreign, _) = theirs.load_or_issue(dir.path(), "apiserver", &profile).unwrap();
    let refused = ours.load_or_issue(dir.path(), "apiserver", &profile).unwrap_err();
    assert!(matches!(refused, PkiError::Foreign { .. }), "{refused}");
    let kept = ours.foreign_pair(dir.path(), "apiserver").unwrap().unwrap();
    assert_eq!((kept.cert_pem, kept.key_pem), (foreign.cert_pem, foreign.key_pem));
    assert!(theirs.foreign_pair(dir.path(), "apiserver").unwrap().is_none());
    assert!(ours.foreign_pair(dir.path(), "other").unwrap().is_none());
    // A single file of the pair is not overwritten either.
    for lost in ["apiserver.crt", "apiserver.key"] {
        theirs.load_or_issue(dir.path(), "other", &profile).unwrap();
        let alone = dir.path().join(lost.replace("apiserver", "other"));
        std::fs::remove_file(&alone).unwrap();
        assert!(ours.load_or_issue(dir.path(), "other", &profile).is_err());
        assert!(!alone.exists());
        for suffix in ["crt", "key"] {
            let _ = std::fs::remove_file(dir.path().join(format!("other.{suffix}")));
        }
    }
    std::fs::write(dir.path().join("apiserver.crt"), "nobody's").unwrap();
    assert!(ours.load_or_issue(dir.path(), "apiserver", &profile).is_err());
    assert_eq!(std::fs::read_to_string(dir.path().join("apiserver.crt")).unwrap(), "nobody's");
}

#[test]
fn keys_that_are_handed_out_are_sec1_and_read_as_such() {
    let authority = Authority::create("ours").unwrap();
    let pair = authority.issue(&Profile::client("alice", &[], HOUR)).unwrap();
    assert!(pair.key_pem.starts_with("-----BEGIN EC PRIVATE KEY-----\n"), "{}", pair.key_pem.len());
    assert!(pair.key_pem.lines().all(|line| line.len() <= 64));
    let key = rustls_pki_types::PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).unwrap();
    assert!(matches!(key, rustls_pki_types::PrivateKeyDer::Sec1(_)));
    // The key matches its certificate.
    pair.cert_pair("alice").unwrap();
}

#[test]
fn a_chain_is_good_only_for_clients_of_the_authority_within_their_time() {
    let (ours, theirs) = (Authority::create("ours").unwrap(), Authority::create("theirs").unwrap());
    let alice = client_pair(&ours, "alice", &[]);
    let client_at = |pair: &CertPair, at| is_client_of(ours.cert_pem(), pair.chain(), at);
    assert!(client_at(&alice, now()));
    assert!(!client_at(&alice, later(2 * HOUR)), "expired");
    assert!(!client_at(&client_pair(&theirs, "mallory", &[]), now()), "of another authority");
    assert!(!client_at(&server_pair(&ours, &["localhost"]), now()), "a server's");
    assert!(!is_client_of(ours.cert_pem(), &[], now()), "nothing at all");
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
    let pair = Authority::create("ca").unwrap().issue(&Profile::client("a", &[], HOUR)).unwrap();
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
    let client = authority.sign(&request, &Profile::client("facade", &["facades"], life)).unwrap();
    let info = CertInfo::parse(&parse_certs("client", client.cert_pem.as_bytes()).unwrap()[0]).unwrap();
    assert_eq!(
        (info.common_name.as_str(), info.organizations.as_slice()),
        ("facade", &["facades".to_owned()][..])
    );
    assert!(info.dns_names.is_empty());
    let server = authority.sign(&request, &Profile::server("facade", &[], life)).unwrap();
    let info = CertInfo::parse(&parse_certs("server", server.cert_pem.as_bytes()).unwrap()[0]).unwrap();
    assert_eq!(info.dns_names, ["facade.example.com"]);
    assert!(info.organizations.is_empty());
    assert!(authority.sign("no request", &Profile::server("facade", &[], life)).is_err());
}
