//! A real kube-apiserver on an etcd, if the variable `KUBE_APISERVER` contains the path of its program.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use http::Request;
use http_body_util::Full;
use rustix::process::{Pid, Signal, kill_process};

use crate::http::Http;
use crate::pki::{Authority, self_signed};
use crate::{EtcdServer, report_skip, wait_until};

/// Variable with the path of the program.
const PROGRAM: &str = "KUBE_APISERVER";
/// Token file with the administrator.
const TOKENS: &str = "token-of-admin,admin,1,system:masters\n";

/// A running kube-apiserver.
pub struct KubeApiserver {
    folder: tempfile::TempDir,
    running: Child,
    address: SocketAddr,
    ca: String,
}

impl KubeApiserver {
    /// Starts a kube-apiserver on the data of this etcd, with further flags. `None`, and a report, if there is no program.
    pub async fn start(etcd: &EtcdServer, flags: &[&str]) -> Option<Self> {
        let Some(program) = std::env::var_os(PROGRAM).map(PathBuf::from) else {
            report_skip("KUBE_APISERVER names no kube-apiserver");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("portico-kube-").tempdir().unwrap();
        let authority = Authority::new("kube-test-ca");
        let (pair, signer) = (authority.server(&["localhost", "127.0.0.1"]), self_signed(&["signer"]));
        let file = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            path.display().to_string()
        };
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "SIGKILL"]).arg(program);
        for (flag, value) in [
            ("--etcd-servers", etcd.url()),
            ("--secure-port", address.port().to_string()),
            ("--cert-dir", folder.path().join("certs").display().to_string()),
            ("--tls-cert-file", file("tls.crt", &pair.cert)),
            ("--tls-private-key-file", file("tls.key", &pair.key)),
            // It can read the public key of a certificate, but not of a PKCS#8 key.
            ("--service-account-key-file", file("signer.crt", &signer.cert)),
            ("--service-account-signing-key-file", file("signer.key", &signer.key)),
            ("--token-auth-file", file("tokens.csv", TOKENS)),
        ] {
            command.arg(format!("{flag}={value}"));
        }
        command.args([
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--authorization-mode=RBAC",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
        ]);
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        command.args(flags).stdout(Stdio::null()).stderr(log);
        let running = command.spawn().unwrap();
        let server = Self { folder, running, address, ca: authority.pem };
        wait_until(&format!("kube-apiserver is ready; {}", server.log()), async || {
            let ready = Request::get("/readyz").body(Full::default()).unwrap();
            server.admin().fetch(ready).await.is_ok_and(|answer| answer.status.as_u16() == 200)
        })
        .await;
        Some(server)
    }

    /// Returns a client of the administrator.
    pub fn admin(&self) -> Http {
        Http::new(self.address, self.ca.as_bytes()).with_token("token-of-admin")
    }

    /// Returns the log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for KubeApiserver {
    fn drop(&mut self) {
        kill_process(Pid::from_child(&self.running), Signal::KILL).unwrap();
        self.running.wait().unwrap();
    }
}
