//! TLS handshakes that cost the server more than the client.

use portico_tests::{Launch, Portico, WAIT_LIMIT};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::bystander::Bystander;

const CONNECTIONS: usize = 300;

/// Returns the start of a TLS record of this type and length, followed by zeros only.
fn record(kind: u8, length: u16) -> Vec<u8> {
    let mut record = vec![kind, 3, 1];
    record.extend(length.to_be_bytes());
    record.resize(record.len() + usize::from(length), 0);
    record
}

/// Bytes that are no handshake, or an incomplete one.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_hellos_end_at_once_and_incomplete_ones_time_out() {
    let portico = Launch::new().args(&["--tls-handshake-timeout", "500ms"]).start().await;
    let bystander = Bystander::start(&portico);
    let half_hello = [&[22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3][..], &[7; 32]].concat();
    let cases = [
        record(22, 16_000),
        record(23, 16_384),
        record(21, 2),
        record(20, 1),
        record(22, u16::MAX),
        half_hello,
        vec![0x80, 0x2e, 1, 0, 2],
    ];
    for address in [portico.https(), portico.grpc()] {
        for bytes in &cases {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            let mut rest = Vec::new();
            let ended = tokio::time::timeout(WAIT_LIMIT, stream.read_to_end(&mut rest)).await;
            assert!(ended.is_ok(), "{:?}: the connection stays open", &bytes[..5]);
        }
    }
    bystander.finish().await;
}

/// Many concurrent unfinished handshakes cost little memory, and do not delay other clients.
#[tokio::test(flavor = "multi_thread")]
async fn many_unfinished_handshakes_cost_little() {
    let portico: Portico = Launch::new().args(&["--tls-handshake-timeout", "3s"]).start().await;
    let bystander = Bystander::start(&portico);
    let before = portico.resident_kib();
    let mut open = Vec::new();
    for at in 0..CONNECTIONS {
        let address = if at % 2 == 0 { portico.https() } else { portico.grpc() };
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
        open.push(stream);
    }
    let cost = portico.resident_kib().saturating_sub(before);
    assert!(cost < CONNECTIONS as u64 * 64, "{cost} KiB for {CONNECTIONS} connections");
    for mut stream in open {
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(WAIT_LIMIT, stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "an unfinished handshake stays open");
    }
    bystander.finish().await;
}
