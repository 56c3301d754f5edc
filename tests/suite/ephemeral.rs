//! `portico run`: a server that runs as long as one program, and removes its files.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use portico_tests::{binary, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A shell with a temporary folder, which is also its folder of temporary files.
struct Shell {
    folder: TempDir,
}

impl Shell {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("portico-test-").tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.current_dir(self.path()).env("TMPDIR", self.path().join("tmp")).stdin(Stdio::null());
        command.args(arguments);
        command
    }

    /// Runs a command; returns exit code, standard output, standard error.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Returns the content of the temporary folder.
    fn temporary_files(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.path().join("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

/// Program that writes its process ID, waits for a signal to end, and exits with this code.
const WAITS: &str = "trap 'echo heard >>heard; exit 5' TERM; echo $$ >pid; while :; do sleep 0.01; done";

#[tokio::test(flavor = "multi_thread")]
async fn a_program_gets_a_ready_server_and_no_files_remain() {
    let shell = Shell::new();
    let script = "test -f \"$KUBECONFIG\" && test -f \"$PORTICO_CERTS/internal-ca.crt\" && \
        echo \"$PORTICO_URL $PORTICO_GRPC $1\" && cp \"$KUBECONFIG\" kept && \
        cp \"$PORTICO_CERTS/internal-ca.crt\" ca.crt && exit 7";
    let (code, out, err) = shell.run(&["run", "--ephemeral", "--", "sh", "-c", script, "sh", "--help"]);
    assert_eq!((code, err.as_str()), (Some(7), ""), "{out}");
    let words: Vec<&str> = out.split_whitespace().collect();
    assert!(words[0].starts_with("https://127.0.0.1:") && words[1].starts_with("127.0.0.1:"), "{out}");
    assert_eq!(words[2..], ["--help"], "arguments behind -- are those of the program");
    let kubeconfig = kube::config::Kubeconfig::read_from(shell.path().join("kept")).unwrap();
    assert_eq!(kubeconfig.current_context.as_deref(), Some("portico"));
    assert!(shell.temporary_files().is_empty(), "{:?}", shell.temporary_files());
    assert!(!shell.path().join("portico-data").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_serves_the_program() {
    let shell = Shell::new();
    let script = "curl -sS --fail --cacert $PORTICO_CERTS/internal-ca.crt --cert $PORTICO_CERTS/admin.crt \
        --key $PORTICO_CERTS/admin.key $PORTICO_URL/api/v1/namespaces/default";
    let Ok(curl) = Command::new("curl").arg("--version").output() else {
        return portico_tests::report_skip("curl is not installed");
    };
    assert!(curl.status.success());
    let (code, out, err) = shell.run(&["run", "--ephemeral", "--", "sh", "-c", script]);
    assert_eq!(code, Some(0), "{err}");
    let namespace: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(namespace["metadata"]["name"], "default");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_run_at_a_time() {
    let shell = Shell::new();
    const SCRIPT: &str = "echo >run.$$; while :; do sleep 0.01; done";
    let run = || shell.command(&["run", "--ephemeral", "--", "sh", "-c", SCRIPT]);
    let mut children: Vec<_> = (0..3).map(|_| run().spawn().unwrap()).collect();
    wait_until("three programs run", async || {
        let files = std::fs::read_dir(shell.path()).unwrap();
        files.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with("run.")).count()
            == 3
    })
    .await;
    assert_eq!(shell.temporary_files().len(), 3);
    for child in &mut children {
        assert!(child.try_wait().unwrap().is_none());
        kill_process(Pid::from_child(child), Signal::TERM).unwrap();
    }
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(143));
    }
    assert!(shell.temporary_files().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_are_forwarded_and_the_program_ends_the_server() {
    let shell = Shell::new();
    let mut child = shell.command(&["run", "--ephemeral", "--", "sh", "-c", WAITS]).spawn().unwrap();
    wait_until("the program runs", async || shell.path().join("pid").exists()).await;
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert_eq!(std::fs::read_to_string(shell.path().join("heard")).unwrap(), "heard\n");
    assert!(shell.temporary_files().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_ends_with_the_exit_code_that_a_shell_would_report() {
    let shell = Shell::new();
    let (code, ..) = shell.run(&["run", "--ephemeral", "--", "sh", "-c", "kill -KILL $$"]);
    assert_eq!(code, Some(137));
    let (code, _, err) = shell.run(&["run", "--ephemeral", "--", "no-such-program"]);
    assert_eq!((code, err.as_str()), (Some(127), "portico: no-such-program: no such file or directory\n"));
    let (code, _, err) = shell.run(&["run", "--ephemeral", "--", "/dev/null"]);
    assert_eq!(code, Some(126), "{err}");
    for (line, message) in [
        (&["kubectl", "get", "cm"][..], "a program to run goes behind --: portico run -- CMD ARGS"),
        (&["--"], "name the program to run: portico run -- CMD ARGS"),
        (&["--", ""], "the name of the program to run is empty"),
    ] {
        let (code, _, err) = shell.run(&[&["run", "--ephemeral"], line].concat());
        assert_eq!(code, Some(2), "{line:?}: {err}");
        assert!(err.contains(message) && err.lines().count() <= 3, "{line:?}: {err}");
    }
    for flag_text in ["--data-dir=x", "--etcd-servers=http://127.0.0.1:1"] {
        let (code, _, err) = shell.run(&["run", "--ephemeral", flag_text, "--", "true"]);
        let flag = flag_text.split('=').next().unwrap();
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("--ephemeral") && err.contains(flag) && err.lines().count() == 1, "{err}");
    }
    assert!(shell.temporary_files().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_may_run_with_a_persistent_server() {
    let shell = Shell::new();
    let run =
        ["run", "--secure-port=0", "--control-address=127.0.0.1:0", "--", "sh", "-c", "echo $KUBECONFIG"];
    let (code, out, err) = shell.run(&run);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.trim_end().ends_with("portico-data/admin.kubeconfig"), "{out}");
    assert!(shell.path().join("portico-data/portico.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_program_the_server_runs_until_interrupted() {
    let shell = Shell::new();
    let addresses = shell.path().join("addresses.json");
    let flag = format!("--addresses-file={}", addresses.display());
    let mut command = shell.command(&["run", "--ephemeral", &flag]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the server is ready", async || addresses.exists()).await;
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.status.signal()), (Some(0), None));
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(
        out.starts_with("portico is ready in") && out.contains("kubeconfig") && out.contains("/console/"),
        "{out}"
    );
    assert!(shell.temporary_files().is_empty() && !addresses.exists());
}
