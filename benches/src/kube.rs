//! kube-apiserver with etcd for comparison, only if `KUBE_APISERVER` and `ETCD` contain the paths of the binaries.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};

use crate::certificates::Certificates;
use crate::https::{Client, Endpoint};
use crate::process::{Process, free_address, wait_until};
use crate::{BenchContext, Failure, registrations};

/// A running kube-apiserver with its etcd.
pub(crate) struct Kube {
    /// Process of kube-apiserver.
    pub(crate) server: Process,
    /// Process of etcd.
    pub(crate) etcd: Process,
    /// Time from the first exec to the first 200 of /readyz.
    pub(crate) startup: Duration,
    address: SocketAddr,
    /// Command that starts kube-apiserver.
    command: Command,
    log: PathBuf,
}

/// Reason for a skipped comparison.
pub(crate) const SKIP_REASON: &str = "set KUBE_APISERVER and ETCD to the paths of the binaries";

impl Kube {
    /// Starts both on empty data and waits until ready; `None` if the variables are not set.
    pub(crate) async fn start(setting: &BenchContext) -> Result<Option<Self>, Failure> {
        Self::with(setting, "RBAC", &[]).await
    }

    /// Starts both in this authorization mode, with further flags.
    pub(crate) async fn with(
        setting: &BenchContext,
        mode: &str,
        flags: &[&str],
    ) -> Result<Option<Self>, Failure> {
        let (Some(binary), Some(etcd)) = (path("KUBE_APISERVER"), path("ETCD")) else { return Ok(None) };
        let folder = setting.new_folder("kube-")?;
        let (address, clients, peers) = (free_address()?, free_address()?, free_address()?);
        let start = Instant::now();
        let etcd =
            Process::start(&mut etcd_command(&etcd, &folder, clients, peers), &folder.join("etcd.log"))?;
        let mut command = server_command(&binary, &setting.certificates, &folder, clients, address);
        command.arg(format!("--authorization-mode={mode}")).args(flags);
        let log = folder.join("kube-apiserver.log");
        let server = start_server(setting, &mut command, &log, address).await?;
        Ok(Some(Self { server, etcd, startup: start.elapsed(), address, command, log }))
    }

    /// Kills kube-apiserver, starts it on the same data, and waits until it is ready.
    pub(crate) async fn restart(&mut self, setting: &BenchContext) -> Result<(), Failure> {
        self.server.kill();
        self.server = start_server(setting, &mut self.command, &self.log, self.address).await?;
        Ok(())
    }

    /// Returns the endpoint with the admin's certificate.
    pub(crate) fn endpoint(&self, setting: &BenchContext) -> Result<Endpoint, Failure> {
        admin(setting, self.address)
    }

    /// Creates the Service of the registrations, which resolves to this backend.
    pub(crate) async fn create_service(
        &self,
        client: &mut Client,
        backend: SocketAddr,
    ) -> Result<(), Failure> {
        let body = registrations::service_json(backend);
        client.send_ok(Method::POST, "/api/v1/namespaces/default/services", body).await?;
        Ok(())
    }
}

/// Starts kube-apiserver and waits until it is ready.
async fn start_server(
    setting: &BenchContext,
    command: &mut Command,
    log: &Path,
    address: SocketAddr,
) -> Result<Process, Failure> {
    let mut server = Process::start(command, log)?;
    // In mode AlwaysAllow, requests without credentials are still rejected.
    let admin = admin(setting, address)?;
    wait_until("kube-apiserver is ready", async || {
        server.check_alive()?;
        Ok(is_ready(&admin).await.then_some(()))
    })
    .await?;
    Ok(server)
}

/// Returns the endpoint of the server at this address with the certificate of its admin.
fn admin(setting: &BenchContext, address: SocketAddr) -> Result<Endpoint, Failure> {
    Ok(Endpoint { address, name: "localhost", tls: setting.certificates.client_tls()? })
}

/// Returns true if `/readyz` returns 200.
pub(crate) async fn is_ready(endpoint: &Endpoint) -> bool {
    let Ok(mut client) = endpoint.client().await else { return false };
    client.get("/readyz").await.is_ok_and(|status| status == StatusCode::OK)
}

fn path(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

fn etcd_command(binary: &Path, folder: &Path, clients: SocketAddr, peers: SocketAddr) -> Command {
    let mut command = Command::new(binary);
    command.arg("--data-dir").arg(folder.join("etcd"));
    for (flag, address) in [
        ("--listen-client-urls", clients),
        ("--advertise-client-urls", clients),
        ("--listen-peer-urls", peers),
        ("--initial-advertise-peer-urls", peers),
    ] {
        command.arg(format!("{flag}=http://{address}"));
    }
    command.arg(format!("--initial-cluster=default=http://{peers}"));
    command
}

fn server_command(
    binary: &Path,
    files: &Certificates,
    folder: &Path,
    etcd: SocketAddr,
    address: SocketAddr,
) -> Command {
    let mut command = Command::new(binary);
    command.arg("--cert-dir").arg(folder.join("certs"));
    command.arg(format!("--etcd-servers=http://{etcd}")).arg(format!("--secure-port={}", address.port()));
    command.args([
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        // The same CA signs client certificates: only this name may set identity headers.
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ]);
    for (flag, file) in [
        // Upstream can read the public key of a certificate, but not of a PKCS#8 key.
        ("--service-account-key-file", "proxy.crt"),
        ("--service-account-signing-key-file", "proxy.key"),
        ("--tls-cert-file", "front.crt"),
        ("--tls-private-key-file", "front.key"),
        ("--client-ca-file", "ca.crt"),
        ("--requestheader-client-ca-file", "ca.crt"),
        ("--proxy-client-cert-file", "proxy.crt"),
        ("--proxy-client-key-file", "proxy.key"),
    ] {
        command.arg(format!("{flag}={}", files.file(file)));
    }
    command
}
