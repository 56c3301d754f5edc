//! Settings of the registry, validated before the server starts.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};
use jiff::Timestamp;
use portico_store::Txn;

/// Source of the current time: `Timestamp::now` in production, a fixed time in tests.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Settings of connections to nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// Types of node addresses, best first (`--kubelet-preferred-address-types`).
    pub preferred_address_types: Vec<String>,
    /// True if a GET of `exec`, `attach` or `portforward` also needs permission to `create`
    /// (gate `AuthorizePodWebsocketUpgradeCreatePermission`).
    pub check_creation: bool,
    /// WebSockets to kubelets that are translated to SPDY.
    pub translation: TranslationSettings,
}

/// WebSockets to kubelets that are translated to SPDY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslationSettings {
    /// Translates those of `exec` and `attach` (gate `TranslateStreamCloseWebsocketRequests`).
    pub commands: bool,
    /// Translates those of `portforward` (gate `PortForwardWebsockets`).
    pub ports: bool,
    /// Passes WebSockets unchanged to kubelets whose node declares [`TranslationSettings::DECLARED`] (the gate with that name).
    pub pass_through_declared: bool,
}

impl TranslationSettings {
    /// Feature that a node declares if its kubelet supports these protocols.
    pub const DECLARED: &str = "ExtendWebSocketsToKubelet";
}

impl Default for ConnectionSettings {
    /// Upstream's defaults.
    fn default() -> Self {
        let types = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
        Self {
            preferred_address_types: types.map(str::to_owned).to_vec(),
            check_creation: true,
            translation: TranslationSettings { commands: true, ports: true, pass_through_declared: true },
        }
    }
}

/// Settings of the registry.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Maximum size in bytes of cached representations (tables, metadata, other versions).
    pub form_cache_bytes: usize,
    /// Minimum duration of a watch without `timeoutSeconds`; the actual duration is up to
    /// twice as long (`--min-request-timeout`).
    pub min_watch_timeout: Duration,
    /// Interval of bookmarks for watches that request them.
    pub bookmark_period: Duration,
    /// Maximum time that a read waits for a revision that the store has not reached.
    pub future_revision_wait: Duration,
    /// Maximum size in bytes of the JSON of an object that a user writes (`--max-object-bytes`).
    pub max_object_bytes: usize,
    /// True if containers may be privileged (`--allow-privileged`).
    pub allow_privileged: bool,
    /// Address ranges of Services (`--service-cluster-ip-range`): one range, or two of different families with the default first.
    pub service_ranges: Vec<IpNet>,
    /// Range of node ports of Services (`--service-node-port-range`).
    pub node_ports: RangeInclusive<u16>,
    /// Connections to nodes.
    pub connections: ConnectionSettings,
    /// True if DeleteOptions may request the deletion of unreadable objects (gate `AllowUnsafeMalformedObjectDeletion`).
    pub unsafe_deletion: bool,
}

/// Upstream's default of `--service-cluster-ip-range`: 10.0.0.0/24.
fn default_service_range() -> IpNet {
    // A prefix length of 24 is valid, so `new_assert` does not panic.
    Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 0, 0), 24).into()
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            form_cache_bytes: 4 * 1024 * 1024,
            min_watch_timeout: Duration::from_secs(1800),
            bookmark_period: Duration::from_secs(60),
            future_revision_wait: Duration::from_secs(3),
            max_object_bytes: Txn::MAX_VALUE_BYTES,
            service_ranges: vec![default_service_range()],
            node_ports: 30_000..=32_767,
            connections: ConnectionSettings::default(),
            unsafe_deletion: false,
            allow_privileged: false,
        }
    }
}
