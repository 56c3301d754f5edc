//! `portico testenv`: replaces the programs that controller-runtime's envtest starts, with the arguments that it passes.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use http::Request;
use http_body_util::Full;
use portico_tests::http::{Http, JsonLines};
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::pki::{Authority, self_signed};
use portico_tests::{binary, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

const NAMESPACES: &str = "/api/v1/namespaces";

/// Returns a free address, selected as envtest does.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn temporary() -> TempDir {
    tempfile::Builder::new().prefix("portico-test-").tempdir().unwrap()
}

fn portico(arguments: &[&str]) -> (Option<i32>, String, String) {
    run(Command::new(binary()).args(arguments))
}

fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Programs that `portico testenv install` creates.
struct Assets(TempDir);

impl Assets {
    fn install() -> Self {
        let folder = temporary();
        let (code, out, err) = portico(&["testenv", "install", folder.path().to_str().unwrap()]);
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains("export KUBEBUILDER_ASSETS="), "{out}");
        Self(folder)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Processes that envtest's ControlPlane starts.
struct ControlPlane<'a> {
    assets: &'a Assets,
    folder: TempDir,
    authority: Authority,
    etcd: Child,
    etcd_at: SocketAddr,
    server: Option<Child>,
    /// Second server of the same etcd.
    second: Option<Child>,
    at: SocketAddr,
    flags: Vec<String>,
    env: Vec<(String, String)>,
}

impl<'a> ControlPlane<'a> {
    /// Starts only etcd.
    async fn with_etcd(assets: &'a Assets, etcd_flags: &[&str]) -> Self {
        let (folder, etcd_at) = (temporary(), free_address());
        let authority = Authority::new("envtest-environment");
        let (serving, signer) = (authority.server(&["localhost", "127.0.0.1"]), self_signed(&["envtest"]));
        let certs = folder.path().join("certs");
        std::fs::create_dir(&certs).unwrap();
        for (name, text) in [
            ("apiserver.crt", &serving.cert),
            ("apiserver.key", &serving.key),
            ("sa-signer.crt", &signer.cert),
            ("sa-signer.key", &signer.key),
            ("client-cert-auth-ca.crt", &authority.pem),
        ] {
            std::fs::write(certs.join(name), text).unwrap();
        }
        let etcd = Command::new(assets.program("etcd"))
            .arg(format!("--advertise-client-urls=http://{etcd_at}"))
            .arg(format!("--data-dir={}", folder.path().join("etcd").display()))
            .arg(format!("--listen-client-urls=http://{etcd_at}"))
            .arg(format!("--listen-peer-urls=http://{}", free_address()))
            .args(etcd_flags)
            .spawn()
            .unwrap();
        let plane = Self {
            assets,
            folder,
            authority,
            etcd,
            etcd_at,
            server: None,
            second: None,
            at: free_address(),
            flags: Vec::new(),
            env: Vec::new(),
        };
        wait_until("etcd is healthy", async || plane.ask_etcd("/health").await.is_some()).await;
        plane
    }

    /// Starts etcd and the server.
    async fn start(assets: &'a Assets) -> Self {
        let mut plane = Self::with_etcd(assets, &["--unsafe-no-fsync=true"]).await;
        plane.start_server().await;
        plane
    }

    async fn ask_etcd(&self, path: &str) -> Option<String> {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(self.etcd_at).await.ok()?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200 ").then(|| body.to_owned())
    }

    /// Returns the server command with envtest's flags, and those of `flags`.
    fn server_command(&self) -> Command {
        self.server_command_at(self.at)
    }

    fn server_command_at(&self, at: SocketAddr) -> Command {
        let certs = self.folder.path().join("certs");
        let mut command = Command::new(self.assets.program("kube-apiserver"));
        command
            .arg("--allow-privileged=true")
            .arg("--authorization-mode=RBAC")
            .arg("--bind-address=127.0.0.1")
            .arg(format!("--cert-dir={}", certs.display()))
            .arg(format!("--client-ca-file={}", certs.join("client-cert-auth-ca.crt").display()))
            .arg("--disable-admission-plugins=ServiceAccount")
            .arg(format!("--etcd-servers=http://{}", self.etcd_at))
            .arg(format!("--secure-port={}", at.port()))
            .arg(format!("--service-account-issuer=https://{at}/"))
            .arg(format!("--service-account-key-file={}", certs.join("sa-signer.crt").display()))
            .arg(format!("--service-account-signing-key-file={}", certs.join("sa-signer.key").display()))
            .arg("--service-cluster-ip-range=10.0.0.0/24")
            .args(&self.flags)
            .current_dir(self.folder.path())
            .env("TMPDIR", self.folder.path())
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    async fn start_server(&mut self) {
        self.server = Some(self.spawn("log", self.at));
        self.healthy(self.at).await;
    }

    /// Starts a second server.
    async fn start_second(&mut self) -> SocketAddr {
        let at = free_address();
        self.second = Some(self.spawn("second.log", at));
        self.healthy(at).await;
        at
    }

    fn spawn(&self, log: &str, at: SocketAddr) -> Child {
        let log = std::fs::File::create(self.folder.path().join(log)).unwrap();
        let mut command = self.server_command_at(at);
        command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
    }

    async fn healthy(&self, at: SocketAddr) {
        let anyone = Http::new(at, self.authority.pem.as_bytes());
        wait_until("kube-apiserver is healthy", async || {
            let healthz = Request::get("/healthz").body(Full::default()).unwrap();
            anyone.fetch(healthz).await.is_ok_and(|answer| answer.status == 200)
        })
        .await;
    }

    /// Returns a client of the user that envtest creates.
    fn admin(&self) -> Http {
        self.admin_at(self.at)
    }

    fn admin_at(&self, at: SocketAddr) -> Http {
        let pair = self.authority.client("admin", &["system:masters"]);
        Http::with_certificate(at, self.authority.pem.as_bytes(), Some(&pair))
    }

    /// Stops the server as envtest does.
    fn stop_server(&mut self) -> ExitStatus {
        stop(self.server.take().unwrap())
    }
}

fn stop(mut server: Child) -> ExitStatus {
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    server.wait().unwrap()
}

impl Drop for ControlPlane<'_> {
    fn drop(&mut self) {
        for child in self.server.iter_mut().chain(&mut self.second).chain([&mut self.etcd]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_plane_serves_and_stops_at_once() {
    let assets = Assets::install();
    let mut plane = ControlPlane::start(&assets).await;
    let admin = plane.admin();
    assert_eq!(admin.post(CONFIG_MAPS, &config_map("one")).await.status, 201);
    let watch =
        Request::get("/api/v1/configmaps?watch=true&resourceVersion=0").body(Full::default()).unwrap();
    let mut events = JsonLines::new(admin.send(watch).await.unwrap().into_body());
    assert_eq!(events.next().await.unwrap()["object"]["metadata"]["name"], "one");
    let start = Instant::now();
    assert_eq!(plane.stop_server().code(), Some(0));
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "an open watch does not delay the shutdown: {:?}",
        start.elapsed()
    );
    kill_process(Pid::from_child(&plane.etcd), Signal::TERM).unwrap();
    plane.etcd.wait().unwrap();
    let files = std::fs::read_dir(plane.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut files: Vec<_> = files.collect();
    files.sort();
    assert_eq!(files, ["certs", "etcd", "log"], "all else lies where etcd's data do");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_with_the_same_etcd_has_its_objects() {
    let assets = Assets::install();
    let mut plane = ControlPlane::start(&assets).await;
    let created = plane.admin().post(CONFIG_MAPS, &config_map("stays")).await.json();
    plane.stop_server();
    // envtest sets a new port and a new folder of certificates.
    plane.at = free_address();
    plane.start_server().await;
    let read = plane.admin().get(&format!("{CONFIG_MAPS}/stays")).await.json();
    assert_eq!(read["metadata"]["uid"], created["metadata"]["uid"]);
    assert_eq!(read["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    // Another prefix is another store, as in etcd.
    plane.stop_server();
    plane.flags.push("--etcd-prefix=/other/place".to_owned());
    plane.start_server().await;
    assert_eq!(plane.admin().get(&format!("{CONFIG_MAPS}/stays")).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_front_proxy_is_published_without_its_flag() {
    let assets = Assets::install();
    let plane = ControlPlane::start(&assets).await;
    let admin = plane.admin();
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    wait_until("the settings for backends are published", async || admin.get(path).await.status == 200).await;
    let settings = admin.get(path).await.json()["data"].clone();
    assert_eq!(
        settings.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["client-ca-file"],
        "as kube-apiserver"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_survive_a_kill_of_the_server() {
    let assets = Assets::install();
    let mut plane = ControlPlane::start(&assets).await;
    assert_eq!(plane.admin().post(CONFIG_MAPS, &config_map("stays")).await.status, 201);
    let mut server = plane.server.take().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    plane.start_server().await;
    assert_eq!(plane.admin().get(&format!("{CONFIG_MAPS}/stays")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_control_planes_are_independent() {
    let assets = Assets::install();
    let (one, two) = tokio::join!(ControlPlane::start(&assets), ControlPlane::start(&assets));
    assert_eq!(one.admin().post(CONFIG_MAPS, &config_map("one")).await.status, 201);
    assert_eq!(two.admin().get(&format!("{CONFIG_MAPS}/one")).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_servers_of_one_etcd_serve_the_same_objects() {
    let assets = Assets::install();
    let mut first = ControlPlane::start(&assets).await;
    let at = first.start_second().await;
    let (one, two) = (first.admin(), first.admin_at(at));
    let watch = Request::get(format!("{CONFIG_MAPS}?watch=true")).body(Full::default()).unwrap();
    let mut events = JsonLines::new(one.send(watch).await.unwrap().into_body());
    let created = two.post(CONFIG_MAPS, &config_map("of-two")).await;
    assert_eq!(created.status, 201);
    assert_eq!(events.next().await.unwrap()["object"]["metadata"]["uid"], created.json()["metadata"]["uid"]);
    assert_eq!(one.post(CONFIG_MAPS, &config_map("of-one")).await.status, 201);
    assert_eq!(
        two.get(&format!("{CONFIG_MAPS}/of-one")).await.status,
        200,
        "an acknowledged write is visible on the other server"
    );
    assert_eq!(stop(first.second.take().unwrap()).code(), Some(0));
    assert_eq!(one.get(&format!("{CONFIG_MAPS}/of-two")).await.status, 200);
    first.stop_server();
    first.start_server().await;
    assert_eq!(first.admin().get(&format!("{CONFIG_MAPS}/of-two")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_run_only_if_enabled() {
    let assets = Assets::install();
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let namespace_path = format!("{NAMESPACES}/gone");
    let mut plane = ControlPlane::start(&assets).await;
    assert_eq!(plane.admin().post(NAMESPACES, &namespace("gone")).await.status, 201);
    let deleted = plane.admin().delete(&namespace_path).await.json();
    assert_eq!(deleted["status"]["phase"], "Terminating");
    plane.stop_server();
    plane.start_server().await;
    // A start completes all of its work before the server is ready: a namespace without controllers still exists.
    assert_eq!(plane.admin().get(&namespace_path).await.json()["status"]["phase"], "Terminating");
    let roots = plane.admin().get("/api/v1/configmaps").await.json();
    assert_eq!(
        roots["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|map| map["metadata"]["name"] == "kube-root-ca.crt")
            .count(),
        0
    );
    plane.stop_server();
    plane.env.push(("PORTICO_TESTENV_CONTROLLERS".to_owned(), "garbage-collector,namespace".to_owned()));
    plane.start_server().await;
    wait_until("the namespace is emptied and deleted", async || {
        plane.admin().get(&namespace_path).await.status == 404
    })
    .await;
    let owner = plane.admin().post(CONFIG_MAPS, &config_map("owner")).await.json();
    let mut dependent = config_map("dependent");
    dependent["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    assert_eq!(plane.admin().post(CONFIG_MAPS, &dependent).await.status, 201);
    plane.admin().delete(&format!("{CONFIG_MAPS}/owner")).await;
    wait_until("the dependent is deleted", async || {
        plane.admin().get(&format!("{CONFIG_MAPS}/dependent")).await.status == 404
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_are_read_as_kube_apiserver_reads_them() {
    let assets = Assets::install();
    let mut plane = ControlPlane::with_etcd(&assets, &[]).await;
    plane.flags = [
        "--feature-gates=MutatingAdmissionPolicy=true",
        "--feature_gates=APIServerIdentity=true",
        "--v=2",
        "--authorization-mode=AlwaysAllow",
        "--anonymous-auth=true",
    ]
    .map(str::to_owned)
    .to_vec();
    plane.start_server().await;
    let anyone = Http::new(plane.at, plane.authority.pem.as_bytes());
    assert_eq!(anyone.get(CONFIG_MAPS).await.status, 200, "the last of two values counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_reported_in_one_line() {
    let assets = Assets::install();
    let mut plane = ControlPlane::with_etcd(&assets, &[]).await;
    for (flag, words) in [
        ("--no-such-flag", "--no-such-flag"),
        ("--insecure-port=0", "--insecure-port"),
        ("--client-ca-file=/does/not/exist", "--client-ca-file"),
    ] {
        plane.flags = vec![flag.to_owned()];
        let (code, _, err) = run(&mut plane.server_command());
        assert_eq!(code, Some(2), "{err}");
        assert!(
            err.contains(words) && err.starts_with("portico: kube-apiserver: ") && err.lines().count() == 1,
            "{err}"
        );
    }
    plane.flags.clear();
    plane.env = vec![("PORTICO_TESTENV_CONTROLLERS".to_owned(), "no-such".to_owned())];
    let (code, _, err) = run(&mut plane.server_command());
    assert!(
        code == Some(2) && err.contains("PORTICO_TESTENV_CONTROLLERS") && err.contains("no-such"),
        "{err}"
    );
    let (code, _, err) = run(&mut Command::new(assets.program("kube-apiserver")));
    assert!(code == Some(2) && err.contains("--etcd-servers"), "{err}");
    let listen = format!("--listen-client-urls=http://{}", plane.etcd_at);
    let data = format!("--data-dir={}", plane.folder.path().join("other").display());
    let (code, _, err) = run(Command::new(assets.program("etcd")).args([&listen, &data]));
    assert!(code == Some(1) && err.contains("address already in use"), "{err}");
    let member = plane.folder.path().join("real/member");
    std::fs::create_dir_all(&member).unwrap();
    let data = format!("--data-dir={}", member.parent().unwrap().display());
    let (code, _, err) = run(Command::new(assets.program("etcd"))
        .args([format!("--listen-client-urls=http://{}", free_address()), data]));
    assert!(code == Some(1) && err.contains("TEST_ASSET_ETCD"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_etcd_can_be_used() {
    let Some(etcd) = portico_tests::EtcdServer::start() else { return };
    let assets = Assets::install();
    let mut plane = ControlPlane::with_etcd(&assets, &[]).await;
    plane.flags = vec![format!("--etcd-servers={}", etcd.url())];
    // A list of servers is appended to, and its first entry is used: start it as if envtest had named only the real one.
    plane.etcd_at = etcd.url().trim_start_matches("http://").parse().unwrap();
    plane.flags.clear();
    plane.start_server().await;
    assert_eq!(plane.admin().post(CONFIG_MAPS, &config_map("in-etcd")).await.status, 201);
    assert!(etcd.contains("in-etcd"));
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_support_the_checks_of_envtest() {
    let assets = Assets::install();
    let help = |name: &str| {
        let (code, out, err) = run(Command::new(assets.program(name)).arg("--help"));
        assert_eq!(code, Some(0), "{err}");
        out
    };
    let has = |text: &str, flag: &str| text.lines().any(|line| line.trim_start().starts_with(flag));
    assert!(has(&help("etcd"), "--unsafe-no-fsync"));
    assert!(!has(&help("kube-apiserver"), "--insecure-port"));
    let (code, out, _) = run(Command::new(assets.program("kube-apiserver")).arg("--version"));
    assert!(code == Some(0) && out.starts_with("Kubernetes v1."), "{out}");
    assert_eq!(run(Command::new(assets.program("etcd")).arg("--version")).0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_created_once_and_printed() {
    let folder = temporary();
    let bin = folder.path().join("it's here");
    let path = bin.to_str().unwrap();
    let quoted = path.replace('\'', r#"'"'"'"#);
    for (form, text) in [
        (&[][..], format!("export KUBEBUILDER_ASSETS='{quoted}'\n")),
        (&["-p", "env"], format!("export KUBEBUILDER_ASSETS='{quoted}'\n")),
        (&["-p", "path"], format!("{path}\n")),
        (&["-o", "env"], format!("KUBEBUILDER_ASSETS={path}\n")),
        (&["-o", "github"], format!("KUBEBUILDER_ASSETS={path}\n")),
    ] {
        let (code, out, err) = portico(&[&["testenv", "use", path], form].concat());
        assert_eq!((code, out), (Some(0), text), "{err}");
    }
    assert!(portico(&["testenv", "use", path, "-p", "overview"]).1.contains(&format!("Path: {path}")));
    // Files of another program are replaced.
    let etcd = bin.join("etcd");
    std::fs::remove_file(&etcd).unwrap();
    std::fs::write(&etcd, "another").unwrap();
    assert_eq!(portico(&["testenv", "use", path]).0, Some(0));
    assert_eq!(std::fs::metadata(&etcd).unwrap().len(), std::fs::metadata(binary()).unwrap().len());
    // The command of a kubebuilder Makefile for setup-envtest.
    let (_, out, _) = portico(&["testenv", "use", "1.36", "--bin-dir", path, "-p", "path"]);
    let printed_path = Path::new(out.trim_end());
    assert!(
        printed_path.starts_with(bin.join("k8s")) && printed_path.join("kube-apiserver").exists(),
        "{out}"
    );
    let (code, _, err) = portico(&["testenv", "use", "1.3x", "--bin-dir", path]);
    assert!(code == Some(1) && err.contains("1.3x is not a version"), "{code:?} {err}");
    let (code, _, err) = portico(&["testenv", "use", "1.20.x", "--bin-dir", path, "-p", "path"]);
    assert!(code == Some(0) && err.contains("1.20.x"), "a warning names the version: {err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_makefile_of_kubebuilder_finds_setup_envtest() {
    let folder = temporary();
    let bin = folder.path().join("project's bin");
    let (code, out, err) = portico(&["testenv", "setup-envtest", bin.to_str().unwrap()]);
    assert!(code == Some(0) && out.contains("make test ENVTEST_VERSION=portico"), "{out} {err}");
    // The file that the Makefile checks before it installs setup-envtest with go.
    let file = bin.join("setup-envtest-portico");
    assert!(std::fs::symlink_metadata(&file).unwrap().is_file());
    assert_eq!(std::fs::read_link(bin.join("setup-envtest")).unwrap(), file);
    for name in ["setup-envtest", "setup-envtest-portico"] {
        let mut command = Command::new(bin.join(name));
        let command = command.args(["use", "1.35", "--bin-dir"]).arg(&bin).args(["-p", "path"]);
        let (code, out, err) = run(command);
        assert!(code == Some(0) && err.contains("Kubernetes 1.35 was requested"), "{out} {err}");
        let assets = Path::new(out.trim_end());
        assert!(assets.starts_with(bin.join("k8s")) && assets.join("kube-apiserver").exists(), "{out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_are_links_to_the_program_and_kubectl_of_the_user() {
    let (folder, path) = (temporary(), temporary());
    let dir = folder.path().to_str().unwrap();
    let install = |search: &Path, flags: &[&str]| {
        let mut command = Command::new(binary());
        run(command.args(["testenv", "install", dir]).args(flags).env("PATH", search))
    };
    let (code, _, err) = install(path.path(), &[]);
    assert_eq!(code, Some(0), "{err}");
    let (code, _, err) = run(&mut Command::new(folder.path().join("kubectl")));
    assert!(code == Some(1) && err.contains("install kubectl"), "{err}");
    // Again, with a kubectl, and by links.
    let kubectl = path.path().join("kubectl");
    std::os::unix::fs::symlink("/bin/echo", &kubectl).unwrap();
    let (code, _, err) = install(path.path(), &["--symlink"]);
    assert_eq!(code, Some(0), "{err}");
    let link = |name: &str| std::fs::read_link(folder.path().join(name)).unwrap();
    assert_eq!(link("kubectl"), std::fs::canonicalize(path.path()).unwrap().join("kubectl"));
    assert_eq!(link("etcd"), std::fs::canonicalize(binary()).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "the folder contains nothing else");
}
