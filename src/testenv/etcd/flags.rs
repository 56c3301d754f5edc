//! etcd's command line, as far as it means something here: where to listen, where to keep state, whether to wait for the disk.

use std::ffi::OsString;
use std::path::PathBuf;

use http::Uri;

/// The flags of etcd 3.6, one a line; those that may stand without a value end with a question mark.
const OF_ETCD: &str = include_str!("flags.txt");

/// Flags that ask for TLS.
const TLS: [&str; 4] = ["cert-file", "client-cert-auth", "auto-tls", "trusted-ca-file"];

/// Where etcd listens if nobody says.
const LISTEN: &str = "http://localhost:2379";

/// What envtest looks for in it is `--unsafe-no-fsync`.
const HELP: &str = "\
Usage:

  etcd [flags]

This is no etcd: `portico testenv install` has made it. It answers health checks, and tells the kube-apiserver of the same
folder where to keep its state. Set TEST_ASSET_ETCD to the path of a real etcd to have everything kept there.

  --listen-client-urls 'http://localhost:2379'
    URLs to listen at, comma-separated; http only.
  --data-dir 'default.etcd'
    The folder in which state is kept.
  --unsafe-no-fsync 'true'
    Do not wait for the disk.
  --name 'default'
    Gives the folder its default name.
  --version
    Print the version and exit.

Other flags of etcd are taken and change nothing; those that ask for TLS are refused.
";

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Print this and end well.
    Print(String),
    /// Serve.
    Serve(Flags),
}

/// What means something here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flags {
    /// `HOST:PORT` of each URL.
    pub(super) listen: Vec<String>,
    /// Where state is kept.
    pub(super) data_dir: PathBuf,
    /// Whether nobody waits for the disk.
    pub(super) unsafe_no_fsync: bool,
}

/// Reads the command line, of which the first is the program's name.
///
/// # Errors
/// One line.
pub(super) fn parse(arguments: &[OsString]) -> Result<Asked, String> {
    let mut arguments = arguments.iter().skip(1).map(|argument| {
        argument.to_str().ok_or_else(|| format!("{} is not UTF-8", argument.to_string_lossy()))
    });
    let (mut listen, mut data_dir, mut unsafe_no_fsync) = (LISTEN.to_owned(), None, true);
    let mut name = "default".to_owned();
    while let Some(argument) = arguments.next() {
        let argument = argument?;
        let flag = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
        let flag = flag.ok_or_else(|| format!("'{argument}' is not a valid flag"))?;
        let (flag, value) = flag.split_once('=').map_or((flag, None), |(flag, value)| (flag, Some(value)));
        match flag {
            "h" | "help" => return Ok(Asked::Print(HELP.to_owned())),
            "version" => return Ok(Asked::Print(format!("etcd Version: none ({})", crate::run::version()))),
            _ if TLS.contains(&flag) => {
                return Err(format!("--{flag}: there is no TLS here; name a real etcd in TEST_ASSET_ETCD"));
            }
            _ => {}
        }
        let is_switch = is_switch(flag).ok_or_else(|| format!("flag provided but not defined: -{flag}"))?;
        let value = match value {
            Some(value) => value,
            None if is_switch => "true",
            None => arguments.next().ok_or_else(|| format!("flag needs an argument: -{flag}"))??,
        };
        match flag {
            "listen-client-urls" => value.clone_into(&mut listen),
            "data-dir" => data_dir = Some(PathBuf::from(value)),
            "name" => value.clone_into(&mut name),
            "unsafe-no-fsync" => unsafe_no_fsync = truth(flag, value)?,
            _ => {}
        }
    }
    let listen = listen.split(',').map(address).collect::<Result<_, _>>()?;
    let data_dir = data_dir.unwrap_or_else(|| PathBuf::from(format!("{name}.etcd")));
    Ok(Asked::Serve(Flags { listen, data_dir, unsafe_no_fsync }))
}

/// Whether a flag of etcd may stand without a value, in which case the next argument is one of its own; none if etcd has no such flag.
fn is_switch(flag: &str) -> Option<bool> {
    OF_ETCD.lines().find_map(|line| match line.strip_suffix('?') {
        Some(switch) => (switch == flag).then_some(true),
        None => (line == flag).then_some(false),
    })
}

/// As Go reads a boolean.
fn truth(flag: &str, value: &str) -> Result<bool, String> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("invalid boolean value {value:?} for -{flag}: parse error")),
    }
}

fn address(url: &str) -> Result<String, String> {
    let wrong = |why: &str| format!("--listen-client-urls: {url:?}: {why}");
    let uri: Uri = url.parse().map_err(|_| wrong("not a URL"))?;
    match (uri.scheme_str(), uri.host(), uri.port_u16()) {
        (Some("http"), Some(host), Some(port)) => Ok(format!("{host}:{port}")),
        (Some("http"), ..) => Err(wrong("a host and a port are needed")),
        _ => Err(wrong("only http is spoken here; name a real etcd in TEST_ASSET_ETCD")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(arguments: &[&str]) -> Result<Asked, String> {
        parse(&["etcd"].iter().chain(arguments).map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn what_envtest_passes_is_understood() {
        let envtest = [
            "--advertise-client-urls=http://127.0.0.1:4001",
            "--data-dir=/tmp/k8s_test_framework_1",
            "--listen-client-urls=http://127.0.0.1:4001",
            "--listen-peer-urls=http://127.0.0.1:4002",
            "--unsafe-no-fsync=true",
        ];
        let flags = Flags {
            listen: vec!["127.0.0.1:4001".to_owned()],
            data_dir: PathBuf::from("/tmp/k8s_test_framework_1"),
            unsafe_no_fsync: true,
        };
        assert_eq!(asked(&envtest), Ok(Asked::Serve(flags)));
        assert!(HELP.lines().any(|line| line.trim_start().starts_with("--unsafe-no-fsync")));
    }

    #[test]
    fn flags_of_etcd_are_taken_in_gos_ways_and_others_are_refused() {
        let Ok(Asked::Serve(flags)) = asked(&[
            "-name",
            "a",
            "--unsafe-no-fsync=false",
            "-log-level=debug",
            "--enable-pprof",
            "--max-txn-ops",
            "9",
        ]) else {
            panic!("all of these are etcd's")
        };
        assert_eq!((flags.data_dir, flags.unsafe_no_fsync), (PathBuf::from("a.etcd"), false));
        for (arguments, said) in [
            (&["--no-such"][..], "flag provided but not defined: -no-such"),
            (&["--data-dir"], "flag needs an argument: -data-dir"),
            (&["data"], "'data' is not a valid flag"),
            (&["--unsafe-no-fsync=maybe"], "invalid boolean value"),
            (&["--cert-file=a"], "TEST_ASSET_ETCD"),
            (&["--listen-client-urls=https://a:1"], "only http is spoken"),
            (&["--listen-client-urls=http://a"], "a host and a port"),
        ] {
            let error = asked(arguments).unwrap_err();
            assert!(error.contains(said), "{arguments:?}: {error}");
        }
    }
}
