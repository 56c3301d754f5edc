//! Tests of the chain with real certificates, tokens and headers, compared with upstream's results.

use std::time::Duration;

use portico_machinery::user::{AUTHENTICATED, MASTERS};
use rcgen::string::{BmpString, TeletexString};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use rustls_pki_types::CertificateDer;

use super::*;
use crate::headers::{NoHeaders, NotUtf8};

struct Ca {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
}

impl Ca {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let der = params.self_signed(&key).unwrap().der().clone();
        Self { issuer: Issuer::new(params, key), der }
    }

    fn authority(&self) -> TrustedAuthority {
        TrustedAuthority::new(std::slice::from_ref(&self.der)).unwrap()
    }

    fn params(cn: &str, groups: &[&str]) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if !cn.is_empty() {
            params.distinguished_name.push(DnType::CommonName, cn);
        }
        for group in groups.iter().take(1) {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params
    }

    fn sign(&self, params: CertificateParams) -> PeerChain {
        let key = KeyPair::generate().unwrap();
        let der = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        PeerChain::new(&[der]).unwrap()
    }

    fn client(&self, cn: &str, groups: &[&str]) -> PeerChain {
        self.sign(Self::params(cn, groups))
    }

    fn expired(&self, cn: &str) -> PeerChain {
        let mut params = Self::params(cn, &[]);
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        self.sign(params)
    }
}

struct Fixture {
    client: Ca,
    proxy: Ca,
    internal: Ca,
    chain: AuthenticatorChain,
}

const TOKENS: &str = "admin-token,admin,uid-admin,system:masters\nbob-token,bob,uid-bob,\"dev,ops\"\nspy,spy,u,system:portico:facades\n";

fn fixture() -> Fixture {
    let (client, proxy, internal) = (Ca::new("client"), Ca::new("proxy"), Ca::new("internal"));
    let front = RequestHeaderConfig {
        allowed_names: vec!["front-proxy-client".into()],
        ..RequestHeaderConfig::new(proxy.authority())
    };
    let chain = AuthenticatorChain::default()
        .with_request_header(front)
        .with_internal_authority(internal.authority())
        .with_client_authority(client.authority())
        .with_tokens(Arc::new(TokenFile::parse(TOKENS).unwrap()))
        .with_anonymous(true);
    Fixture { client, proxy, internal, chain }
}

/// Returns `name[groups]`, `anonymous`, or `401`.
fn authenticate(
    chain: &AuthenticatorChain,
    peer: Option<&PeerChain>,
    token: &str,
    fields: &[(&str, &str)],
) -> String {
    let authorization = format!("Bearer {token}");
    let credentials = Credentials {
        authorization: (!token.is_empty()).then_some(authorization.as_bytes()),
        websocket_protocols: None,
        peer,
        headers: &fields,
        path: None,
    };
    match chain.authenticate(&credentials).outcome {
        AuthnOutcome::Authenticated(user, _) => format!("{}[{}]", user.name, user.groups.join(" ")),
        AuthnOutcome::Anonymous(_) => "anonymous".into(),
        AuthnOutcome::Unauthorized(_) | AuthnOutcome::NeedsReview(_) => "401".into(),
    }
}

/// Description, certificate, token, header fields, expected identity.
type Row<'a> = (&'a str, Option<&'a PeerChain>, &'a str, &'a [(&'a str, &'a str)], &'a str);

#[test]
fn conflicting_credentials_are_resolved_as_upstream_does() {
    let w = fixture();
    let alice = w.client.client("cert-alice", &["dev"]);
    let rogue = Ca::new("rogue").client("rogue", &["system:masters"]);
    let expired = w.client.expired("late");
    let front = w.proxy.client("front-proxy-client", &[]);
    let other = w.proxy.client("stranger", &[]);
    let paula = [("X-Remote-User", "paula"), ("X-Remote-Group", "painters"), ("x-remote-group", "plumbers")];
    let masters = [("X-Remote-User", "paula"), ("X-Remote-Group", MASTERS)];
    let empty = [("X-Remote-User", ""), ("X-Remote-Group", MASTERS)];
    let dev = format!("cert-alice[dev {AUTHENTICATED}]");
    let bob = format!("bob[dev ops {AUTHENTICATED}]");
    let proxied = format!("paula[painters plumbers {AUTHENTICATED}]");
    let rows: [Row<'_>; 18] = [
        ("nothing", None, "", &[], "anonymous"),
        ("a token", None, "bob-token", &[], &bob),
        ("an unknown token", None, "nobody", &[], "401"),
        ("a token in other case", None, "Bob-Token", &[], "401"),
        ("a certificate", Some(&alice), "", &[], &dev),
        ("a certificate and a token", Some(&alice), "bob-token", &[], &dev),
        ("a certificate and a bad token", Some(&alice), "nobody", &[], &dev),
        ("another authority's certificate", Some(&rogue), "", &[], "401"),
        ("another authority's certificate and a token", Some(&rogue), "bob-token", &[], &bob),
        ("an expired certificate", Some(&expired), "", &[], "401"),
        ("an expired certificate and a token", Some(&expired), "bob-token", &[], &bob),
        ("the front proxy", Some(&front), "", &paula, &proxied),
        ("the front proxy and a token", Some(&front), "bob-token", &paula, &proxied),
        ("the front proxy without a user", Some(&front), "", &[], "401"),
        ("the front proxy with an empty user", Some(&front), "", &empty, "401"),
        ("the front proxy without a user but a token", Some(&front), "bob-token", &[], &bob),
        ("another certificate of the front-proxy authority", Some(&other), "", &masters, "401"),
        ("front-proxy headers with a client certificate", Some(&alice), "", &masters, &dev),
    ];
    for (name, peer, token, fields, want) in rows {
        assert_eq!(authenticate(&w.chain, peer, token, fields), want, "{name}");
        assert_eq!(authenticate(&w.chain, peer, token, fields), want, "{name}, cached");
    }
    assert_eq!(authenticate(&w.chain, None, "", &masters), "anonymous");
    let strict = w.chain.clone().with_anonymous(false);
    assert_eq!(authenticate(&strict, None, "", &[]), "401");
}

#[test]
fn a_certificate_names_user_groups_uid_and_its_own_hash() {
    let w = fixture();
    let mut params = Ca::params("ann", &["qa"]);
    let uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
    params.distinguished_name.push(uid, "u-77");
    let peer = w.client.sign(params);
    let credentials = Credentials {
        authorization: None,
        websocket_protocols: None,
        peer: Some(&peer),
        headers: &NoHeaders,
        path: None,
    };
    let AuthnOutcome::Authenticated(user, method) = w.chain.authenticate(&credentials).outcome else {
        panic!("not authenticated");
    };
    assert_eq!(
        (user.name.as_str(), user.uid.as_str(), method),
        ("ann", "u-77", AuthnMethod::ClientCertificate)
    );
    let id = &user.extra["authentication.kubernetes.io/credential-id"][0];
    assert!(id.starts_with("X509SHA256=") && id.len() == 11 + 64, "{id}");
}

#[test]
fn names_in_older_encodings_are_decoded_and_none_is_omitted() {
    let w = fixture();
    for (group, name) in [
        (DnValue::BmpString(BmpString::try_from("gr\u{f6}\u{df}e").unwrap()), "gr\u{f6}\u{df}e"),
        (DnValue::TeletexString(TeletexString::try_from("ops").unwrap()), "ops"),
    ] {
        let mut params = Ca::params("ann", &[]);
        params.distinguished_name.push(DnType::OrganizationName, group);
        assert_eq!(w.client.sign(params).claimed_user().unwrap().groups, [name]);
    }
    let mut params = Ca::params("ann", &[]);
    let unread = rcgen::string::UniversalString::try_from("ops").unwrap();
    params.distinguished_name.push(DnType::OrganizationName, DnValue::UniversalString(unread));
    assert_eq!(w.client.sign(params).claimed_user(), None);
}

#[test]
fn certificates_that_may_sign_or_have_any_purpose_are_accepted_for_clients() {
    let ca = Ca::new("client");
    let sign = |purposes: &[ExtendedKeyUsagePurpose], is_ca| {
        let mut params = Ca::params("ann", &[]);
        params.extended_key_usages = purposes.to_vec();
        params.is_ca = if is_ca { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::NoCa };
        ca.sign(params)
    };
    use ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth};
    let rows: [(&[_], bool, bool); 6] = [
        (&[Any], false, true),
        (&[], true, true),
        (&[ClientAuth], true, true),
        (&[Any, ServerAuth], true, true),
        (&[ServerAuth], true, false),
        (&[ServerAuth], false, false),
    ];
    for (purposes, is_ca, is_good) in rows {
        let peer = sign(purposes, is_ca);
        assert_eq!(ca.authority().verify(&peer, UnixTime::now()).is_ok(), is_good, "{purposes:?} {is_ca}");
        let other = Ca::new("client").authority();
        assert!(other.verify(&peer, UnixTime::now()).is_err(), "another key: {purposes:?} {is_ca}");
    }
    let mut expired = Ca::params("ann", &[]);
    expired.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    expired.not_after = rcgen::date_time_ymd(2021, 1, 1);
    assert!(ca.authority().verify(&ca.sign(expired), UnixTime::now()).is_err());
    let mut unknown = Ca::params("ann", &[]);
    unknown.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let mut extension = rcgen::CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
    extension.set_criticality(true);
    unknown.custom_extensions.push(extension);
    assert!(ca.authority().verify(&ca.sign(unknown), UnixTime::now()).is_err(), "a critical extension");
}

#[test]
fn a_trusted_certificate_without_a_name_is_ignored() {
    let w = fixture();
    let nameless = w.client.client("", &["dev"]);
    let chain =
        AuthenticatorChain::default().with_client_authority(w.client.authority()).with_anonymous(true);
    assert_eq!(authenticate(&chain, Some(&nameless), "", &[]), "anonymous");
}

#[test]
fn only_the_internal_authority_identifies_facades() {
    let w = fixture();
    let facade = w.internal.client("facade-1", &[FACADES_GROUP]);
    let fake = w.client.client("facade-1", &[FACADES_GROUP]);
    let front = w.proxy.client("front-proxy-client", &[]);
    let claims = [("X-Remote-User", "facade-1"), ("X-Remote-Group", FACADES_GROUP)];
    assert_eq!(
        authenticate(&w.chain, Some(&facade), "", &[]),
        format!("facade-1[{FACADES_GROUP} {AUTHENTICATED}]")
    );
    assert_eq!(authenticate(&w.chain, Some(&fake), "", &[]), format!("facade-1[{AUTHENTICATED}]"));
    assert_eq!(authenticate(&w.chain, Some(&front), "", &claims), format!("facade-1[{AUTHENTICATED}]"));
    assert_eq!(authenticate(&w.chain, None, "spy", &[]), format!("spy[{AUTHENTICATED}]"));
}

#[test]
fn requests_of_one_connection_share_a_user_per_authority() {
    let ca = Ca::new("both");
    let peer = ca.client("facade-1", &[FACADES_GROUP]);
    let credentials = Credentials {
        authorization: None,
        websocket_protocols: None,
        peer: Some(&peer),
        headers: &NoHeaders,
        path: None,
    };
    let user_of = |chain: &AuthenticatorChain| chain.authenticate(&credentials).user().unwrap();
    let internal = AuthenticatorChain::default().with_internal_authority(ca.authority());
    let client = AuthenticatorChain::default().with_client_authority(ca.authority());
    assert!(
        Arc::ptr_eq(&user_of(&internal), &user_of(&internal))
            && Arc::ptr_eq(&user_of(&client), &user_of(&client))
    );
    assert_eq!(user_of(&internal).groups, [FACADES_GROUP, AUTHENTICATED]);
    assert_eq!(user_of(&client).groups, [AUTHENTICATED]);
    assert!(
        AuthenticatorChain::default()
            .with_client_authority(Ca::new("other").authority())
            .authenticate(&credentials)
            .user()
            .is_err()
    );
}

#[test]
fn extra_fields_and_uid_come_from_configured_headers_only() {
    let w = fixture();
    let front = w.proxy.client("p", &[]);
    let fields = [
        ("X-Remote-User", "paula"),
        ("X-Remote-Uid", "u1"),
        ("X-Remote-Extra-Scopes", "read"),
        ("x-remote-extra-scopes", "write"),
        ("X-Remote-Extra-Acme.com%2fproject", "p1"),
    ];
    let user = |proxy: RequestHeaderConfig| {
        let credentials = Credentials {
            authorization: None,
            websocket_protocols: None,
            peer: Some(&front),
            headers: &&fields[..],
            path: None,
        };
        AuthenticatorChain::default().with_request_header(proxy).authenticate(&credentials).user().unwrap()
    };
    let usual = user(RequestHeaderConfig::new(w.proxy.authority()));
    assert_eq!(usual.uid, "");
    assert_eq!(usual.extra["scopes"], ["read", "write"]);
    assert_eq!(usual.extra["acme.com/project"], ["p1"]);
    let with_uid = RequestHeaderConfig {
        uid_headers: vec!["X-Remote-Uid".into()],
        ..RequestHeaderConfig::new(w.proxy.authority())
    };
    assert_eq!(user(with_uid).uid, "u1");
}

#[test]
fn a_verdict_ends_with_the_certificate_and_with_the_bundle() {
    let w = fixture();
    let mut params = Ca::params("brief", &[]);
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2020, 1, 2);
    let peer = w.client.sign(params);
    let end = x509::not_after(peer.leaf_for_tests()).unwrap();
    let at = |seconds: u64| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    let authority = w.client.authority();
    assert_eq!(authority.verify(&peer, at(end - 10)), Ok(()));
    assert_eq!(authority.verify(&peer, at(end - 1)), Ok(()));
    assert!(authority.verify(&peer, at(end + 1)).is_err());
    assert!(authority.verify(&peer, at(end + 2)).is_err());
    assert_eq!(authority.verify(&peer, at(end - 10)), Ok(()), "a clock set back");
    assert!(
        Ca::new("client").authority().verify(&peer, at(end - 10)).is_err(),
        "another bundle of that name"
    );
}

#[test]
fn a_websocket_token_counts_as_a_token() {
    let w = fixture();
    let ask = |protocols: &str| {
        let credentials = Credentials {
            authorization: None,
            websocket_protocols: Some(protocols.as_bytes()),
            peer: None,
            headers: &NoHeaders,
            path: None,
        };
        w.chain.authenticate(&credentials).outcome
    };
    let bob = "base64url.bearer.authorization.k8s.io.Ym9iLXRva2Vu";
    assert!(matches!(
        ask(&format!("{bob}, v4.channel.k8s.io")),
        AuthnOutcome::Authenticated(_, AuthnMethod::WebSocketToken)
    ));
    assert!(matches!(ask("v4.channel.k8s.io"), AuthnOutcome::Anonymous(_)));
    assert!(matches!(ask(bob), AuthnOutcome::Unauthorized(_)));
}

#[test]
fn an_extra_space_warns_and_other_schemes_are_ignored() {
    let w = fixture();
    let ask = |header: &str| {
        let credentials = Credentials {
            authorization: Some(header.as_bytes()),
            websocket_protocols: None,
            peer: None,
            headers: &NoHeaders,
            path: None,
        };
        w.chain.authenticate(&credentials)
    };
    let spaced = ask("Bearer  bob-token");
    assert_eq!(spaced.warning, Some(EXTRA_SPACE_WARNING));
    assert!(matches!(spaced.outcome, AuthnOutcome::Anonymous(_)));
    assert!(matches!(ask("Bearer ädmin").outcome, AuthnOutcome::Unauthorized(_)));
    assert!(matches!(ask("Basic YWRtaW46YWRtaW4=").outcome, AuthnOutcome::Anonymous(_)));
    assert!(matches!(
        ask("bearer bob-token").outcome,
        AuthnOutcome::Authenticated(_, AuthnMethod::BearerToken)
    ));
}

#[test]
fn the_audit_message_names_the_methods_that_were_tried() {
    let w = fixture();
    let rogue = Ca::new("rogue").client("r", &[]);
    let credentials = Credentials {
        authorization: Some(b"Bearer nobody"),
        websocket_protocols: None,
        peer: Some(&rogue),
        headers: &NoHeaders,
        path: None,
    };
    let refusal = w.chain.authenticate(&credentials).user().unwrap_err();
    assert_eq!(refusal.audit_message(), "Authentication failed, attempted: bearer, x509");
    assert!(refusal.errors.contains(&AuthnError::InvalidToken));
    assert_eq!(Unauthorized::default().audit_message(), "Authentication failed, no credentials provided");
}

#[test]
fn front_proxy_headers_that_are_not_utf_8_fail_authentication() {
    let w = fixture();
    let front = w.proxy.client("front-proxy-client", &[]);
    // The certificate of the proxy also names a user, with whom the request must not continue.
    let proxy = RequestHeaderConfig {
        uid_headers: vec!["X-Remote-Uid".into()],
        ..RequestHeaderConfig::new(w.proxy.authority())
    };
    let chain = w.chain.clone().with_client_authority(w.proxy.authority()).with_request_header(proxy);
    let ask = |fields: &[(&str, &[u8])]| {
        let credentials = Credentials {
            authorization: Some(b"Bearer bob-token"),
            websocket_protocols: None,
            peer: Some(&front),
            headers: &fields,
            path: None,
        };
        chain.authenticate(&credentials).user()
    };
    let paula = ("x-remote-user", &b"paula"[..]);
    let jürgen = ask(&[
        ("x-remote-user", "jürgen".as_bytes()),
        ("x-remote-group", b""),
        ("x-remote-group", "größe".as_bytes()),
        ("x-remote-uid", "ü".as_bytes()),
        ("x-remote-extra-a", "\u{7530}".as_bytes()),
    ]);
    let jürgen = jürgen.unwrap();
    assert_eq!((jürgen.name.as_str(), jürgen.uid.as_str()), ("jürgen", "ü"));
    assert_eq!((jürgen.groups[0].as_str(), jürgen.extra["a"][0].as_str()), ("größe", "\u{7530}"));
    for name in ["x-remote-user", "x-remote-group", "x-remote-uid", "x-remote-extra-a"] {
        let mut fields = vec![paula, (name, b"j\xfcrgen")];
        if name == "x-remote-user" {
            fields.remove(0);
        }
        let refusal = ask(&fields).unwrap_err();
        assert_eq!(refusal.errors, [AuthnError::Header(NotUtf8(name.to_owned()))]);
    }
    assert!(ask(&[paula, ("x-remote-extra-%ff", b"1")]).is_err());
}

#[test]
fn identity_headers_are_not_passed_on() {
    let w = fixture();
    for name in ["Authorization", "x-remote-user", "X-REMOTE-UID", "X-Remote-Extra-anything"] {
        assert!(w.chain.consumes_header(name), "{name}");
    }
    assert!(!w.chain.consumes_header("X-Remote") && !w.chain.consumes_header("Accept"));
    let custom = RequestHeaderConfig {
        username_headers: vec!["X-Who".into()],
        ..RequestHeaderConfig::new(w.proxy.authority())
    };
    assert!(AuthenticatorChain::default().with_request_header(custom).consumes_header("x-who"));
}

#[test]
fn a_bundle_without_certificates_is_refused() {
    assert_eq!(TrustedAuthority::from_pem(b"").unwrap_err(), AuthorityError::Empty);
    assert!(matches!(
        TrustedAuthority::from_pem(b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"),
        Err(AuthorityError::Pem(_))
    ));
}

// Created with plain `openssl x509 -req`, so of version 1; valid for 10,000 days from November 2026, signed by the CA.
const VERSION1: &str = include_str!("testdata/version1.crt");
const VERSION1_CA: &str = include_str!("testdata/version1-ca.crt");

#[test]
fn a_version_1_certificate_counts_as_long_as_it_is_in_date_and_its_root_is_trusted() {
    use rustls_pki_types::pem::PemObject;
    let leaf = CertificateDer::from_pem_slice(VERSION1.as_bytes()).unwrap();
    let peer = PeerChain::new(&[leaf]).unwrap();
    let at = |seconds: u64| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    let (before, inside, after) = (at(1_790_000_000), at(1_800_000_000), at(2_800_000_000));
    let root = TrustedAuthority::from_pem(VERSION1_CA.as_bytes()).unwrap();
    assert_eq!(root.verify(&peer, inside), Ok(()));
    assert!(root.verify(&peer, before).is_err() && root.verify(&peer, after).is_err());
    assert!(Ca::new("version one CA").authority().verify(&peer, inside).is_err(), "another key");
    assert_eq!(peer.claimed_user().unwrap().name, "one");
}
