//! Files with which a server is started: users with tokens, certificates, keys, and the flags with their paths.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use portico_tests::pki::{Authority, CertPair};

/// Users of the token file: token, name, uid, groups.
const TOKENS: &str = "admin-token,admin,uid-admin,\"system:masters\"\n\
    alice-token,alice,uid-alice,\"dev\"\n\
    bob-token,bob,uid-bob,\"dev,ops\"\n\
    carol-token,carol,uid-carol\n";

/// Files of a fixture, in a folder.
pub struct Fixture {
    folder: PathBuf,
}

impl Fixture {
    /// Returns the fixture in this folder; creates the files if there are none.
    pub fn at(folder: &Path) -> Self {
        let fixture = Self { folder: folder.to_owned() };
        if !folder.join("tokens.csv").exists() {
            fixture.create();
        }
        fixture
    }

    fn create(&self) {
        std::fs::create_dir_all(&self.folder).unwrap();
        let write = |name: &str, text: &str| std::fs::write(self.folder.join(name), text).unwrap();
        let (clients, proxies) =
            (Authority::new("conformance-client-ca"), Authority::new("conformance-front-proxy-ca"));
        let (backends, rogues) = (Authority::new("conformance-backend-ca"), Authority::new("rogue-ca"));
        write("client-ca.crt", &clients.pem);
        write("front-proxy-ca.crt", &proxies.pem);
        write("backend-ca.crt", &backends.pem);
        for (name, pair) in [
            ("cert-admin", clients.client("cert-admin", &["system:masters"])),
            ("cert-alice", clients.client("cert-alice", &["dev", "qa"])),
            ("expired", clients.expired_client("expired", &["system:masters"])),
            ("rogue", rogues.client("rogue", &["system:masters"])),
            ("front-proxy", proxies.client("front-proxy-client", &[])),
            ("front-proxy-stranger", proxies.client("stranger", &[])),
            ("backend", backends.server(&["localhost", "api.wardle.svc", "*.wardle.svc", "127.0.0.1"])),
            ("service-account", clients.client("service-account", &[])),
        ] {
            write(&format!("{name}.crt"), &pair.cert);
            write(&format!("{name}.key"), &pair.key);
        }
        write("tokens.csv", TOKENS);
    }

    /// Returns the flags, for kube-apiserver and for `portico`.
    pub fn flags(&self) -> Vec<String> {
        let file = |name: &str| self.folder.join(name).to_string_lossy().into_owned();
        let mut flags = vec!["--allow-privileged".to_owned()];
        for (flag, value) in [
            ("authorization-mode", "RBAC".to_owned()),
            // Applies only to kubelets.
            ("enable-admission-plugins", "NodeRestriction".to_owned()),
            ("token-auth-file", file("tokens.csv")),
            ("client-ca-file", file("client-ca.crt")),
            ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
            // kube-apiserver cannot read the public key of a PKCS #8 private key.
            ("service-account-key-file", file("service-account.crt")),
            ("service-account-signing-key-file", file("service-account.key")),
            ("service-cluster-ip-range", "10.0.0.0/16".to_owned()),
            ("requestheader-client-ca-file", file("front-proxy-ca.crt")),
            ("requestheader-allowed-names", "front-proxy-client".to_owned()),
            ("requestheader-username-headers", "X-Remote-User".to_owned()),
            ("requestheader-group-headers", "X-Remote-Group".to_owned()),
            ("requestheader-extra-headers-prefix", "X-Remote-Extra-".to_owned()),
            ("proxy-client-cert-file", file("front-proxy.crt")),
            ("proxy-client-key-file", file("front-proxy.key")),
        ] {
            flags.push(format!("--{flag}={value}"));
        }
        flags
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns a certificate with its key.
    pub fn pair(&self, name: &str) -> CertPair {
        CertPair { cert: self.text(&format!("{name}.crt")), key: self.text(&format!("{name}.key")) }
    }

    /// Returns a certificate authority as PEM.
    pub fn authority(&self, name: &str) -> String {
        self.text(&format!("{name}.crt"))
    }

    /// Returns the authorities in the form of responses, with their placeholders.
    pub fn placeholders(&self) -> Vec<(String, String)> {
        ["client-ca", "front-proxy-ca", "backend-ca"]
            .map(|name| (self.authority(name), format!("<{name}>")))
            .into_iter()
            .collect()
    }

    /// Returns the tokens of the users.
    pub fn tokens() -> BTreeMap<&'static str, &'static str> {
        let row = |line: &'static str| {
            let mut cells = line.split(',');
            let token = cells.next().unwrap();
            (cells.next().unwrap(), token)
        };
        TOKENS.lines().map(row).collect()
    }
}
