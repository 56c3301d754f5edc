//! Entries of the configuration stream: routes, served group versions, trust bundles, checks and settings.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use portico_machinery::GroupVersion;
use portico_machinery::discovery::{ServedVersion, Source};
use portico_machinery::flow_control::{self, StoredObjects};
use portico_machinery::rbac::{Fact, Key};
use portico_machinery::route::{
    Availability, Backend, BackendPolicy, Ejection, Mirror, ResolveError, Route, ServiceReference, Target,
    Trust,
};

use super::flow_control as flow;
use super::rbac;
use crate::config as pb;

/// Version of the configuration: revision in one epoch of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Version {
    /// ID of the store.
    pub store_id: String,
    /// Epoch of the store, which changes when the store is restored from a backup.
    pub epoch: String,
    /// Revision of the store.
    pub revision: i64,
}

impl From<pb::Version> for Version {
    fn from(v: pb::Version) -> Self {
        Self { store_id: v.store_id, epoch: v.epoch, revision: v.revision }
    }
}

impl From<&Version> for pb::Version {
    fn from(v: &Version) -> Self {
        Self { store_id: v.store_id.clone(), epoch: v.epoch.clone(), revision: v.revision }
    }
}

/// State of a health check or hook of the control service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// Endpoints of the check: `healthz`, `livez`, `readyz`.
    pub endpoints: Vec<String>,
    /// True if the check passes.
    pub ok: bool,
    /// Reason of the failure, or a warning if the check passes.
    pub message: String,
}

impl Check {
    /// Check of `/readyz` that fails while admission rules cannot be read.
    pub const ADMISSION_RULES: &str = "admission-rules";
    /// Check of `/readyz` that fails while the store is short of space and accepts only deletions.
    pub const STORAGE_SPACE: &str = "storage-space";
    /// Checks of `/readyz` that a process does not wait for at startup, because their problems are fixed over the API.
    pub const REPAIRED_OVER_API: [&str; 2] = [Self::ADMISSION_RULES, Self::STORAGE_SPACE];
}

/// Names of [`Payload::Setting`] entries. Lists have one item per line.
pub mod setting {
    /// Issuers of service account tokens; the first one signs.
    pub const ISSUERS: &str = "service-account-issuers";
    /// Audiences of this API.
    pub const AUDIENCES: &str = "api-audiences";
    /// URI of the issuer's keys, if it is not that of the facade.
    pub const JWKS_URI: &str = "service-account-jwks-uri";
    /// Address at which clients in the range of Services reach the API: `CIDR host:port`.
    pub const SERVICE_ADDRESS: &str = "service-address";
    /// Bootstrap token authentication: `true`, or no entry.
    pub const BOOTSTRAP_TOKENS: &str = "enable-bootstrap-token-auth";
    /// Tokens that only the control service can authenticate, without a signature: `true`, or no entry.
    pub const CONTROL_SERVICE_TOKENS: &str = "other-tokens";
    /// Schedule on which changing token keys are fetched: Unix time of one fetch and interval, both in seconds. No entry for
    /// constant keys.
    pub const TOKEN_KEY_FETCHES: &str = "token-key-fetches";
    /// Certificate (PEM) of the CA that signs certificate requests, if its client certificates are trusted.
    pub const SIGNING_CA: &str = "signing-ca";
    /// Anonymous access, which overrides the facade's `--anonymous-auth`: `true`, `false`, or a JSON list of paths.
    pub const ANONYMOUS: &str = "anonymous";
    /// Release that is reported to clients, and on a second line the oldest release that other servers may have.
    pub const EFFECTIVE_VERSION: &str = "effective-version";
    /// Authorization modes, with upstream's names, in their order.
    pub const AUTHORIZATION_MODES: &str = "authorization-modes";
    /// Name of this server and its peers behind the same address, in the format of `PeerAddresses`.
    pub const PEERS: &str = "peers";
}

/// Content of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Compiled APIService; the key is its name.
    Route(Arc<Route>),
    /// Discovery and OpenAPI of a group version; the key is `source/group/version`.
    Served(Arc<ServedVersion>),
    /// CA bundle (PEM); the key is its SHA-256.
    TrustBundle(Bytes),
    /// Health check; the key is its name.
    Check(Check),
    /// Shared setting; the key is its name.
    Setting(String),
    /// Content of a role or binding; the key is a [`Key`].
    Rbac(Arc<Fact>),
    /// Public key that verifies service account tokens; the key is its position in the list of keys.
    TokenKey(TokenKey),
    /// Content of a flow schema or priority level; the key is a [`flow_control::Key`].
    FlowControl(flow_control::Fact),
    /// Number of stored objects; the key is `resource.group`.
    StoredObjects(StoredObjects),
}

/// Public key that verifies service account tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenKey {
    /// SubjectPublicKeyInfo in DER.
    pub der: Bytes,
    /// Key ID in token headers; empty if it is derived from the key.
    pub id: String,
    /// True if the key is not published to relying parties.
    pub unpublished: bool,
}

/// Kind of a payload. Kind and key identify an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PayloadKind {
    /// [`Payload::Route`]
    Route,
    /// [`Payload::Served`]
    Served,
    /// [`Payload::TrustBundle`]
    TrustBundle,
    /// [`Payload::Check`]
    Check,
    /// [`Payload::Setting`]
    Setting,
    /// [`Payload::Rbac`]
    Rbac,
    /// [`Payload::TokenKey`]
    TokenKey,
    /// [`Payload::FlowControl`]
    FlowControl,
    /// [`Payload::StoredObjects`]
    StoredObjects,
}

impl Payload {
    /// Returns the kind of the payload.
    #[must_use]
    pub fn kind(&self) -> PayloadKind {
        match self {
            Self::Route(_) => PayloadKind::Route,
            Self::Served(_) => PayloadKind::Served,
            Self::TrustBundle(_) => PayloadKind::TrustBundle,
            Self::Check(_) => PayloadKind::Check,
            Self::Setting(_) => PayloadKind::Setting,
            Self::Rbac(_) => PayloadKind::Rbac,
            Self::TokenKey(_) => PayloadKind::TokenKey,
            Self::FlowControl(_) => PayloadKind::FlowControl,
            Self::StoredObjects(_) => PayloadKind::StoredObjects,
        }
    }
}

/// Configuration value under one key; `payload` is `None` if the entry was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Kind of the payload.
    pub kind: PayloadKind,
    /// Key, unique within the kind.
    pub key: String,
    /// Revision of the last change.
    pub revision: i64,
    /// Current content.
    pub payload: Option<Payload>,
}

/// Error of an entry that cannot be used; the facade reports it in its acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEntry {
    /// The payload is missing or unknown: the sender is newer than this build, or faulty.
    #[error("entry {} has an unsupported payload", portico_gostd::strconv::quote(.0))]
    UnknownPayload(String),
    /// A port is greater than 65535.
    #[error("entry {}: {} is not a port", portico_gostd::strconv::quote(.0), .1)]
    Port(String, u32),
    /// A backend has no trust settings.
    #[error("entry {}: the backend has no trust settings", portico_gostd::strconv::quote(.0))]
    NoTrust(String),
    /// A role or binding is empty, or its key is invalid.
    #[error("entry {} is not a role or binding", portico_gostd::strconv::quote(.0))]
    Rbac(String),
    /// A flow schema or priority level is empty, or its key is invalid.
    #[error("entry {} is not a flow schema or priority level", portico_gostd::strconv::quote(.0))]
    FlowControl(String),
}

impl From<&Entry> for pb::Entry {
    fn from(entry: &Entry) -> Self {
        use pb::entry::Payload as P;
        let payload = match (&entry.payload, entry.kind) {
            (Some(Payload::Route(r)), _) => P::Route(route_to_proto(r)),
            (Some(Payload::Served(s)), _) => P::Served(served_to_proto(s)),
            (Some(Payload::TrustBundle(pem)), _) => P::TrustBundle(pb::TrustBundle { pem: pem.clone() }),
            (Some(Payload::Check(c)), _) => {
                P::Check(pb::Check { endpoints: c.endpoints.clone(), ok: c.ok, message: c.message.clone() })
            }
            (Some(Payload::Setting(value)), _) => P::Setting(pb::Setting { value: value.clone() }),
            (Some(Payload::Rbac(fact)), _) => P::Rbac(rbac::to_proto(fact)),
            (Some(Payload::TokenKey(key)), _) => P::TokenKey(token_key_to_proto(key)),
            (Some(Payload::FlowControl(fact)), _) => P::FlowControl(flow::to_proto(fact)),
            (Some(Payload::StoredObjects(stored)), _) => P::StoredObjects(stored_objects_to_proto(*stored)),
            (None, PayloadKind::Route) => P::Route(pb::Route::default()),
            (None, PayloadKind::Served) => P::Served(pb::Served::default()),
            (None, PayloadKind::TrustBundle) => P::TrustBundle(pb::TrustBundle::default()),
            (None, PayloadKind::Check) => P::Check(pb::Check::default()),
            (None, PayloadKind::Setting) => P::Setting(pb::Setting::default()),
            (None, PayloadKind::Rbac) => P::Rbac(pb::Rbac::default()),
            (None, PayloadKind::TokenKey) => P::TokenKey(pb::TokenKey::default()),
            (None, PayloadKind::FlowControl) => P::FlowControl(pb::FlowControl::default()),
            (None, PayloadKind::StoredObjects) => P::StoredObjects(pb::StoredObjects::default()),
        };
        Self {
            key: entry.key.clone(),
            revision: entry.revision,
            deleted: entry.payload.is_none(),
            payload: Some(payload),
        }
    }
}

impl TryFrom<pb::Entry> for Entry {
    type Error = InvalidEntry;

    fn try_from(entry: pb::Entry) -> Result<Self, InvalidEntry> {
        use pb::entry::Payload as P;
        let (key, revision) = (entry.key, entry.revision);
        let payload = entry.payload.ok_or_else(|| InvalidEntry::UnknownPayload(key.clone()))?;
        let kind = match &payload {
            P::Route(_) => PayloadKind::Route,
            P::Served(_) => PayloadKind::Served,
            P::TrustBundle(_) => PayloadKind::TrustBundle,
            P::Check(_) => PayloadKind::Check,
            P::Setting(_) => PayloadKind::Setting,
            P::Rbac(_) => PayloadKind::Rbac,
            P::TokenKey(_) => PayloadKind::TokenKey,
            P::FlowControl(_) => PayloadKind::FlowControl,
            P::StoredObjects(_) => PayloadKind::StoredObjects,
        };
        if kind == PayloadKind::Rbac && key.parse::<Key>().is_err() {
            return Err(InvalidEntry::Rbac(key));
        }
        if kind == PayloadKind::FlowControl && key.parse::<flow_control::Key>().is_err() {
            return Err(InvalidEntry::FlowControl(key));
        }
        if entry.deleted {
            return Ok(Self { kind, key, revision, payload: None });
        }
        let payload = match payload {
            P::Route(r) => Payload::Route(Arc::new(route_from_proto(&key, revision, r)?)),
            P::Served(s) => Payload::Served(Arc::new(served_from_proto(s))),
            // Copied: the decoded bytes share the buffer of the whole message and would keep it allocated.
            P::TrustBundle(b) => Payload::TrustBundle(Bytes::copy_from_slice(&b.pem)),
            P::Check(c) => Payload::Check(Check { endpoints: c.endpoints, ok: c.ok, message: c.message }),
            P::Setting(s) => Payload::Setting(s.value),
            P::Rbac(message) => match rbac::from_proto(message) {
                Some(fact) => Payload::Rbac(Arc::new(fact)),
                None => return Err(InvalidEntry::Rbac(key)),
            },
            P::TokenKey(k) => {
                let (der, id) = (Bytes::copy_from_slice(&k.public_key), k.key_id);
                Payload::TokenKey(TokenKey { der, id, unpublished: k.unpublished })
            }
            P::FlowControl(message) => match flow::from_proto(&key, message) {
                Some(fact) => Payload::FlowControl(fact),
                None => return Err(InvalidEntry::FlowControl(key)),
            },
            P::StoredObjects(s) => {
                let (count, average_bytes) = (s.count, s.average_bytes);
                Payload::StoredObjects(StoredObjects { count, average_bytes })
            }
        };
        Ok(Self { kind, key, revision, payload: Some(payload) })
    }
}

fn token_key_to_proto(key: &TokenKey) -> pb::TokenKey {
    let TokenKey { der, id, unpublished } = key;
    pb::TokenKey { public_key: der.to_vec(), key_id: id.clone(), unpublished: *unpublished }
}

fn stored_objects_to_proto(stored: StoredObjects) -> pb::StoredObjects {
    pb::StoredObjects { count: stored.count, average_bytes: stored.average_bytes }
}

fn availability_to_proto(a: &Availability) -> pb::Availability {
    pb::Availability {
        ok: a.ok,
        reason: a.reason.clone(),
        message: a.message.clone(),
        since: a.since.clone(),
    }
}

fn availability_from_proto(a: pb::Availability) -> Availability {
    Availability { ok: a.ok, reason: a.reason, message: a.message, since: a.since }
}

fn route_to_proto(r: &Route) -> pb::Route {
    pb::Route {
        group: r.group_version.group.clone(),
        version: r.group_version.version.clone(),
        group_priority_minimum: r.group_priority_minimum,
        version_priority: r.version_priority,
        backend: r.backend.as_deref().map(backend_to_proto),
        available: Some(availability_to_proto(&r.available)),
    }
}

fn route_from_proto(key: &str, revision: i64, r: pb::Route) -> Result<Route, InvalidEntry> {
    Ok(Route {
        name: key.to_owned(),
        group_version: GroupVersion::new(r.group, r.version),
        group_priority_minimum: r.group_priority_minimum,
        version_priority: r.version_priority,
        backend: r.backend.map(|b| backend_from_proto(key, b)).transpose()?.map(Arc::new),
        available: r.available.map(availability_from_proto).unwrap_or_default(),
        revision,
    })
}

fn backend_to_proto(b: &Backend) -> pb::Backend {
    use pb::backend::Trust as T;
    let (resolve_reason, resolve_message) =
        b.resolve_error.as_ref().map(|e| (e.reason.clone(), e.message.clone())).unwrap_or_default();
    pb::Backend {
        service_namespace: b.service.namespace.clone(),
        service_name: b.service.name.clone(),
        service_port: u32::from(b.service.port),
        targets: b.targets.iter().map(target_to_proto).collect(),
        resolve_reason,
        resolve_message,
        server_name: b.server_name.clone(),
        http2: b.http2,
        policy: (b.policy != BackendPolicy::default()).then(|| policy_to_proto(&b.policy)),
        trust: Some(match &b.trust {
            Trust::System => T::SystemRoots(true),
            Trust::Insecure => T::Insecure(true),
            Trust::Bundle(hash) => T::TrustBundle(hash.clone()),
        }),
    }
}

fn backend_from_proto(key: &str, b: pb::Backend) -> Result<Backend, InvalidEntry> {
    use pb::backend::Trust as T;
    let port = |p: u32| parse_port(key, p);
    let trust = match b.trust.ok_or_else(|| InvalidEntry::NoTrust(key.to_owned()))? {
        T::SystemRoots(_) => Trust::System,
        T::Insecure(_) => Trust::Insecure,
        T::TrustBundle(hash) => Trust::Bundle(hash),
    };
    let targets = b.targets.into_iter().map(|t| target_from_proto(key, t));
    let resolve_error = (!b.resolve_reason.is_empty())
        .then_some(ResolveError { reason: b.resolve_reason, message: b.resolve_message });
    Ok(Backend {
        service: ServiceReference {
            namespace: b.service_namespace,
            name: b.service_name,
            port: port(b.service_port)?,
        },
        targets: targets.collect::<Result<_, _>>()?,
        resolve_error,
        server_name: b.server_name,
        trust,
        http2: b.http2,
        policy: b.policy.map(|policy| policy_from_proto(key, policy)).transpose()?.unwrap_or_default(),
    })
}

fn target_to_proto(t: &Target) -> pb::Endpoint {
    pb::Endpoint { host: t.host.clone(), port: u32::from(t.port) }
}

fn target_from_proto(key: &str, t: pb::Endpoint) -> Result<Target, InvalidEntry> {
    Ok(Target { host: t.host, port: parse_port(key, t.port)? })
}

fn parse_port(key: &str, port: u32) -> Result<u16, InvalidEntry> {
    u16::try_from(port).map_err(|_| InvalidEntry::Port(key.to_owned(), port))
}

fn policy_to_proto(p: &BackendPolicy) -> pb::BackendPolicy {
    let ms = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    pb::BackendPolicy {
        retries: p.retries,
        per_try_timeout_ms: p.per_try_timeout.map_or(0, ms),
        hedge_after_ms: p.hedge_after.map_or(0, ms),
        max_connections: p.max_connections.unwrap_or(0),
        weights: p.weights.clone(),
        ejection_failures: p.ejection.map_or(0, |ejection| ejection.failures),
        ejection_ms: p.ejection.map_or(0, |ejection| ms(ejection.time)),
        mirror: p.mirror.as_ref().map(mirror_to_proto),
    }
}

fn mirror_to_proto(m: &Mirror) -> pb::Mirror {
    pb::Mirror {
        host: Some(target_to_proto(&m.host)),
        targets: m.targets.iter().map(target_to_proto).collect(),
        server_name: m.server_name.clone(),
        percent: m.percent,
        max_body_bytes: m.max_body_bytes,
    }
}

fn mirror_from_proto(key: &str, m: pb::Mirror) -> Result<Mirror, InvalidEntry> {
    let targets = m.targets.into_iter().map(|t| target_from_proto(key, t));
    Ok(Mirror {
        targets: targets.collect::<Result<_, _>>()?,
        host: m.host.map(|t| target_from_proto(key, t)).transpose()?.unwrap_or_default(),
        server_name: m.server_name,
        percent: m.percent,
        max_body_bytes: m.max_body_bytes,
    })
}

fn policy_from_proto(key: &str, p: pb::BackendPolicy) -> Result<BackendPolicy, InvalidEntry> {
    let ms = |ms: u32| Duration::from_millis(u64::from(ms));
    let ejection = Ejection { failures: p.ejection_failures, time: ms(p.ejection_ms) };
    Ok(BackendPolicy {
        retries: p.retries,
        per_try_timeout: (p.per_try_timeout_ms > 0).then(|| ms(p.per_try_timeout_ms)),
        hedge_after: (p.hedge_after_ms > 0).then(|| ms(p.hedge_after_ms)),
        max_connections: (p.max_connections > 0).then_some(p.max_connections),
        weights: p.weights,
        ejection: (p.ejection_failures > 0).then_some(ejection),
        mirror: p.mirror.map(|mirror| mirror_from_proto(key, mirror)).transpose()?,
    })
}

fn served_to_proto(s: &ServedVersion) -> pb::Served {
    let source = match s.source {
        Source::Aggregator => pb::Source::Aggregator,
        Source::Builtin => pb::Source::Builtin,
        Source::Crd => pb::Source::Crd,
    };
    pb::Served {
        group: s.group.clone(),
        version: s.version.clone(),
        source: source.into(),
        stale: s.stale,
        discovery: s.discovery.clone(),
        resource_list: s.resource_list.clone(),
        openapi_v3: s.openapi_v3.clone(),
        openapi_v2: s.openapi_v2.clone(),
        openapi_v3_etag: s.openapi_v3_etag.clone(),
    }
}

fn served_from_proto(s: pb::Served) -> ServedVersion {
    let source = match s.source() {
        pb::Source::Aggregator => Source::Aggregator,
        pb::Source::Crd => Source::Crd,
        pb::Source::Builtin | pb::Source::Unspecified => Source::Builtin,
    };
    ServedVersion {
        group: s.group,
        version: s.version,
        source,
        stale: s.stale,
        discovery: s.discovery,
        resource_list: s.resource_list,
        openapi_v3: s.openapi_v3,
        openapi_v2: s.openapi_v2,
        openapi_v3_etag: s.openapi_v3_etag,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(entry: &Entry) {
        assert_eq!(&Entry::try_from(pb::Entry::from(entry)).unwrap(), entry);
    }

    #[test]
    fn entries_round_trip() {
        let route = Route {
            name: "v1.g".into(),
            group_version: GroupVersion::new("g", "v1"),
            backend: Some(Arc::new(Backend {
                service: ServiceReference { namespace: "n".into(), name: "s".into(), port: 443 },
                targets: vec![Target { host: "::1".into(), port: 8443 }],
                trust: Trust::Bundle("ab".into()),
                server_name: "s.n.svc".into(),
                ..Backend::default()
            })),
            revision: 7,
            ..Route::default()
        };
        let payloads = [
            Payload::Route(Arc::new(route)),
            Payload::Served(Arc::default()),
            Payload::TrustBundle(Bytes::from_static(b"pem")),
            Payload::Check(Check { endpoints: vec!["readyz".into()], ok: true, message: String::new() }),
            Payload::Setting("v".into()),
            Payload::TokenKey(TokenKey {
                der: Bytes::from_static(b"der"),
                id: "k".into(),
                unpublished: true,
            }),
            Payload::StoredObjects(StoredObjects { count: 3, average_bytes: 700 }),
        ];
        let facts = ["roles/n/r", "rolebindings/n/b"].into_iter().zip(super::rbac::tests::facts());
        for (key, fact) in facts {
            let payload = Some(Payload::Rbac(Arc::new(fact)));
            round_trip(&Entry { kind: PayloadKind::Rbac, key: key.into(), revision: 7, payload });
            round_trip(&Entry { kind: PayloadKind::Rbac, key: key.into(), revision: 7, payload: None });
        }
        for (key, fact) in crate::convert::flow_control::tests::facts() {
            let payload = Some(Payload::FlowControl(fact));
            round_trip(&Entry { kind: PayloadKind::FlowControl, key: key.into(), revision: 7, payload });
            round_trip(&Entry {
                kind: PayloadKind::FlowControl,
                key: key.into(),
                revision: 7,
                payload: None,
            });
        }
        for mut payload in payloads {
            if let Payload::Served(served) = &mut payload {
                Arc::make_mut(served).source = Source::Crd;
            }
            let kind = payload.kind();
            round_trip(&Entry { kind, key: "v1.g".into(), revision: 7, payload: Some(payload) });
            round_trip(&Entry { kind, key: "v1.g".into(), revision: 8, payload: None });
        }
    }

    #[test]
    fn errors_name_the_unusable_entry() {
        assert_eq!(
            Entry::try_from(pb::Entry { key: "k".into(), ..pb::Entry::default() }),
            Err(InvalidEntry::UnknownPayload("k".into()))
        );
        for key in ["roles/n/r", "pods/n/p"] {
            let payload = Some(pb::entry::Payload::Rbac(pb::Rbac::default()));
            let entry = pb::Entry { key: key.into(), payload, ..pb::Entry::default() };
            assert_eq!(Entry::try_from(entry), Err(InvalidEntry::Rbac(key.into())));
        }
        for key in ["flowschemas/s", "pods/p"] {
            let payload = Some(pb::entry::Payload::FlowControl(pb::FlowControl::default()));
            let entry = pb::Entry { key: key.into(), payload, ..pb::Entry::default() };
            assert_eq!(Entry::try_from(entry), Err(InvalidEntry::FlowControl(key.into())));
        }
    }
}
