//! Command line of the program `etcd`. Only the flags for addresses, data folder, name and fsync have an effect.

use std::ffi::OsString;
use std::path::PathBuf;

use http::Uri;

/// Flags of etcd 3.6, one per line. A question mark follows flags whose value is optional.
const ETCD_FLAGS: &str = include_str!("flags.txt");

/// Flags that enable TLS, which is refused.
const TLS: [&str; 4] = ["cert-file", "client-cert-auth", "auto-tls", "trusted-ca-file"];

/// Default of `--listen-client-urls`.
const LISTEN: &str = "http://localhost:2379";

/// Help text, which envtest searches for `--unsafe-no-fsync`.
const HELP: &str = "\
Usage:

  etcd [flags]

This is not etcd: `portico testenv install` created this program. It answers health checks, and reports to the kube-apiserver
in the same folder where to store state. To use a real etcd, set TEST_ASSET_ETCD to its path.

  --listen-client-urls 'http://localhost:2379'
    URLs to listen on, comma-separated; http only.
  --data-dir 'default.etcd'
    Folder for the state of kube-apiserver.
  --unsafe-no-fsync 'true'
    Acknowledge writes without waiting for the disk.
  --name 'default'
    Name of the default data folder, without the suffix .etcd.
  --version
    Print the version and exit.

Other flags of etcd have no effect; those for TLS are refused.
";

/// Action that the command line requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Print this text.
    Print(String),
    /// Serve with these flags.
    Serve(Flags),
}

/// Flags that have an effect.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flags {
    /// `HOST:PORT` of each URL in `--listen-client-urls`.
    pub(super) listen: Vec<String>,
    /// Folder for the state of kube-apiserver.
    pub(super) data_dir: PathBuf,
    /// True if writes do not wait for the disk.
    pub(super) unsafe_no_fsync: bool,
}

/// Parses the command line. The first argument is the name of the program.
///
/// # Errors
/// Returns a message of one line if the command line is invalid.
pub(super) fn parse(arguments: &[OsString]) -> Result<Request, String> {
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
            "h" | "help" => return Ok(Request::Print(HELP.to_owned())),
            "version" => {
                return Ok(Request::Print(format!("etcd Version: none ({})", crate::run::version())));
            }
            _ if TLS.contains(&flag) => {
                return Err(format!("--{flag}: TLS is not supported; set TEST_ASSET_ETCD to a real etcd"));
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
            "unsafe-no-fsync" => unsafe_no_fsync = parse_bool(flag, value)?,
            _ => {}
        }
    }
    let listen = listen.split(',').map(parse_address).collect::<Result<_, _>>()?;
    let data_dir = data_dir.unwrap_or_else(|| PathBuf::from(format!("{name}.etcd")));
    Ok(Request::Serve(Flags { listen, data_dir, unsafe_no_fsync }))
}

/// Returns true if the value of the flag is optional, or `None` if etcd has no such flag.
fn is_switch(flag: &str) -> Option<bool> {
    ETCD_FLAGS.lines().find_map(|line| match line.strip_suffix('?') {
        Some(switch) => (switch == flag).then_some(true),
        None => (line == flag).then_some(false),
    })
}

/// Parses a boolean as Go does.
fn parse_bool(flag: &str, value: &str) -> Result<bool, String> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("invalid boolean value {value:?} for -{flag}: parse error")),
    }
}

fn parse_address(url: &str) -> Result<String, String> {
    let invalid = |reason: &str| format!("--listen-client-urls: {url:?}: {reason}");
    let uri: Uri = url.parse().map_err(|_| invalid("not a URL"))?;
    match (uri.scheme_str(), uri.host(), uri.port_u16()) {
        (Some("http"), Some(host), Some(port)) => Ok(format!("{host}:{port}")),
        (Some("http"), ..) => Err(invalid("a host and a port are required")),
        _ => Err(invalid("only http is supported; set TEST_ASSET_ETCD to a real etcd")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(arguments: &[&str]) -> Result<Request, String> {
        parse(&["etcd"].iter().chain(arguments).map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_of_envtest_are_accepted() {
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
        assert_eq!(request(&envtest), Ok(Request::Serve(flags)));
        assert!(HELP.lines().any(|line| line.trim_start().starts_with("--unsafe-no-fsync")));
    }

    #[test]
    fn flags_of_etcd_are_parsed_as_by_go_and_unknown_ones_are_refused() {
        let Ok(Request::Serve(flags)) = request(&[
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
            (&["--listen-client-urls=https://a:1"], "only http is supported"),
            (&["--listen-client-urls=http://a"], "a host and a port"),
        ] {
            let error = request(arguments).unwrap_err();
            assert!(error.contains(said), "{arguments:?}: {error}");
        }
    }
}
