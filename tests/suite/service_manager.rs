//! Operation under a service manager: passed sockets are served, and the manager is notified of state changes.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use portico_tests::{Launch, WAIT_LIMIT};
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixDatagram;

/// Script that acts as systemd: passes sockets from descriptor 3 on, with the variables for the process.
/// Receives them as stdin and stderr.
const PASSES_TWO: &str = "exec 3<&0 4<&2 </dev/null 2>log; export LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=\"$NAMES\"; exec \"$@\"";

/// A process with two passed sockets, and the socket for its notifications.
struct Served {
    child: Child,
    /// Keeps the folder of the process.
    launch: Launch,
    manager: UnixDatagram,
}

impl Served {
    fn start(mut launch: Launch, names: &str, https: TcpListener, grpc: TcpListener) -> Self {
        let command = launch.command();
        let folder = command.get_current_dir().unwrap();
        let manager = UnixDatagram::bind(folder.join("notify")).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", PASSES_TWO, "sh"]).arg(command.get_program()).args(command.get_args());
        shell.current_dir(folder).env("NAMES", names).env("NOTIFY_SOCKET", folder.join("notify"));
        shell.stdin(Stdio::from(OwnedFd::from(https))).stderr(Stdio::from(OwnedFd::from(grpc)));
        let child = shell.stdout(Stdio::null()).spawn().unwrap();
        Self { child, launch, manager }
    }

    async fn notification(&self) -> String {
        let mut bytes = [0; 1024];
        let received = tokio::time::timeout(WAIT_LIMIT, self.manager.recv(&mut bytes)).await;
        String::from_utf8_lossy(&bytes[..received.unwrap().unwrap()]).into_owned()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn folder(&mut self) -> std::path::PathBuf {
        self.launch.command().get_current_dir().map(Path::to_owned).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The process has ended if the test succeeded.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sockets() -> (TcpListener, TcpListener) {
    (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn passed_sockets_are_served_and_the_manager_is_notified() {
    let (https, grpc) = sockets();
    let (https_at, grpc_at) = (https.local_addr().unwrap(), grpc.local_addr().unwrap());
    let mut served = Served::start(Launch::new(), "https:grpc", https, grpc);
    assert_eq!(served.notification().await, "READY=1\n");

    let folder = served.folder();
    let addresses = std::fs::read_to_string(folder.join("addresses.json")).unwrap();
    assert!(
        addresses.contains(&https_at.to_string()) && addresses.contains(&grpc_at.to_string()),
        "{addresses}"
    );
    // The kubeconfig has this address, and the certificate is valid for it.
    let kubeconfig = folder.join("data/admin.kubeconfig");
    let answer = Command::new("kubectl")
        .args(["get", "--raw", "/readyz", "--request-timeout=30s", "--kubeconfig"])
        .arg(kubeconfig)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&answer.stdout), "ok", "{answer:?}");

    served.signal(Signal::HUP);
    assert!(served.notification().await.starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(served.notification().await, "READY=1\n");
    served.signal(Signal::TERM);
    assert_eq!(served.notification().await, "STOPPING=1\n");
    assert!(served.child.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manager_is_notified_while_manifests_are_pending() {
    let (launch, folder) = Launch::new().prepare_folder();
    let manifests = folder.join("manifests");
    std::fs::create_dir(&manifests).unwrap();
    std::fs::write(manifests.join("a.yaml"), "kind: ConfigMap\n").unwrap();
    let launch = launch.args(&["--manifests", manifests.to_str().unwrap()]);
    let (https, grpc) = sockets();
    let mut served = Served::start(launch, "https:grpc", https, grpc);
    let status = served.notification().await;
    assert!(status.starts_with("STATUS=not ready: 1 of 1 documents are not applied: a.yaml, "), "{status}");
    std::fs::write(manifests.join("a.yaml"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")
        .unwrap();
    let mut notifications = [served.notification().await, served.notification().await];
    notifications.sort_unstable();
    assert_eq!(notifications, ["READY=1\n", "STATUS=\n"]);
    served.signal(Signal::TERM);
    assert_eq!(served.notification().await, "STOPPING=1\n");
    assert!(served.child.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_passed_socket_is_an_error() {
    let (https, grpc) = sockets();
    let mut served = Served::start(Launch::new(), "https:https", https, grpc);
    assert_eq!(served.child.wait().unwrap().code(), Some(1));
    // Standard error is the shell's file by then.
    let log = std::fs::read_to_string(served.folder().join("log")).unwrap();
    assert!(log.contains("passed an unexpected socket 'https'"), "{log}");
}
