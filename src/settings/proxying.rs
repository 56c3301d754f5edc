//! Flags of connections to backends and webhooks: client certificate, routing, limits.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use ipnet::IpNet;

use super::SettingError;
use super::values::duration;

/// Flags of connections to backends and webhooks.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = super::heading("Backends and webhooks"))]
pub(crate) struct Proxying {
    /// Client certificate with which the facade authenticates to backends as a front proxy (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) proxy_client_cert_file: Option<PathBuf>,
    /// Private key of --proxy-client-cert-file (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) proxy_client_key_file: Option<PathBuf>,
    /// Generate a front-proxy CA and client certificate if no flag configures a front proxy.
    ///
    /// --proxy-client-* and --requestheader-* configure a front proxy. The CA is published in the ConfigMap
    /// kube-system/extension-apiserver-authentication, and the certificate is presented to backends. Defaults to `true`, or
    /// to `false` with --etcd-servers, because kube-apiservers on the same etcd may publish their own CA.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) own_front_proxy: Option<bool>,
    /// Connect to backends at the endpoints of their Service instead of its cluster IP.
    ///
    /// With `false`, the default of kube-apiserver, cluster IPs must be routed (by kube-proxy, for example) and
    /// headless Services are rejected.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true)]
    pub(crate) enable_aggregator_routing: bool,
    /// Respond with status 502 if a backend returns a redirect.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true)]
    pub(crate) aggregator_reject_forwarding_redirect: bool,
    /// EgressSelectorConfiguration file, to connect to backends through an HTTP CONNECT proxy.
    #[arg(long, value_name = "FILE")]
    pub(crate) egress_selector_config_file: Option<PathBuf>,
    /// Address ranges in which backends are allowed, separated by commas.
    ///
    /// Addresses are checked after DNS resolution. By default all addresses are allowed except link-local and multicast
    /// addresses and the server's own.
    #[arg(long, value_name = "CIDRS", value_delimiter = ',')]
    pub(crate) backend_allow_cidr: Vec<IpNet>,
    /// Timeout for establishing a connection to a backend.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    pub(crate) backend_dial_timeout: Duration,
    /// Maximum number of concurrent requests to a backend; further requests fail with 503.
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub(crate) backend_max_requests: usize,
    /// Maximum number of idle connections kept per backend address.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) backend_max_idle_connections: usize,
    /// Maximum number of concurrent requests to a backend's mirror; further copies are dropped.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) backend_max_mirrored_requests: u32,
    /// Timeout of a request to a backend's mirror, including its response.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) backend_mirror_timeout: Duration,
    /// Maximum number of concurrent requests to a webhook.
    ///
    /// At most sixteen times as many requests can wait, and the waiting time counts toward their timeout. Further
    /// requests fail.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) webhook_max_requests: usize,
    /// Maximum size of a conversion webhook's response, in bytes; a larger response is a failure.
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    pub(crate) webhook_max_answer_bytes: usize,
    /// Maximum size of an admission webhook's response, in bytes; a larger response is a failure.
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
        Err(SettingError::new(
            setting,
            "--proxy-client-cert-file and --proxy-client-key-file must be set together",
        ))
    }
}
