//! The test harness: the real binary in real processes, clients of its listeners, and backends with configurable faults.
//!
//! Does not depend on the internals of the system: everything goes through HTTPS, gRPC, files and signals. Functions panic with
//! the observed state, because only tests use them.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a harness fails by panicking")]

mod access_review;
mod admission;
pub mod backend;
mod balanced_client;
pub mod binary;
pub mod browser;
pub mod clients;
mod conversion;
pub mod disk;
mod etcd;
mod etcd_cluster;
pub mod faults;
pub mod http;
pub mod http2;
mod image_review;
mod key_service;
mod kube_apiserver;
pub mod kubelet;
pub mod objects;
pub mod pki;
mod postgres;
pub mod process;
pub mod reference;
mod swept_folder;
pub mod token_issuer;
pub mod token_signer;
pub mod tools;
pub mod wait;
mod wire;

pub use backend::{Backend, Behavior, ReceivedRequest, SERVER_NAME};
pub use balanced_client::BalancedClient;
pub use binary::{binary, example_backend, other_binary};
pub use browser::Browser;
pub use etcd::EtcdServer;
pub use etcd_cluster::{EtcdCluster, MEMBERS as ETCD_MEMBERS};
pub use key_service::KeyServicePlugin;
pub use kube_apiserver::KubeApiserver;
pub use kubelet::SpdyKubelet;
pub use postgres::PostgresServer;
pub use process::{Launch, Portico};
pub use wait::{WAIT_LIMIT, eventually, wait_until, within};
pub use wire::Wire;

/// Installs the crypto provider for rustls, for clients that use the process's default.
pub fn install_provider() {
    // Fails only if a provider is installed already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// Returns an address of this machine that is reachable from other machines. `None`, and a report, if there is none.
pub fn own_address() -> Option<std::net::IpAddr> {
    // Connecting a UDP socket sends nothing; it only selects the source address.
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let address = probe.connect("192.0.2.1:9").and_then(|()| probe.local_addr());
    let own = address.ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback());
    if own.is_none() {
        report_skip("this machine has no address but loopback");
    }
    own
}

/// Prints a measurement of a test, bypassing the capturing of output.
pub fn report_measurement(what: &str) {
    use std::io::Write as _;
    // Not eprintln, which is captured.
    std::io::stderr().write_all(format!("MEASURED: {what}\n").as_bytes()).unwrap();
}

/// Reports that a test checks nothing, or not everything, on this machine, bypassing the capturing of output. `PORTICO_STRICT`
/// makes this a failure; `PORTICO_SKIPS` names a file to which the reason is added (`.ci/run` reads it).
pub fn report_skip(why: &str) {
    use std::io::Write as _;
    assert!(std::env::var_os("PORTICO_STRICT").is_none(), "skipped: {why}");
    // Not eprintln, which is captured.
    std::io::stderr().write_all(format!("SKIPPED: {why}\n").as_bytes()).unwrap();
    if let Some(file) = std::env::var_os("PORTICO_SKIPS") {
        let mut file = std::fs::File::options().append(true).create(true).open(file).unwrap();
        file.write_all(format!("test ({why})\n").as_bytes()).unwrap();
    }
}
