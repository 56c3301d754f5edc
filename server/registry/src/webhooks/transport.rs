//! Transport for calls to one address: TLS settings, limits of calls, and a circuit for each address. Shared by all webhooks at
//! that address with the same CA and user.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use portico_kit::circuit::{Circuit, CircuitLimits};
use portico_kit::dial::Target;
use portico_kit::tls::{CertPair, ClientTls, Roots};
use portico_machinery::route;
use tokio::sync::Semaphore;

use super::address::Destination;

/// Webhooks whose TLS configuration is cached.
///
/// Limit (Webhooks): the least recently used one is removed.
const MAX_TRANSPORTS: usize = 200;

/// Calls that wait for a webhook, for each that may be in flight (`--webhook-max-requests`).
///
/// Limit (Webhooks): the call fails.
const WAITING_PER_CALL: usize = 16;

/// Consecutive dial failures that open the circuit of an address of a webhook.
///
/// Limit (Webhooks): calls fail immediately with the last failure.
const CIRCUIT_FAILURES: u32 = 3;
/// Time between two dials of an address with an open circuit, initially.
///
/// Limit (Webhooks): one call probes the address; the time doubles with each failure.
const CIRCUIT_OPEN: Duration = Duration::from_millis(250);
/// Maximum time between two dials of an address with an open circuit.
///
/// Limit (Webhooks): one call probes the address.
const CIRCUIT_OPEN_MAX: Duration = Duration::from_secs(2);

/// Limits of circuits, as for backends.
const CIRCUIT: CircuitLimits =
    CircuitLimits { failures: CIRCUIT_FAILURES, open: CIRCUIT_OPEN, open_max: CIRCUIT_OPEN_MAX };

/// Circuit of one address, for dial failures.
pub(super) type DialCircuit = Circuit<String>;

/// Transport for calls to one address.
pub(super) struct Transport {
    /// TLS settings, which identify reusable connections.
    pub(super) tls: ClientTls,
    /// Client certificate in `tls`.
    certificate: Option<Arc<CertPair>>,
    /// Slots for calls in flight and waiting calls.
    pub(super) queue_slots: Semaphore,
    /// Slots for calls in flight.
    pub(super) call_slots: Semaphore,
    /// Maximum number of calls in flight.
    limit: usize,
    circuits: Mutex<HashMap<Target, Arc<DialCircuit>>>,
}

/// State of the calls to an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransportState {
    /// Number of calls in flight.
    pub in_flight: usize,
    /// Addresses with open circuits, with the last failure of each.
    pub open_circuits: Vec<OpenCircuit>,
}

/// Address whose circuit is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCircuit {
    /// Address and port.
    pub target: String,
    /// Time of the first of the consecutive failures, in milliseconds since 1970.
    pub since_ms: u64,
    /// Reason of the last failure.
    pub reason: String,
}

/// Key of a cached transport.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct TransportKey {
    pub(super) peer: Peer,
    /// Pointer to the user, as an ID: users live as long as the process.
    pub(super) user: usize,
}

/// Address of a webhook and its verification. Cheap to clone, to compare with clones, and to hash.
#[derive(Clone)]
pub(super) struct Peer(Arc<PeerParts>);

struct PeerParts {
    identity: PeerIdentity,
    hash: u64,
}

#[derive(PartialEq, Eq, Hash)]
pub(super) struct PeerIdentity {
    pub(super) destination: Destination,
    /// CA certificates in base64.
    pub(super) ca_bundle: String,
    /// Name that the certificates must have, if it differs from the name of the destination.
    pub(super) server_name: Option<String>,
    /// Addresses in the configuration itself; empty if a Service is resolved.
    pub(super) targets: Vec<route::Target>,
}

impl Peer {
    pub(super) fn new(identity: PeerIdentity) -> Self {
        // The hash map hashes this value again.
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&identity);
        Self(Arc::new(PeerParts { identity, hash }))
    }

    /// CA certificates in base64.
    pub(super) fn ca_bundle(&self) -> &str {
        &self.0.identity.ca_bundle
    }
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.identity == other.0.identity
    }
}

impl Eq for Peer {}

impl Hash for Peer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

/// Recently used transports.
#[derive(Default)]
pub(super) struct Transports {
    entries: HashMap<TransportKey, (Arc<Transport>, u64)>,
    use_count: u64,
}

impl Transports {
    /// Transport for a key and this client certificate, if cached; marks it as used.
    pub(super) fn get_and_touch(
        &mut self,
        key: &TransportKey,
        certificate: Option<&Arc<CertPair>>,
    ) -> Option<Arc<Transport>> {
        self.use_count += 1;
        let (transport, used) = self.entries.get_mut(key)?;
        if !is_same(transport.certificate.as_ref(), certificate) {
            return None;
        }
        *used = self.use_count;
        Some(Arc::clone(transport))
    }

    /// Inserts a transport, unless another one with the same certificate was inserted concurrently. Returns the cached one.
    pub(super) fn insert(&mut self, key: TransportKey, transport: Arc<Transport>) -> Arc<Transport> {
        if let Some(existing) = self.get_and_touch(&key, transport.certificate.as_ref()) {
            return existing;
        }
        if self.entries.len() >= MAX_TRANSPORTS && !self.entries.contains_key(&key) {
            let oldest = self.entries.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|key| self.entries.remove(&key));
        }
        self.entries.insert(key, (Arc::clone(&transport), self.use_count));
        transport
    }

    /// Transport for a key, if cached.
    pub(super) fn get(&self, key: &TransportKey) -> Option<Arc<Transport>> {
        self.entries.get(key).map(|(transport, _)| Arc::clone(transport))
    }
}

impl Transport {
    pub(super) fn new(
        key: &TransportKey,
        certificate: Option<Arc<CertPair>>,
        limit: usize,
    ) -> Result<Self, String> {
        let PeerIdentity { destination, ca_bundle, server_name, .. } = &key.peer.0.identity;
        let pem = STANDARD.decode(ca_bundle).map_err(|_| "caBundle: invalid base64".to_owned())?;
        let name = server_name.clone().unwrap_or_else(|| destination.server_name());
        let builder = ClientTls::builder()
            .roots(Roots::bundle("caBundle", pem.trim_ascii()))
            .client_cert(certificate.as_deref().cloned())
            .server_name(name);
        Ok(Self {
            tls: builder.build().map_err(|error| error.to_string())?,
            certificate,
            queue_slots: Semaphore::new(limit.saturating_mul(1 + WAITING_PER_CALL)),
            call_slots: Semaphore::new(limit),
            limit,
            circuits: Mutex::default(),
        })
    }

    /// Circuits of these addresses, in order. Removes those of other addresses.
    pub(super) fn circuits(&self, targets: &[Target]) -> Vec<Arc<DialCircuit>> {
        let mut circuits = self.circuits.lock();
        let of = |target: &Target| {
            let entry = circuits.entry(target.clone());
            Arc::clone(entry.or_insert_with(|| Arc::new(Circuit::new(CIRCUIT))))
        };
        let found = targets.iter().map(of).collect();
        if circuits.len() > targets.len() {
            circuits.retain(|target, _| targets.contains(target));
        }
        found
    }

    /// State of the calls.
    pub(super) fn state(&self) -> TransportState {
        let open = |(target, circuit): (&Target, &Arc<DialCircuit>)| {
            let last = circuit.last().filter(|_| circuit.is_open())?;
            Some(OpenCircuit { target: target.to_string(), since_ms: last.since_ms, reason: last.failure? })
        };
        let mut open_circuits: Vec<_> = self.circuits.lock().iter().filter_map(open).collect();
        open_circuits.sort_by(|a, b| a.target.cmp(&b.target));
        TransportState {
            in_flight: self.limit.saturating_sub(self.call_slots.available_permits()),
            open_circuits,
        }
    }
}

fn is_same(a: Option<&Arc<CertPair>>, b: Option<&Arc<CertPair>>) -> bool {
    a.map(Arc::as_ptr) == b.map(Arc::as_ptr)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16, bundle: &str) -> TransportKey {
        let destination = Destination::Url(Target::new("127.0.0.1", port));
        let (ca_bundle, server_name, targets) = (bundle.to_owned(), None, Vec::new());
        TransportKey {
            peer: Peer::new(PeerIdentity { destination, ca_bundle, server_name, targets }),
            user: 0,
        }
    }

    fn bundle() -> String {
        STANDARD.encode(portico_kit::pki::Authority::create("hooks").unwrap().cert_pem())
    }

    #[test]
    fn webhooks_with_one_address_share_a_transport_and_the_oldest_is_evicted() {
        let (bundle, mut transports) = (bundle(), Transports::default());
        let mut get = |port: u16| {
            let key = key(port, &bundle);
            let existing = transports.get_and_touch(&key, None);
            let make = || Arc::new(Transport::new(&key, None, 1).unwrap());
            existing.unwrap_or_else(|| transports.insert(key.clone(), make()))
        };
        let (first, second) = (get(1), get(2));
        assert!(Arc::ptr_eq(&first, &get(1)));
        for port in 3..=u16::try_from(MAX_TRANSPORTS).unwrap() + 1 {
            get(port);
        }
        assert!(Arc::ptr_eq(&first, &get(1)), "it was used after the second");
        assert!(!Arc::ptr_eq(&second, &get(2)));
    }

    #[test]
    fn an_invalid_bundle_is_reported() {
        for bundle in ["%", "QUJD"] {
            let error = Transport::new(&key(1, bundle), None, 1).err().unwrap();
            assert!(error.contains("caBundle"), "{error}");
        }
        // A bundle of whitespace uses the system's roots.
        assert_eq!(STANDARD.decode("IAo=").unwrap().trim_ascii(), b"");
    }

    #[test]
    fn a_circuit_is_kept_as_long_as_its_address_is_resolved() {
        let transport = Transport::new(&key(1, &bundle()), None, 2).unwrap();
        let (a, b) = (Target::new("10.0.0.1", 1), Target::new("10.0.0.2", 1));
        let circuits = transport.circuits(&[a.clone(), b.clone()]);
        (0..3).for_each(|_| circuits[1].record_failure("refused".to_owned()));
        let state = transport.state();
        assert_eq!(state.open_circuits.len(), 1);
        assert_eq!(
            (state.open_circuits[0].target.as_str(), state.open_circuits[0].reason.as_str()),
            ("10.0.0.2:1", "refused")
        );
        assert!(Arc::ptr_eq(&transport.circuits(std::slice::from_ref(&b))[0], &circuits[1]));
        assert!(!Arc::ptr_eq(&transport.circuits(&[a])[0], &circuits[0]), "it was forgotten in between");
        assert!(transport.state().open_circuits.is_empty());
    }

    #[test]
    fn calls_in_flight_are_counted() {
        let transport = Transport::new(&key(1, &bundle()), None, 2).unwrap();
        let _call = transport.call_slots.try_acquire().unwrap();
        assert_eq!(transport.state().in_flight, 1);
    }
}
