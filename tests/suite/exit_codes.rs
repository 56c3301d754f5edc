//! Exit codes of commands that fail, as `portico help exit-codes` lists them.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Stdio};

use portico_tests::binary;

/// Runs a command in a folder; returns its exit code and standard error.
fn run(folder: &Path, args: &[&str], variable: Option<(&str, &str)>) -> (Option<i32>, String) {
    let mut command = Command::new(binary());
    command.args(args).current_dir(folder).env_remove("KUBECONFIG").envs(variable).stdin(Stdio::null());
    let done = command.output().unwrap();
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn an_invalid_command_line_of_a_data_command_has_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("copy.db"), "SQLite format 3\0").unwrap();
    std::fs::write(folder.path().join("broken"), "kind: Nothing").unwrap();
    let postgres = "--database-url=postgres://u@127.0.0.1:1/d";
    let etcd = "--etcd-servers=http://127.0.0.1:1";
    for (line, error) in [
        ("backup --to=a --at-time=2999-01-01T00:00:00Z", "is in the future"),
        ("backup --to=a --etcd-servers=http://u:p@h:1", "etcd URLs cannot contain a user"),
        (
            "backup --to=a --etcd-servers=http://h:1 --etcd-cafile=missing",
            "--etcd-cafile missing: no such file",
        ),
        ("backup --to=a --kubeconfig=missing", "missing: no such file"),
        ("backup --to=a --encryption-provider-config=broken", "--encryption-provider-config"),
        ("backup --to=a --database-password-file=x", "--database-password-file requires --database-url"),
        ("backup --to=a --data-dir=d --etcd-prefix=/x", "--etcd-prefix requires --etcd-servers"),
        ("backup --to=a --server=h:1", "--server requires --kubeconfig"),
        ("backup --to=a --kubeconfig=k --encryption-provider-config=e", "does not apply to --kubeconfig"),
        ("backup --check=a --data-dir=d", "--data-dir cannot be used with --check"),
        ("restore --from=copy.db --etcd-servers=http://h:1", "only be restored into a data folder"),
        ("restore --from=copy.db --kubeconfig=k", "into a running control service"),
        ("restore --from=copy.db --without-history", "--without-history does not apply"),
        ("migrate --to=sqlite://y --kubeconfig=x", "hint: name it: --data-dir,"),
        ("migrate --to=sqlite://y --to-password-file=x", "--to-password-file requires --to postgres://"),
        ("migrate --to=etcd://h:1 --etcd-prefix=/x", "--etcd-prefix requires --etcd-servers"),
        ("migrate --to=sqlite://y --etcd-servers=http://h:1 --kubeconfig=x", "name two locations"),
        ("migrate --from=sqlite://x --data-dir=y --to=sqlite://z", "name two locations"),
        (
            "migrate --from=sqlite://x --to=sqlite://z --etcd-cafile=c",
            "--etcd-cafile requires --etcd-servers",
        ),
        ("migrate --resume-writes --force", "--resume-writes: cannot be used with --force"),
        ("doctor --database-url=postgres://u@h/d", "hint: PostgreSQL's pg_amcheck"),
        ("doctor --kubeconfig=x", "hint: run doctor with --data-dir DIR"),
        ("doctor --data-dir=a --etcd-servers=http://h:1", "hint: name one: --data-dir,"),
        ("doctor d --etcd-prefix=/x", "--etcd-prefix requires --etcd-servers"),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let (code, printed) = run(folder.path(), &args, None);
        assert!(code == Some(2) && printed.contains(error), "{line}: {code:?} {printed}");
    }
    for args in [["backup", "--to=a", postgres, "--etcd-cafile=c"], ["backup", "--to=a", etcd, "--server=s"]]
    {
        assert_eq!(run(folder.path(), &args, None).0, Some(2), "{args:?}");
    }
}

#[test]
fn a_data_command_whose_database_cannot_be_used_has_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    for line in [
        "backup --to=a --data-dir=missing",
        "backup --check=missing",
        "backup --to=a --database-url=postgres://u@127.0.0.1:1/d",
        "restore --from=missing --data-dir=d",
        "migrate --from=sqlite://missing --to=sqlite://d",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let (code, printed) = run(folder.path(), &args, None);
        assert_eq!(code, Some(1), "{line}: {printed}");
    }
    let variable = ("PORTICO_DATABASE_PASSWORD_FILE", "missing");
    let (code, printed) = run(folder.path(), &["backup", "--to=a", "--data-dir=missing"], Some(variable));
    assert!(code == Some(1) && printed.contains("no database found"), "{printed}");
}

#[test]
fn output_that_cannot_be_written_is_an_error_unless_the_reader_has_closed_the_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let manifests = folder.path().join("manifests");
    std::fs::create_dir(&manifests).unwrap();
    let manifests = manifests.to_str().unwrap();
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let assets = folder.path().join("assets");
    for (args, code) in [
        (&["version"][..], 2),
        (&["help", "exit-codes"], 2),
        (&["completion", "bash"], 2),
        (&["man", "get"], 2),
        (&["config", "check", manifests], 2),
        (&["testenv", "install", assets.to_str().unwrap()], 1),
    ] {
        let output = |stdout: Stdio| Command::new(binary()).args(args).stdout(stdout).output().unwrap();
        let done = output(full().into());
        let printed = String::from_utf8(done.stderr).unwrap();
        assert!(
            done.status.code() == Some(code) && printed.contains("standard output: "),
            "{args:?}: {printed}"
        );
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let done = output(writer.into());
        assert!(done.status.code() == Some(0) && done.stderr.is_empty(), "{args:?}: {done:?}");
    }
}
