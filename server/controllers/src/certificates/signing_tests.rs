//! Tests of requests that are signed, refused and ignored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portico_kit::pki::{Authority, CertInfo, CertProfile, SigningRequest};

use super::*;
use crate::certificates::approver;

const CLIENT: [&str; 2] = ["digital signature", "client auth"];
const SERVER: [&str; 3] = ["digital signature", "key encipherment", "server auth"];
const NODE: &str = "system:node:n1";
const YEAR: i64 = 365 * 86_400;

fn signing() -> (SigningHandler, String) {
    let authority = Authority::create("ca").unwrap();
    let signer = Arc::new(authority.signer().unwrap());
    let current: CurrentSigner = Arc::new(move || Arc::clone(&signer));
    (
        SigningHandler { signers: Signers::with_single_ca(&current), max_life: YEAR },
        authority.cert_pem().to_owned(),
    )
}

/// Returns an approved request with the subject and alternative names of a profile.
fn request(signer: &str, profile: &CertProfile, usages: &[&str]) -> Object {
    let signing_request = SigningRequest::create(profile).unwrap();
    let mut request = Object::default();
    request.set(&["metadata", "name"], "r");
    request.set(&["spec", "request"], STANDARD.encode(signing_request.request_pem));
    request.set(&["spec", "signerName"], signer);
    request.set(&["spec", "usages"], usages);
    request.set(&["spec", "username"], NODE);
    add_condition(&mut request, "Approved", "Because", "");
    request
}

fn client(name: &str, groups: &[&str]) -> CertProfile {
    CertProfile::client(name, groups, Duration::from_secs(3600))
}

fn server(names: &[&str]) -> CertProfile {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut profile = CertProfile::server(NODE, &names, Duration::from_secs(3600));
    profile.organizations = vec!["system:nodes".to_owned()];
    profile
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

/// Returns the message of the Failed condition; `None` if there is a certificate.
fn failure(decided: &Object) -> Option<String> {
    let failed = request::conditions(decided).find(|condition| condition.field("type").str() == "Failed");
    failed.map(|condition| {
        assert_eq!(condition.field("reason").str(), "SignerValidationFailure");
        condition.field("message").str().to_owned()
    })
}

#[test]
fn each_signer_accepts_only_its_requests() {
    let (signing, _) = signing();
    let nodes: &[&str] = &["system:nodes"];
    let rows: [(&str, CertProfile, &[&str], &str); 14] = [
        (API_CLIENT, client("a", &["g", "h"]), &CLIENT, ""),
        (API_CLIENT, client("a", &[]), &SERVER, "invalid usage for client certificate: server auth"),
        (
            API_CLIENT,
            client("a", &[]),
            &CLIENT[..1],
            "missing required usage for client certificate: client auth",
        ),
        (KUBELET_CLIENT, client(NODE, nodes), &CLIENT, ""),
        (KUBELET_CLIENT, client(NODE, &[]), &CLIENT, "subject organization is not system:nodes"),
        (
            KUBELET_CLIENT,
            client(NODE, &["system:nodes", "x"]),
            &CLIENT,
            "subject organization is not system:nodes",
        ),
        (
            KUBELET_CLIENT,
            client("n1", nodes),
            &CLIENT,
            "subject common name does not begin with system:node:",
        ),
        (KUBELET_CLIENT, server(&["a.example"]), &CLIENT, "DNS subjectAltNames are not allowed"),
        (KUBELET_CLIENT, server(&["10.0.0.1"]), &CLIENT, "IP subjectAltNames are not allowed"),
        (
            KUBELET_CLIENT,
            client(NODE, nodes),
            &SERVER,
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (KUBELET_SERVING, server(&["10.0.0.1"]), &SERVER, ""),
        (KUBELET_SERVING, server(&[]), &SERVER, "DNS or IP subjectAltName is required"),
        (
            KUBELET_SERVING,
            server(&["a.example"]),
            &CLIENT,
            "usages did not match [digital signature key encipherment server auth]",
        ),
        (LEGACY_UNKNOWN, client("anything", &[]), &["any", "cert sign"], ""),
    ];
    for (signer, profile, usages, words) in rows {
        let decided = signing.decide(request(signer, &profile, usages), Timestamp::now()).unwrap().unwrap();
        assert_eq!(failure(&decided).unwrap_or_default(), words, "{signer} {profile:?}");
        assert_eq!(request::is_issued(&decided), words.is_empty());
    }
}

#[test]
fn unapproved_requests_and_those_of_other_signers_are_ignored() {
    let (signing, _) = signing();
    let approved_request = || request(API_CLIENT, &client("a", &[]), &CLIENT);
    let is_ignored = |request: Object| signing.decide(request, Timestamp::now()).unwrap().is_none();
    assert!(!is_ignored(approved_request()));
    let (mut pending, mut denied, mut failed) = (approved_request(), approved_request(), approved_request());
    pending.remove(&request::CONDITIONS);
    add_condition(&mut denied, "Denied", "", "");
    add_condition(&mut failed, "Failed", "", "");
    assert!(is_ignored(pending) && is_ignored(denied) && is_ignored(failed));
    assert!(is_ignored(request("example.com/mine", &client("a", &[]), &CLIENT)));
    assert!(is_ignored(request("kubernetes.io/other", &client("a", &[]), &CLIENT)));
    let without_signers = SigningHandler { signers: Signers::default(), max_life: YEAR };
    assert!(without_signers.decide(approved_request(), Timestamp::now()).unwrap().is_none());
}

#[test]
fn a_certificate_has_the_requested_subject_and_the_allowed_duration() {
    let (signing, _) = signing();
    let now = Timestamp::now();
    for (expiration, begins, ends) in [
        (None, -300, YEAR - 300),
        (Some(3600), -300, 3600),
        (Some(60), -300, 600),
        (Some(2 * YEAR), -300, YEAR - 300),
    ] {
        let mut request = request(API_CLIENT, &client("a", &["g", "h"]), &CLIENT);
        if let Some(seconds) = expiration {
            request.set(&["spec", "expirationSeconds"], seconds);
        }
        let decided = signing.decide(request, now).unwrap().unwrap();
        let pem = String::from_utf8(request::certificate(&decided)).unwrap();
        let info = CertInfo::from_pem("leaf", &pem).unwrap();
        assert_eq!(
            (info.common_name.as_str(), info.organizations.as_slice()),
            ("a", &["g".to_owned(), "h".to_owned()][..])
        );
        assert_eq!(
            (info.not_before - now.as_second(), info.not_after - now.as_second()),
            (begins, ends),
            "{expiration:?}"
        );
    }
}

#[test]
fn certificates_end_no_later_than_the_ca() {
    let terms = |now| certificate_terms(&CLIENT, YEAR, now, 1_000_000);
    assert_eq!(terms(900_000).unwrap().not_after, 1_000_000);
    assert!(
        terms(1_000_000).unwrap_err().starts_with("refusing to sign a certificate that expired in the past")
    );
    assert_eq!(terms(1_000_300).unwrap_err(), "the signer has expired: NotAfter=1970-01-12T13:46:40Z");
    let (signing, _) = signing();
    let result = signing.decide(request(API_CLIENT, &client("a", &[]), &CLIENT), at(32_503_680_000));
    assert!(result.unwrap_err().to_string().contains("the signer has expired"));
}

#[test]
fn only_kubelet_requests_are_approved_automatically() {
    let subresources_of = |signer: &str, profile: &CertProfile, usages: &[&str]| {
        let request = request(signer, profile, usages);
        approver::subresources(&request, &parse_request(&request).unwrap())
    };
    let node = client(NODE, &["system:nodes"]);
    assert_eq!(subresources_of(KUBELET_CLIENT, &node, &CLIENT), ["selfnodeclient", "nodeclient"]);
    assert_eq!(
        subresources_of(KUBELET_CLIENT, &client("system:node:n2", &["system:nodes"]), &CLIENT),
        ["nodeclient"]
    );
    assert!(subresources_of(API_CLIENT, &node, &CLIENT).is_empty());
    assert!(subresources_of(KUBELET_CLIENT, &node, &SERVER).is_empty());
    assert!(subresources_of(KUBELET_SERVING, &server(&["10.0.0.1"]), &SERVER).is_empty());
}
