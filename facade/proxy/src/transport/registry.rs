//! All transports of a facade by key, and the parts of a transport.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::HeaderValue;
use parking_lot::Mutex;
use portico_kit::dial::Connector;
use portico_kit::tasks::TaskSet;
use portico_kit::tls::{CertPair, ClientTls, TlsError};
use portico_machinery::route::{Target as Address, Trust};
use tokio::time::Instant;

use super::http1::Http1;
use super::key::{ClientCertificate, TransportKey};
use super::rotation::Rotation;
use super::target::Target;
use super::trust::{TlsInputs, TrustStore};
use super::usage::{EndpointUsage, Usage};
use crate::backend_counts::{BackendCounts, BackendCountsRegistry};
use crate::client_cert::ClientCert;
use crate::metrics::ProxyMetrics;
use crate::mirror_counts::MirrorCounts;
use crate::observation::{Observation, TargetState};
use crate::settings::{Kubelets, Limits, ProxySettings};

/// Reason for which a transport cannot be created. Requests get 500 with this text.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The CA bundle of the route is missing.
    #[error("the CA bundle {0} is missing on this facade")]
    MissingBundle(String),
    /// The bundle or the server name is invalid.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// An address that is not a valid header value.
    #[error("the target {} is not a valid address", portico_gostd::strconv::quote(.0))]
    Target(String),
}

/// State that all transports share. One per [`crate::Proxy`].
pub(crate) struct Shared {
    pub(crate) connector: Connector,
    pub(crate) limits: Limits,
    pub(crate) tasks: TaskSet,
    pub(crate) metrics: ProxyMetrics,
    pub(crate) kubelets: Kubelets,
    client_cert: Option<ClientCert>,
    /// Counts changes of client certificates.
    generation: AtomicU64,
    trust: TrustStore,
}

impl Shared {
    pub(crate) fn new(settings: ProxySettings, metrics: ProxyMetrics) -> Self {
        let ProxySettings { connector, client_cert, kubelets, tasks, limits } = settings;
        let (generation, trust) = (AtomicU64::new(1), TrustStore::default());
        Self { connector, limits, tasks, metrics, kubelets, client_cert, generation, trust }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Increments the generation at each change of this client certificate; returns when its source is gone.
    pub(crate) async fn follow_client_cert(self: Arc<Self>, client_certificate: ClientCertificate) {
        let Some(mut cert) = self.certificate(client_certificate).cloned() else { return };
        while cert.changed().await {
            self.generation.fetch_add(1, Ordering::AcqRel);
            tracing::info!(
                certificate = client_certificate.as_str(),
                "client certificate changed, reconnecting to backends"
            );
        }
    }

    fn certificate(&self, client_certificate: ClientCertificate) -> Option<&ClientCert> {
        match client_certificate {
            ClientCertificate::None => None,
            ClientCertificate::FrontProxy => self.client_cert.as_ref(),
            ClientCertificate::Kubelet => self.kubelets.client_cert.as_ref(),
        }
    }

    fn pair(&self, client_certificate: ClientCertificate) -> Option<CertPair> {
        self.certificate(client_certificate)?.current().map(|pair| CertPair::clone(&pair))
    }
}

struct Tls {
    generation: u64,
    settings: ClientTls,
}

/// Connections to one backend, and their settings.
pub struct Transport {
    pub(super) shared: Arc<Shared>,
    pub(super) targets: Box<[Target]>,
    pub(super) rotation: Rotation,
    /// Requests that are being retried.
    pub(super) retrying: AtomicUsize,
    pub(super) key: TransportKey,
    /// Counters of the backend; `None` for a connection that was dialed for one request.
    counts: Option<Arc<BackendCounts>>,
    ca: Option<Bytes>,
    tls: ArcSwapOption<Tls>,
    in_flight: AtomicUsize,
    /// Counters of a mirror. They outlive the routes that use it.
    mirror_counts: Option<Arc<MirrorCounts>>,
    /// Set by each request, cleared by each sweep.
    used_since_sweep: AtomicBool,
    /// Time of the last sweep that found the transport in use.
    last_used: Mutex<Instant>,
}

impl Transport {
    /// Creates a transport. Everything is validated here: an invalid bundle fails before the first request.
    fn new(
        shared: Arc<Shared>,
        key: TransportKey,
        counts: Option<Arc<BackendCounts>>,
        ca: Option<Bytes>,
    ) -> Result<Self, TransportError> {
        if let (Some(Trust::Bundle(hash)), None) = (&key.trust, &ca) {
            return Err(TransportError::MissingBundle(hash.clone()));
        }
        let target = |address: &Address| {
            let target = Target::new(address, &shared.limits, key.policy.ejection);
            target.ok_or_else(|| TransportError::Target(address.to_string()))
        };
        let targets = key.targets.iter().map(target).collect::<Result<_, _>>()?;
        let mirror_counts = key.mirror_of.as_ref().map(|_| Arc::default());
        let transport = Self {
            mirror_counts,
            shared,
            targets,
            rotation: Rotation::new(key.targets.len(), &key.policy.weights),
            retrying: AtomicUsize::new(0),
            key,
            counts,
            ca,
            tls: ArcSwapOption::empty(),
            in_flight: AtomicUsize::new(0),
            used_since_sweep: AtomicBool::new(true),
            last_used: Mutex::new(Instant::now()),
        };
        transport.tls()?;
        Ok(transport)
    }

    /// Returns the addresses.
    pub fn targets(&self) -> &[Address] {
        &self.key.targets
    }

    /// Returns the counters of a mirror.
    pub(crate) fn mirror_counts(&self) -> Arc<MirrorCounts> {
        self.mirror_counts.clone().unwrap_or_default()
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Returns `host:port` of a target, as in its `Host` header.
    pub(crate) fn authority(&self, target: usize) -> &HeaderValue {
        &self.targets[target].authority
    }

    pub(super) fn http2(&self) -> bool {
        self.key.http2
    }

    /// Returns the newest outcome of the targets.
    pub(crate) fn observation(&self) -> Option<Observation> {
        let service = self.counts.as_ref()?.service.clone();
        let newest = self.targets.iter().filter_map(|target| Some((target, target.circuit.last()?)));
        let (target, outcome) = newest.max_by_key(|(_, outcome)| outcome.at_ms)?;
        let (failed, message) =
            outcome.failure.map_or((None, String::new()), |(stage, text)| (Some(stage), text));
        Some(Observation {
            service,
            server_name: self.key.server_name.clone(),
            target: target.address.to_string(),
            failed,
            message,
            at_ms: outcome.at_ms,
            failures: target.circuit.failures(),
            last_used: self.last_used(),
        })
    }

    fn last_used(&self) -> Instant {
        let is_used = self.used_since_sweep.load(Ordering::Relaxed) || self.in_flight() > 0;
        if is_used { Instant::now() } else { *self.last_used.lock() }
    }

    /// Returns the state of each address.
    pub(crate) fn target_states(&self) -> Vec<TargetState> {
        let weights = &self.key.policy.weights;
        let state = |(at, target): (usize, &Target)| {
            let last = target.circuit.last();
            let since_ms = last.as_ref().map(|outcome| outcome.since_ms);
            let (failed, message) = last.and_then(|outcome| outcome.failure).unzip();
            TargetState {
                target: target.address.to_string(),
                is_open: target.circuit.is_open(),
                failures: target.circuit.failures(),
                failed,
                message: message.unwrap_or_default(),
                since_ms,
                weight: weights.get(at).copied(),
                ejection: target.ejection_state(),
            }
        };
        self.targets.iter().enumerate().map(state).collect()
    }

    /// Returns a permit for one more request, or the limit as the error.
    pub(crate) fn admit(self: &Arc<Self>) -> Result<Permit, usize> {
        if !self.try_count() {
            if let Some(counts) = &self.counts {
                counts.record_refused();
            }
            return Err(self.max_requests());
        }
        if !self.used_since_sweep.load(Ordering::Relaxed) {
            self.used_since_sweep.store(true, Ordering::Relaxed);
        }
        Ok(Permit { transport: self.clone() })
    }

    /// Counts a copy of a request until the guard is dropped, or returns `None` if the limit is reached.
    pub(super) fn admit_copy(&self) -> Option<CopyPermit<'_>> {
        self.try_count().then(|| CopyPermit(&self.in_flight))
    }

    /// Counts one more request in flight, unless the limit is reached.
    fn try_count(&self) -> bool {
        let has_room = self.in_flight.fetch_add(1, Ordering::Relaxed) < self.max_requests();
        if !has_room {
            self.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
        has_room
    }

    pub(super) fn put_back(&self, target: usize, connection: Http1) {
        if connection.generation == self.shared.generation()
            && let Some(target) = self.targets.get(target)
        {
            target.put_back(connection, self.shared.limits.max_idle_per_target.min(self.max_connections()));
        }
    }

    /// Maximum number of requests in flight.
    fn max_requests(&self) -> usize {
        self.shared.limits.max_requests_per_backend.min(self.max_connections())
    }

    /// Counts a request that waits for a connection.
    pub(super) fn record_wait(&self) {
        if let Some(counts) = &self.counts {
            counts.record_wait();
        }
    }

    /// Returns addresses and current use for the metrics; `None` unless a route leads to the transport.
    pub(super) fn usage(&self) -> Option<Usage> {
        let endpoint = |(at, target): (usize, &Target)| EndpointUsage {
            endpoint: target.address.to_string(),
            weight: self.rotation.weight(at),
            open: target.open_connections.count(),
        };
        Some(Usage {
            service: self.counts.as_ref()?.service.clone(),
            in_flight: self.in_flight(),
            max_in_flight: self.max_requests(),
            endpoints: self.targets.iter().enumerate().map(endpoint).collect(),
        })
    }

    /// Maximum number of connections according to the policy.
    fn max_connections(&self) -> usize {
        self.key.policy.max_connections.map_or(usize::MAX, |most| most as usize)
    }

    /// Returns the TLS settings with the current client certificate and its generation; `None` for connections without TLS.
    pub(super) fn tls(&self) -> Result<(u64, Option<ClientTls>), TlsError> {
        let generation = self.shared.generation();
        let TransportKey { trust, client_certificate, http2, server_name, .. } = &self.key;
        let Some(trust) = trust else { return Ok((generation, None)) };
        if let Some(tls) = &*self.tls.load()
            && tls.generation == generation
        {
            return Ok((generation, Some(tls.settings.clone())));
        }
        let inputs =
            TlsInputs { trust: trust.clone(), client_certificate: *client_certificate, http2: *http2 };
        let pair = self.shared.pair(*client_certificate);
        let mut settings = self.shared.trust.settings(inputs, self.ca.as_ref(), generation, pair)?;
        if !server_name.is_empty() {
            settings = settings.with_server_name(server_name.clone())?;
        }
        self.tls.store(Some(Arc::new(Tls { generation, settings: settings.clone() })));
        Ok((generation, Some(settings)))
    }

    /// Closes dead and old connections; an idle transport also drops its TLS settings. Returns the
    /// number of remaining idle connections.
    fn sweep(&self, now: Instant) -> usize {
        let mut last_used = self.last_used.lock();
        if self.used_since_sweep.swap(false, Ordering::Relaxed) || self.in_flight() > 0 {
            *last_used = now;
        }
        let timeout = self.shared.limits.idle_timeout;
        let rest = now.duration_since(*last_used) > timeout;
        if rest {
            self.tls.store(None);
        }
        let (generation, oldest) = (self.shared.generation(), now.checked_sub(timeout));
        self.targets.iter().map(|target| target.sweep(generation, oldest, rest)).sum()
    }

    fn is_unused(&self, now: Instant) -> bool {
        let unused = now.duration_since(*self.last_used.lock());
        unused > self.shared.limits.idle_timeout && self.in_flight() == 0
    }
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport")
            .field("server_name", &self.key.server_name)
            .field("targets", &self.key.targets)
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}

/// Permit for one request at a backend; counts the request until it is dropped.
pub(crate) struct Permit {
    transport: Arc<Transport>,
}

impl Permit {
    pub(crate) fn transport(&self) -> &Arc<Transport> {
        &self.transport
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.transport.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Guard that counts a copy of a request at a backend, in addition to the request's own [`Permit`].
pub(super) struct CopyPermit<'a>(&'a AtomicUsize);

impl Drop for CopyPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The transports by key.
#[derive(Default)]
pub(crate) struct Transports {
    by_key: Mutex<HashMap<TransportKey, Arc<Transport>>>,
    /// Counters of Services to which routes lead.
    pub(crate) counts: BackendCountsRegistry,
}

impl std::fmt::Debug for Transports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transports").finish_non_exhaustive()
    }
}

impl Transports {
    /// Returns the transport for this key, an existing or a new one. A caller that serves a route passes
    /// the counters of its Service.
    pub(crate) fn get(
        &self,
        shared: &Arc<Shared>,
        key: TransportKey,
        counts: Option<&Arc<BackendCounts>>,
        ca: Option<&Bytes>,
    ) -> Result<Arc<Transport>, TransportError> {
        if let Some(found) = self.by_key.lock().get(&key) {
            if counts.is_some() {
                // A new route uses the transport: the control service may know that the backend is available again.
                found.targets.iter().for_each(|target| target.circuit.probe_soon());
            }
            return Ok(found.clone());
        }
        let transport = Transport::new(shared.clone(), key.clone(), counts.cloned(), ca.cloned())?;
        let transport = self.by_key.lock().entry(key).or_insert_with(|| Arc::new(transport)).clone();
        Ok(transport)
    }

    /// Returns the current use of each backend.
    pub(super) fn usage(&self) -> Vec<Usage> {
        self.by_key.lock().values().filter_map(|transport| transport.usage()).collect()
    }

    pub(crate) fn observations(&self) -> Vec<Observation> {
        self.by_key.lock().values().filter_map(|transport| transport.observation()).collect()
    }

    /// Drops idle connections, TLS settings, and transports that no route uses.
    pub(crate) fn sweep(&self, shared: &Shared) {
        let now = Instant::now();
        let all: Vec<Arc<Transport>> = self.by_key.lock().values().cloned().collect();
        let idle: usize = all.iter().map(|transport| transport.sweep(now)).sum();
        drop(all);
        let mut transports = self.by_key.lock();
        transports.retain(|_, transport| Arc::strong_count(transport) > 1 || !transport.is_unused(now));
        shared.metrics.transports.set(i64::try_from(transports.len()).unwrap_or(i64::MAX));
        shared.metrics.connections.set(i64::try_from(idle).unwrap_or(i64::MAX));
        drop(transports);
        self.counts.sweep();
        shared.trust.sweep();
    }
}
