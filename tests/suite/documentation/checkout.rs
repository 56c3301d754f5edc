//! The folder in which the commands of a page run.

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use portico_tests::binary::repository;

use super::{PORTS, cargo};

/// A folder that looks like a built checkout.
pub(super) struct Checkout {
    folder: tempfile::TempDir,
    /// Ports of pages, and the free ones that replace them.
    ports: Vec<(&'static str, String)>,
}

impl Checkout {
    pub(super) fn new() -> Self {
        let checkout = Self { folder: tempfile::tempdir().unwrap(), ports: free_ports() };
        let examples = checkout.path("target/release/examples");
        std::fs::create_dir_all(&examples).unwrap();
        std::fs::create_dir(checkout.path("bin")).unwrap();
        checkout.write_portico();
        checkout.write_backend();
        symlink(checkout.path("target/release/portico"), checkout.path("bin/portico")).unwrap();
        symlink(repository().join("examples"), checkout.path("examples")).unwrap();
        write_program(&checkout.path("bin/cargo"), cargo::STUB);
        checkout
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces the ports of the page by free ones.
    pub(super) fn with_free_ports(&self, text: &str) -> String {
        self.ports.iter().fold(text.to_owned(), |text, (port, free)| text.replace(port, free))
    }

    /// A bash in this folder.
    pub(super) fn bash(&self) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.path("bin")].into_iter().chain(std::env::split_paths(&path));
        let mut command = Command::new("bash");
        command.current_dir(self.folder.path()).env("HOME", self.folder.path());
        command.env("PATH", std::env::join_paths(folders).unwrap()).env_remove("KUBECONFIG");
        command
    }

    /// The program, with free ports as defaults. `--ephemeral` chooses free ports itself.
    fn write_portico(&self) {
        let script = format!(
            r#"#!/bin/sh
case " $* " in *' --ephemeral'*) ;; *)
  export PORTICO_SECURE_PORT={} PORTICO_CONTROL_ADDRESS=127.0.0.1:{}
esac
# On a busy machine a control service may be silent for longer than the default.
export PORTICO_CONTROL_FAILOVER_TIMEOUT=10s
exec '{}' "$@"
"#,
            self.free("6443"),
            self.free("6444"),
            portico_tests::binary().display()
        );
        write_program(&self.path("target/release/portico"), &script);
    }

    /// The example of an API server, with a free port as default.
    fn write_backend(&self) {
        let script = format!(
            "#!/bin/sh\ncase \" $* \" in *' --listen'*) ;; *) set -- --listen 127.0.0.1:{} \"$@\";; esac\nexec '{}' \"$@\"\n",
            self.free("8443"),
            portico_tests::example_backend().display()
        );
        write_program(&self.path("target/release/examples/backend"), &script);
    }

    fn free(&self, port: &str) -> &str {
        &self.ports.iter().find(|(of_page, _)| *of_page == port).unwrap().1
    }
}

/// Writes an executable script.
pub(crate) fn write_program(path: &Path, script: &str) {
    std::fs::write(path, script).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

fn free_ports() -> Vec<(&'static str, String)> {
    // All listeners exist at the same time, so that no two ports are equal.
    let listeners: Vec<_> = PORTS.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let numbers = listeners.iter().map(|listener| listener.local_addr().unwrap().port().to_string());
    PORTS.into_iter().zip(numbers).collect()
}
