//! Backends: the proxy's identity towards them, how they are resolved, dialled and probed.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use ipnet::IpNet;

use super::SettingError;
use super::values::duration;

/// Settings of proxying to backends.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Backends"))]
pub(crate) struct Proxying {
    /// The client certificate that backends see.
    #[arg(long, value_name = "FILE")]
    pub(crate) proxy_client_cert_file: Option<PathBuf>,
    /// The key of --proxy-client-cert-file.
    #[arg(long, value_name = "FILE")]
    pub(crate) proxy_client_key_file: Option<PathBuf>,
    /// Make a CA and a client certificate of a front proxy where no --proxy-client-* and no --requestheader-* flag is given: backends
    /// are told of the CA (kube-system/extension-apiserver-authentication) and shown the certificate. By default on; off with
    /// --etcd-servers, where kube-apiservers may tell of theirs.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) own_front_proxy: Option<bool>,
    /// Reach Services at their endpoints. With `false`, as by default in kube-apiserver, they are dialled at their cluster IPs, which
    /// something like kube-proxy must route, and headless Services are refused.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true)]
    pub(crate) enable_aggregator_routing: bool,
    /// Answer 502 when a backend redirects.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true)]
    pub(crate) aggregator_reject_forwarding_redirect: bool,
    /// An EgressSelectorConfiguration: dial backends through an HTTP CONNECT proxy.
    #[arg(long, value_name = "FILE")]
    pub(crate) egress_selector_config_file: Option<PathBuf>,
    /// Ranges that backends may lie in, checked after resolution; empty = all but link-local, multicast and ourselves.
    #[arg(long, value_name = "CIDRS", value_delimiter = ',')]
    pub(crate) backend_allow_cidr: Vec<IpNet>,
    /// How long a connection to a backend may take to stand.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    pub(crate) backend_dial_timeout: Duration,
    /// Requests at a time to one backend; further ones are answered with 503.
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub(crate) backend_max_requests: usize,
    /// Idle connections kept to one backend address.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) backend_max_idle_connections: usize,
    /// Copies of requests at a time to one mirror of a backend; further ones are dropped.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) backend_max_mirrored_requests: u32,
    /// How long a mirror of a backend may take for a copy of a request and all of its answer.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) backend_mirror_timeout: Duration,
    /// Requests at a time to one webhook; sixteen times as many wait, which counts against their time, and more fail.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) webhook_max_requests: usize,
    /// Longest answer of a conversion webhook; a longer one is a failure.
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    pub(crate) webhook_max_answer_bytes: usize,
    /// Longest answer of an admission webhook; a longer one is a failure.
    #[arg(long, value_name = "BYTES", default_value_t = 8 << 20)]
    pub(crate) admission_webhook_max_answer_bytes: usize,
}

impl Proxying {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        if self.proxy_client_cert_file.is_some() == self.proxy_client_key_file.is_some() {
            return Ok(());
        }
        let setting = if self.proxy_client_cert_file.is_some() {
            "--proxy-client-key-file"
        } else {
            "--proxy-client-cert-file"
        };
        Err(SettingError::new(setting, "--proxy-client-cert-file and --proxy-client-key-file go together"))
    }
}
