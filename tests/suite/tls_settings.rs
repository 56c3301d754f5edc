//! TLS settings of HTTPS, as seen by a client.

use std::sync::Arc;

use portico_tests::{Launch, Portico};
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Makes a handshake with these versions, offering both HTTP versions.
async fn handshake(
    portico: &Portico,
    versions: &[&'static SupportedProtocolVersion],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(portico.ca()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::from(portico.https().ip());
    TlsConnector::from(Arc::new(config)).connect(name, TcpStream::connect(portico.https()).await?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_select_versions_suites_key_exchanges_and_http2() {
    let chosen = [
        "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "--tls-curve-preferences=24",
        "--disable-http2-serving",
    ];
    let portico = Launch::new().args(&chosen).start().await;
    let stream = handshake(&portico, &[&rustls::version::TLS12]).await.unwrap();
    let (_, session) = stream.get_ref();
    assert_eq!(
        session.negotiated_cipher_suite().unwrap().suite(),
        rustls::CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
    );
    let group = session.negotiated_key_exchange_group().unwrap();
    assert_eq!(group.name(), rustls::NamedGroup::secp384r1);
    assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_below_the_minimum_is_refused() {
    let portico = Launch::new().arg("--tls-min-version=VersionTLS13").start().await;
    let error = handshake(&portico, &[&rustls::version::TLS12]).await.unwrap_err().to_string();
    assert!(error.contains("ProtocolVersion"), "{error}");
    let stream = handshake(&portico, &[&rustls::version::TLS13]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_can_be_shared_if_both_permit_it() {
    let first = Launch::new().arg("--permit-port-sharing").start().await;
    let port = format!("--secure-port={}", first.https().port());
    let second = Launch::new().args(&["--permit-port-sharing", &port]).start().await;
    assert_eq!(first.https(), second.https());
    let (launch, _folder) = Launch::new().arg(&port).prepare_folder();
    let (code, _, error) = launch.run().await;
    assert_eq!(code, Some(1), "{error}");
}
