//! Message of a ready server on standard output: addresses and three commands to copy, or one line of JSON for programs.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use super::facade;
use crate::settings::{ReadyFormat, Settings};
use crate::shell;

/// Prints the message to standard output. Write errors are ignored.
pub(super) fn print_ready(
    settings: &Settings,
    started: Instant,
    https: Option<SocketAddr>,
    grpc: Option<String>,
    kubeconfig: &Path,
) {
    let text = match settings.process.ready_format {
        ReadyFormat::Text => {
            text(settings, started.elapsed().as_millis(), https, grpc.as_deref(), kubeconfig)
        }
        ReadyFormat::Json => json_line(settings, https, grpc, kubeconfig),
    };
    if let Err(error) = std::io::stdout().write_all(text.as_bytes()) {
        tracing::debug!(%error, "cannot print the addresses: standard output is closed");
    }
}

/// Output of `--ready-format=json`.
#[derive(Serialize)]
struct ReadyOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grpc: Option<String>,
    kubeconfig: PathBuf,
    certs: PathBuf,
    pid: u32,
}

fn json_line(
    settings: &Settings,
    https: Option<SocketAddr>,
    grpc: Option<String>,
    kubeconfig: &Path,
) -> String {
    // A path that cannot be made absolute, such as an empty path, is printed unchanged.
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let ready = ReadyOutput {
        url: https.map(|bound| facade::facade_url(settings, bound)),
        grpc,
        kubeconfig: absolute(kubeconfig),
        certs: absolute(&settings.cert_dir()),
        pid: std::process::id(),
    };
    match serde_json::to_string(&ready) {
        Ok(json) => json + "\n",
        Err(error) => {
            tracing::error!(%error, "cannot print the addresses as JSON: a path is not valid UTF-8");
            String::new()
        }
    }
}

fn text(
    settings: &Settings,
    milliseconds: u128,
    https: Option<SocketAddr>,
    grpc: Option<&str>,
    kubeconfig: &Path,
) -> String {
    let (data, certs) = (settings.process.data_dir.display(), settings.cert_dir());
    let certs = certs.display();
    let mut text = format!("portico is ready in {milliseconds} ms\n\n");
    // Writing to a string does not fail.
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    if let Some(https) = https {
        line("HTTPS", &format_args!("https://{https}"));
        if settings.process.console {
            line("console", &format_args!("{}/console/", facade::facade_url(settings, https)));
        }
    }
    if let Some(grpc) = grpc {
        line("gRPC", &format_args!("{grpc} (TLS, reflection)"));
        line("CA", &format_args!("{certs}/internal-ca.crt"));
        line("database", &settings.store.describe_location().unwrap_or_else(|| format!("{data}/portico.db")));
    }
    // A facade alone has no kubeconfig for kubectl: its kubeconfig is for the control service.
    line(if grpc.is_some() { "kubeconfig" } else { "control" }, &kubeconfig.display());
    if grpc.is_some() {
        line("workloads", &"pods are not run: Deployments, Jobs and similar objects are only stored");
    }
    let internal_ca = format!("{certs}/internal-ca.crt");
    let connection_flags = |flags: [&str; 3], ca: &str| {
        let files = [ca, &format!("{certs}/admin.crt"), &format!("{certs}/admin.key")];
        let pairs =
            flags.iter().zip(files).map(|(flag, file)| format!("{flag} {}", shell::quote_if_needed(file)));
        pairs.collect::<Vec<_>>().join(" ")
    };
    if let Some(grpc) = grpc {
        let service = "portico.apiregistration.v1.APIServices/List";
        let _ = writeln!(
            text,
            "\n  grpcurl {} {grpc} {service}",
            connection_flags(["-cacert", "-cert", "-key"], &internal_ca)
        );
    }
    if let (Some(https), Some(_)) = (https, grpc) {
        let _ = writeln!(
            text,
            "  kubectl --kubeconfig {} get apiservices",
            shell::quote_if_needed(&kubeconfig.display().to_string())
        );
        // As in the kubeconfig, a configured certificate is pinned, because its CA is not known.
        let cert_file = settings.serving.tls_cert_file.as_ref().map(|file| file.display().to_string());
        let files =
            connection_flags(["--cacert", "--cert", "--key"], cert_file.as_deref().unwrap_or(&internal_ca));
        let _ = writeln!(text, "  curl {files} {}/apis", facade::facade_url(settings, https));
    }
    text.push('\n');
    text
}
