//! Settings of the registry: sizes and times, checked before anything starts.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};
use jiff::Timestamp;
use portico_store::Txn;

/// Where the time comes from: `Timestamp::now` in production, a fixed one in tests.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How nodes are reached, and who may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// Types of node addresses, best first (`--kubelet-preferred-address-types`).
    pub preferred_address_types: Vec<String>,
    /// Whether a GET of `exec`, `attach` or `portforward` also needs permission to `create`
    /// (gate `AuthorizePodWebsocketUpgradeCreatePermission`).
    pub check_creation: bool,
    /// Which WebSockets of kubelets are translated to SPDY.
    pub translation: TranslationSettings,
}

/// Which WebSockets of kubelets are translated to SPDY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslationSettings {
    /// Those of `exec` and `attach` (gate `TranslateStreamCloseWebsocketRequests`).
    pub commands: bool,
    /// Those of `portforward` (gate `PortForwardWebsockets`).
    pub ports: bool,
    /// Whether kubelets whose node declares [`TranslationSettings::DECLARED`] get them as they are (the gate of that name).
    pub unless_declared: bool,
}

impl TranslationSettings {
    /// The feature that a node declares whose kubelet speaks these protocols itself.
    pub const DECLARED: &str = "ExtendWebSocketsToKubelet";
}

impl Default for ConnectionSettings {
    /// Upstream's.
    fn default() -> Self {
        let types = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
        Self {
            preferred_address_types: types.map(str::to_owned).to_vec(),
            check_creation: true,
            translation: TranslationSettings { commands: true, ports: true, unless_declared: true },
        }
    }
}

/// Sizes and times.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bytes that made forms (tables, metadata, other versions) may take together.
    pub form_cache_bytes: usize,
    /// Shortest time a watch without `timeoutSeconds` lasts; it lasts up to twice as long
    /// (`--min-request-timeout`).
    pub min_watch_timeout: Duration,
    /// How often a watch that wants bookmarks gets one.
    pub bookmark_period: Duration,
    /// How long a read waits for a revision that the store has not reached.
    pub future_revision_wait: Duration,
    /// The most bytes of JSON that an object may have when a user writes it (`--max-object-bytes`).
    pub max_object_bytes: usize,
    /// Whether containers may be privileged (`--allow-privileged`).
    pub allow_privileged: bool,
    /// Where Services get their addresses from (`--service-cluster-ip-range`): one range, or two of different families,
    /// the default one first.
    pub service_ranges: Vec<IpNet>,
    /// Where Services get their node ports from (`--service-node-port-range`).
    pub node_ports: RangeInclusive<u16>,
    /// Connections to what runs on nodes.
    pub connections: ConnectionSettings,
    /// Whether DeleteOptions may ask for what cannot be read to be deleted (gate `AllowUnsafeMalformedObjectDeletion`).
    pub unsafe_deletion: bool,
}

/// Upstream's default of `--service-cluster-ip-range`: 10.0.0.0/24.
fn default_service_range() -> IpNet {
    // 24 bits are no more than 32, so nothing is truncated.
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
