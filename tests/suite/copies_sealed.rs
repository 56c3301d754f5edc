//! Backups, restores and migrations of an etcd with TLS and client certificates, with Secrets encrypted by keys of a
//! file or by a key service.

use std::path::{Path, PathBuf};

use portico_tests::objects::CONFIG_MAPS;
use portico_tests::pki::Authority;
use portico_tests::{EtcdServer, KeyServicePlugin, Launch, Portico, PostgresServer, wait_until};
use serde_json::{Value, json};

use crate::copies::{config_map, created_objects, done, make, refused, things_are_served};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// An etcd over TLS, its certificate files, and encryption.
struct EncryptedEtcd {
    folder: tempfile::TempDir,
    etcd: EtcdServer,
    tls: Vec<String>,
    encryption: [String; 2],
}

impl EncryptedEtcd {
    /// Starts an etcd with a provider for Secrets, which is created in the given folder.
    fn start(provider: impl FnOnce(&Path) -> Value) -> Option<Self> {
        let (authority, other) = (Authority::new("etcd-ca"), Authority::new("other-ca"));
        let server = authority.server(&["localhost", "127.0.0.1"]);
        let client = authority.client("portico", &[]);
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            path.display().to_string()
        };
        file("other-ca", &other.pem);
        let [ca, cert, key] =
            [file("ca", &authority.pem), file("crt", &server.cert), file("key", &server.key)];
        let etcd = EtcdServer::start_over_tls(&ca, &cert, &key)?;
        let [cert, key] = [file("client.crt", &client.cert), file("client.key", &client.key)];
        let tls = ["--etcd-cafile", &ca, "--etcd-certfile", &cert, "--etcd-keyfile", &key];
        let tls = tls.map(str::to_owned).to_vec();
        let configuration = json!({"kind": "EncryptionConfiguration", "apiVersion": "apiserver.config.k8s.io/v1",
            "resources": [{"resources": ["secrets"], "providers": [provider(folder.path()), {"identity": {}}]}]});
        let file = file("encryption.json", &configuration.to_string());
        Some(Self { folder, etcd, tls, encryption: ["--encryption-provider-config".to_owned(), file] })
    }

    /// Adds the arguments for TLS and encryption.
    fn with<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        let own = self.tls.iter().chain(&self.encryption).map(String::as_str);
        arguments.iter().copied().chain(own).collect()
    }

    /// Returns the launch of a server on this etcd.
    fn launch(&self) -> Launch {
        Launch::new().args(&self.with(&["--etcd-servers", &self.etcd.url()]))
    }

    /// Returns the URL for migrations.
    fn url(&self) -> String {
        format!("{}/registry", self.etcd.url().replace("https://", "etcds://"))
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Returns a launch with SQLite in a temporary folder, with the same encryption, and the folder.
    fn launch_sqlite(&self) -> (Launch, PathBuf) {
        Launch::new().args(&self.encryption.each_ref().map(String::as_str)).prepare_folder()
    }
}

fn key_provider(_: &Path) -> Value {
    json!({"aesgcm": {"keys": [{"name": "k", "secret": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}]}})
}

fn key_service_provider(folder: &Path) -> Value {
    let endpoint = format!("unix://{}", folder.join("kms").display());
    json!({"kms": {"apiVersion": "v2", "name": "kms", "endpoint": endpoint}})
}

/// Restores a backup of SQLite into etcd, then backups of etcd (direct and by the control service) into SQLite: all objects exist
/// each time, and Secrets in etcd have the prefix.
async fn check_round_trip(sealed: &EncryptedEtcd, prefix: &str) {
    let (launch, folder) = sealed.launch_sqlite();
    let mut portico = launch.start().await;
    make(&portico.admin()).await;
    let expected = created_objects(&portico.admin()).await;
    let first = sealed.file("first");
    done(&folder, &["backup", "--to", &first, "--data-dir", "data"]).await;
    assert!(portico.stop().await.success());
    let servers = sealed.etcd.url();
    let into = ["restore", "--from", &first, "--etcd-servers", &servers];
    done(&folder, &sealed.with(&into)).await;
    let mut restored = sealed.launch().start().await;
    things_are_served(&restored.admin()).await;
    assert_eq!(created_objects(&restored.admin()).await, expected);
    assert!(sealed.etcd.contains(prefix));

    let direct = sealed.file("direct");
    done(&folder, &sealed.with(&["backup", "--to", &direct, "--etcd-servers", &servers])).await;
    let requested_file = sealed.file("asked");
    let kubeconfig = restored.data().join("admin.kubeconfig").display().to_string();
    done(&folder, &["backup", "--to", &requested_file, "--kubeconfig", &kubeconfig]).await;
    assert!(restored.stop().await.success());
    for file in [direct, requested_file] {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        assert!(text.starts_with("PORTICO-BACKUP"));
        let (launch, folder) = sealed.launch_sqlite();
        done(&folder, &["restore", "--from", &file, "--data-dir", "data"]).await;
        let target = launch.start().await;
        things_are_served(&target.admin()).await;
        assert_eq!(created_objects(&target.admin()).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_with_tls_and_keys_is_backed_up_and_restored() {
    let Some(sealed) = EncryptedEtcd::start(key_provider) else { return };
    check_round_trip(&sealed, "k8s:enc:aesgcm:v1:k:").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_with_tls_and_a_key_service_is_backed_up_and_restored() {
    let Some(sealed) = EncryptedEtcd::start(key_service_provider) else { return };
    let _service = KeyServicePlugin::start(&sealed.folder.path().join("kms"), "key-1");
    check_round_trip(&sealed, "k8s:enc:kms:v2:kms:").await;
}

/// Migrates the store of a server; returns a server that `target_launch` starts on the new store, after checking its objects.
async fn migrate(portico: &Portico, arguments: &[&str], target_launch: Launch) -> Portico {
    let expected = created_objects(&portico.admin()).await;
    done(portico.folder(), arguments).await;
    let refused = portico.admin().post(CONFIG_MAPS, &config_map("late")).await;
    assert_eq!(refused.status.as_u16(), 503, "{}", refused.text());
    let target = target_launch.start().await;
    things_are_served(&target.admin()).await;
    assert_eq!(created_objects(&target.admin()).await, expected);
    target
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_moves_into_an_etcd_with_tls_and_a_key_service_and_out_of_it() {
    let Some(sealed) = EncryptedEtcd::start(key_service_provider) else { return };
    let service = KeyServicePlugin::start(&sealed.folder.path().join("kms"), "key-1");
    let portico = sealed.launch_sqlite().0.start().await;
    make(&portico.admin()).await;
    let (from, to) = (format!("sqlite://{}", portico.data().display()), sealed.url());
    let arguments = sealed.with(&["migrate", "--from", &from, "--to", &to]);
    let on_etcd = migrate(&portico, &arguments, sealed.launch()).await;
    assert!(sealed.etcd.contains("k8s:enc:kms:v2:kms:"));
    // Objects encrypted with either key can be read.
    service.rotate("key-2");
    wait_until("new objects are sealed with the new key", async || {
        let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"generateName": "s-"}});
        assert_eq!(on_etcd.admin().post(SECRETS, &secret).await.status.as_u16(), 201);
        sealed.etcd.contains("key-2")
    })
    .await;
    let Some(server) = PostgresServer::shared() else { return };
    let url = server.url(&server.create_database());
    let arguments = sealed.with(&["migrate", "--from", &to, "--to", &url]);
    let on_postgres = Launch::new().args(&sealed.encryption.each_ref().map(String::as_str));
    migrate(&on_etcd, &arguments, on_postgres.args(&["--database-url", &url])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verb_that_cannot_use_an_etcd_reports_the_reason_and_changes_nothing() {
    let Some(sealed) = EncryptedEtcd::start(key_service_provider) else { return };
    let socket = sealed.folder.path().join("kms");
    let service = KeyServicePlugin::start(&socket, "key-1");
    let portico = sealed.launch().start().await;
    make(&portico.admin()).await;
    let expected = created_objects(&portico.admin()).await;
    let (servers, file) = (sealed.etcd.url(), sealed.file("backup"));
    let backup = ["backup", "--to", &file, "--etcd-servers", &servers];
    let folder = sealed.folder.path();
    let [tls, encryption] = [sealed.tls.as_slice(), sealed.encryption.as_slice()]
        .map(|arguments| arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let other = sealed.file("other-ca");
    let wrong = ["--etcd-cafile", &other, tls[2], tls[3], tls[4], tls[5]];
    for (arguments, why) in [
        (&tls[..2], "etcd may require a client certificate: --etcd-certfile, --etcd-keyfile"),
        (&wrong, "signed by an unknown authority"),
        (&tls[..4], "--etcd-keyfile"),
    ] {
        let code = if arguments.len() == 4 { 2 } else { 1 };
        refused(folder, code, &[&backup, arguments, &encryption].concat(), why).await;
    }
    refused(folder, 1, &[&backup[..], &tls].concat(), "--encryption-provider-config").await;
    drop(service);
    refused(folder, 1, &sealed.with(&backup), "secrets/default/s cannot be read: failed to decrypt DEK")
        .await;
    assert!(!Path::new(&file).exists());
    // Succeeds when the key service is available again.
    let _service = KeyServicePlugin::start(&socket, "key-1");
    done(folder, &sealed.with(&backup)).await;
    assert_eq!(created_objects(&portico.admin()).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_of_a_time_is_backed_up_by_a_control_service_and_refused_without_one() {
    let Some(sealed) = EncryptedEtcd::start(key_provider) else { return };
    let portico = sealed.launch().arg("--compaction-interval=1s").start().await;
    let admin = portico.admin();
    make(&admin).await;
    let expected = created_objects(&admin).await;
    let kubeconfig = portico.data().join("admin.kubeconfig").display().to_string();
    let (file, time) = (sealed.file("backup"), jiff::Timestamp::now() + jiff::SignedDuration::from_secs(4));
    // The revision at that time is recorded once in that second.
    let over = time + jiff::SignedDuration::from_secs(1);
    wait_until("the next second has begun", async || jiff::Timestamp::now() > over).await;
    let time = time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let folder = sealed.folder.path();
    let later = admin.post(CONFIG_MAPS, &config_map("later")).await;
    assert_eq!(later.status.as_u16(), 201, "{}", later.text());
    let servers = sealed.etcd.url();
    let at = ["backup", "--to", &file, "--at-time", &time];
    let direct = [&at[..], &["--etcd-servers", &servers]].concat();
    refused(folder, 1, &sealed.with(&direct), "etcd does not record when").await;
    assert!(!Path::new(&file).exists());
    done(folder, &[&at[..], &["--kubeconfig", &kubeconfig]].concat()).await;
    let past = ["backup", "--to", &file, "--at-time", "2020-01-31T12:00:00Z", "--kubeconfig", &kubeconfig];
    refused(folder, 1, &past, "no revision is recorded for that time").await;
    let (launch, target_folder) = sealed.launch_sqlite();
    done(&target_folder, &["restore", "--from", &file, "--data-dir", "data"]).await;
    let target = launch.start().await;
    things_are_served(&target.admin()).await;
    assert_eq!(created_objects(&target.admin()).await, expected);
}
