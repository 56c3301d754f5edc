//! Members of an etcd cluster: a connection to each, and the current one. Code that finds it failing or slow switches
//! to the next one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tonic::client::Grpc;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::settings::EtcdSettings;

/// Maximum size of a message in bytes.
const MAX_MESSAGE: usize = 512 << 20;
/// Timeout for connecting to one of several members.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of keep-alive pings, and timeout of their responses.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Flow control windows of one response and of a connection, in bytes.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// Connections to the members, and the current member.
pub(super) struct Members {
    channels: Vec<Channel>,
    current: AtomicUsize,
}

impl Members {
    /// Creates connections that are opened on demand. Processes start with different members.
    pub(super) fn new(settings: &EtcdSettings) -> Result<Self, String> {
        let channels = settings.endpoints.iter().map(|url| Ok(endpoint(url, settings)?.connect_lazy()));
        let channels = channels.collect::<Result<Vec<_>, String>>()?;
        if channels.is_empty() {
            return Err("no etcd endpoint is given".to_owned());
        }
        let chosen = uuid::Uuid::new_v4().as_u128() % channels.len() as u128;
        let current = AtomicUsize::new(usize::try_from(chosen).unwrap_or_default());
        Ok(Self { channels, current })
    }

    /// Returns the number of members.
    pub(super) fn count(&self) -> usize {
        self.channels.len()
    }

    /// Returns the index of the current member.
    pub(super) fn current(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }

    /// Returns the index of the member this many steps after another one, cyclically.
    pub(super) fn member_after(&self, member: usize, steps: usize) -> usize {
        (member + steps) % self.channels.len()
    }

    /// Switches to another member, unless the current one has changed already.
    pub(super) fn switch(&self, from: usize, to: usize) {
        // Of concurrent switches, the first one wins.
        let _left_already = self.current.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Switches to the next member.
    pub(super) fn switch_from(&self, member: usize) {
        self.switch(member, self.member_after(member, 1));
    }

    /// Returns a client of one member.
    pub(super) fn grpc(&self, member: usize) -> Grpc<Channel> {
        let grpc = Grpc::new(self.channels[member].clone());
        grpc.max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE)
    }
}

fn endpoint(url: &str, settings: &EtcdSettings) -> Result<Endpoint, String> {
    let wrong = |error: tonic::transport::Error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        format!("{url:?}: {error}{}", cause.unwrap_or_default())
    };
    let with_scheme = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let is_single_member = settings.endpoints.len() == 1;
    let connect_timeout = if is_single_member {
        settings.connect_timeout
    } else {
        CONNECT_TIMEOUT.min(settings.connect_timeout)
    };
    let endpoint = Endpoint::from_shared(with_scheme.clone())
        .map_err(wrong)?
        .connect_timeout(connect_timeout)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_INTERVAL)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .tcp_nodelay(true);
    if !with_scheme.starts_with("https://") {
        return Ok(endpoint);
    }
    let mut tls = ClientTlsConfig::new();
    tls = match &settings.ca {
        Some(ca) => tls.ca_certificate(Certificate::from_pem(ca)),
        None => tls.with_enabled_roots(),
    };
    if let Some((certificate, key)) = &settings.identity {
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    endpoint.tls_config(tls).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(urls: &[&str]) -> Result<Members, String> {
        Members::new(&EtcdSettings::new(urls.iter().map(|url| (*url).to_owned()).collect()))
    }

    #[tokio::test]
    async fn concurrent_failures_of_a_member_switch_once() {
        let members = members(&["http://127.0.0.1:1", "127.0.0.1:2", "http://127.0.0.1:3"]).unwrap();
        let first = members.current();
        members.switch_from(first);
        members.switch_from(first);
        assert_eq!(members.current(), members.member_after(first, 1));
        members.switch(members.current(), first);
        members.switch(members.member_after(first, 1), members.member_after(first, 2));
        assert_eq!(members.current(), first);
    }

    #[test]
    fn invalid_endpoints_are_rejected() {
        assert!(members(&[]).is_err());
        assert!(members(&["http://"]).is_err());
    }
}
