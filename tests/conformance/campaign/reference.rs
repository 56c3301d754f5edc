//! A real kube-apiserver with its etcd, from the programs in `KUBE_APISERVER` and `ETCD`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use portico_tests::eventually;
use portico_tests::http::{Http, HttpError};

use crate::fixture::Fixture;

/// Both processes, which end when this is dropped.
pub struct Reference {
    pub address: SocketAddr,
    pub ca: Vec<u8>,
    _processes: [KillOnDrop; 2],
}

/// A process that is killed when this is dropped.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // Fails if the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Reference {
    /// Starts both on empty data with these flags, and waits until they are ready.
    pub async fn start(folder: &Path, flags: &[&str]) -> Self {
        let [clients, peers, address] = [(); 3].map(|()| free_address());
        let (data, certificates) = (folder.join("etcd"), folder.join("apiserver"));
        let url = |address: SocketAddr| format!("http://{address}");
        let mut etcd = program("ETCD");
        etcd.arg("--data-dir").arg(&data).args(["--unsafe-no-fsync", "--log-level", "error"]);
        etcd.args(["--listen-client-urls", &url(clients), "--advertise-client-urls", &url(clients)]);
        etcd.args(["--listen-peer-urls", &url(peers), "--initial-advertise-peer-urls", &url(peers)]);
        etcd.args(["--initial-cluster", &format!("default={}", url(peers))]);
        let mut server = program("KUBE_APISERVER");
        server.args(["--etcd-servers", &url(clients), "--bind-address", "127.0.0.1"]);
        server.args(["--advertise-address", "10.255.255.1", "--secure-port", &address.port().to_string()]);
        server.arg("--cert-dir").arg(&certificates).args(flags);
        let processes = [spawn(&mut etcd), spawn(&mut server)];
        let ca = certificates.join("apiserver.crt");
        let ca =
            eventually("kube-apiserver has a certificate", || std::future::ready(std::fs::read(&ca))).await;
        let token = Fixture::tokens()["admin"];
        let client = Http::new(address, &ca).with_token(token);
        eventually("kube-apiserver is ready", || async {
            let request = http::Request::get("/readyz").body(http_body_util::Full::default())?;
            let answer = client.fetch(request).await?;
            if answer.status.is_success() { Ok::<_, HttpError>(()) } else { Err(answer.text().into()) }
        })
        .await;
        Self { address, ca, _processes: processes }
    }
}

fn program(variable: &str) -> Command {
    Command::new(std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} names no program")))
}

fn spawn(command: &mut Command) -> KillOnDrop {
    KillOnDrop(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Returns an address with a port that was free at the time of the call.
fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
