//! Certificates of facades: signed over the configuration connection, only for facades.

use portico_kit::pki::{CertInfo, CertProfile, SigningRequest, parse_certs};
use portico_proto::client::{Client, Connection, Credentials};
use portico_proto::config::{CertificateUsage, SignRequest};
use portico_tests::{Launch, Portico};
use std::time::Duration;
use tonic::Code;

/// Returns a request whose subject exceeds the caller's rights.
fn excessive_request() -> SigningRequest {
    let profile = CertProfile::client("root", &["system:masters"], Duration::from_secs(3600));
    SigningRequest::create(&profile).unwrap()
}

fn ask(request: &SigningRequest, usage: CertificateUsage) -> SignRequest {
    SignRequest { certificate_signing_request: request.request_pem.clone(), usage: usage.into() }
}

fn facade_of(portico: &Portico) -> Connection {
    Connection::from_kubeconfig(&portico.data().join("facade.kubeconfig"), None).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_facade_gets_a_successor_of_its_own_certificate_and_calls_with_it() {
    let portico = Launch::server().start().await;
    let connection = facade_of(&portico);
    let client = Client::connect(&connection).unwrap();
    let request = excessive_request();
    let signed = client.config().sign(ask(&request, CertificateUsage::Client)).await.unwrap().into_inner();

    let chain = parse_certs("signed", signed.certificate.as_bytes()).unwrap();
    let info = CertInfo::parse(&chain[0]).unwrap();
    assert_eq!(info.organizations, ["system:portico:facades"], "the request's subject is ignored");
    assert_ne!(info.common_name, "root");
    assert_eq!(info.not_after_text(), signed.not_after);

    let credentials = Credentials::Certificate {
        cert_pem: signed.certificate.into_bytes(),
        key_pem: request.key_pem.clone().into_bytes(),
    };
    let successor = Client::connect(&connection.with_credentials(credentials)).unwrap();
    successor.config().sign(ask(&request, CertificateUsage::Serving)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_facades_get_certificates_and_requests_need_a_usage() {
    let portico = Launch::server().start().await;
    let request = excessive_request();
    let admin = portico.control();
    let refused = admin.config().sign(ask(&request, CertificateUsage::Client)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);

    let refused = admin.config().sign(ask(&request, CertificateUsage::FrontProxy)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);

    let facade = Client::connect(&facade_of(&portico)).unwrap();
    let unused = facade.config().sign(ask(&request, CertificateUsage::Unspecified)).await.unwrap_err();
    assert_eq!(unused.code(), Code::InvalidArgument);
    let garbage = SignRequest {
        certificate_signing_request: "no request".into(),
        usage: CertificateUsage::Client.into(),
    };
    assert_eq!(facade.config().sign(garbage).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn front_proxy_certificates_have_a_fixed_name() {
    let portico = Launch::server().start().await;
    let client = Client::connect(&facade_of(&portico)).unwrap();
    let signed = client.config().sign(ask(&excessive_request(), CertificateUsage::FrontProxy)).await.unwrap();
    let info = CertInfo::from_pem("signed", &signed.into_inner().certificate).unwrap();
    assert_eq!((info.common_name.as_str(), info.organizations.len()), ("front-proxy-client", 0));
    assert_eq!(info.issuer, "portico-front-proxy-ca", "no certificate of the internal CA");

    let without = Launch::server().arg("--own-front-proxy=false").start().await;
    let client = Client::connect(&facade_of(&without)).unwrap();
    let refused =
        client.config().sign(ask(&excessive_request(), CertificateUsage::FrontProxy)).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
}
