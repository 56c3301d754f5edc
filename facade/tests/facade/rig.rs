//! A facade with its scripted control service and a client.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Version;
use portico_facade::{
    ControlServices, Facade, FacadeSettings, ProcessResources, RunningFacade, ServingCertificate,
};
use portico_machinery::GroupVersion;
use portico_machinery::digest::sha256_hex;
use portico_machinery::discovery::{ServedVersion, Source};
use portico_machinery::route::{Availability, Backend, Route, ServiceReference, Target, Trust};
use portico_proto::convert::{Check, Entry, Payload, PayloadKind};
use tokio::sync::watch;

use super::backend::{self, issue};
use super::client::Client;
use super::control::ScriptedControl;

/// Timeout of a wait. It is longer than any wait of a passing test, even on a busy machine.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(90);

pub struct Rig {
    pub facade: RunningFacade,
    pub control: ScriptedControl,
    pub client: Client,
    pub ca: Vec<u8>,
    pub certificate: watch::Sender<portico_kit::tls::CertPair>,
    pub tokens: tempfile::NamedTempFile,
}

impl Rig {
    pub async fn start(snapshot: Vec<Entry>) -> Self {
        Self::with_settings(ScriptedControl::new(snapshot), |_| {}).await
    }

    /// Starts a facade with other settings. Does not wait for a configuration.
    pub async fn with_settings(control: ScriptedControl, set: impl FnOnce(&mut FacadeSettings)) -> Self {
        let only = control.transport().into();
        Self::with_services(control, only, ProcessResources::default(), set)
    }

    /// Starts a facade with these control services.
    pub fn with_services(
        control: ScriptedControl,
        services: ControlServices,
        process: ProcessResources,
        set: impl FnOnce(&mut FacadeSettings),
    ) -> Self {
        let (ca, pair) = issue("localhost");
        let (sender, certificate) = watch::channel(pair);
        let mut tokens = tempfile::NamedTempFile::new().unwrap();
        writeln!(tokens, "master,root,1,system:masters\nalice,alice,2").unwrap();
        let mut settings = FacadeSettings::new(ServingCertificate::Channel(certificate));
        settings.address = ([127, 0, 0, 1], 0).into();
        settings.authentication.token_auth_file = Some(tokens.path().to_owned());
        set(&mut settings);
        let facade = Facade::start(settings, process, services).unwrap();
        let client = Client::new(facade.addr(), &ca, Version::HTTP_11);
        Self { facade, control, client, ca, certificate: sender, tokens }
    }

    pub async fn until_configured(self) -> Self {
        self.facade.lifecycle().mux_and_discovery_complete.signaled().await;
        self
    }

    pub fn http2(&self) -> Client {
        Client::new(self.facade.addr(), &self.ca, Version::HTTP_2)
    }
}

pub fn served(group: &str, version: &str) -> Entry {
    let served = ServedVersion {
        group: group.into(),
        version: version.into(),
        source: Source::Builtin,
        ..ServedVersion::default()
    };
    entry(PayloadKind::Served, &format!("builtin/{group}/{version}"), Some(Payload::Served(Arc::new(served))))
}

pub fn check(name: &str, ok: bool) -> Entry {
    let message = if ok { String::new() } else { "it hurts".to_owned() };
    let check = Check { endpoints: vec!["readyz".into()], ok, message };
    entry(PayloadKind::Check, name, Some(Payload::Check(check)))
}

pub fn removal(kind: PayloadKind, key: &str) -> Entry {
    entry(kind, key, None)
}

/// Creates the entries of a route to a backend and of its CA bundle.
pub fn route(name: &str, backend: &backend::Backend) -> Vec<Entry> {
    let hash = sha256_hex(&backend.ca);
    let (version, group) = name.split_once('.').unwrap();
    let target = Target { host: backend.addr.ip().to_string(), port: backend.addr.port() };
    let route = Route {
        name: name.to_owned(),
        group_version: GroupVersion::new(group, version),
        backend: Some(Arc::new(Backend {
            service: ServiceReference { namespace: "ns".into(), name: "svc".into(), port: 443 },
            targets: vec![target],
            server_name: "svc.ns.svc".into(),
            trust: Trust::Bundle(hash.clone()),
            ..Backend::default()
        })),
        available: Availability { ok: true, ..Availability::default() },
        ..Route::default()
    };
    let bundle = Payload::TrustBundle(Bytes::from(backend.ca.clone()));
    vec![
        entry(PayloadKind::Route, name, Some(Payload::Route(Arc::new(route)))),
        entry(PayloadKind::TrustBundle, &hash, Some(bundle)),
    ]
}

fn entry(kind: PayloadKind, key: &str, payload: Option<Payload>) -> Entry {
    Entry { kind, key: key.to_owned(), revision: 1, payload }
}

/// Repeats `poll` until it returns a value, within the timeout: for effects that happen in the background.
pub async fn eventually<T, F>(mut poll: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let limit = tokio::time::timeout(WAIT_TIMEOUT, async {
        loop {
            if let Some(value) = poll().await {
                return value;
            }
            tokio::task::yield_now().await;
        }
    });
    limit.await.expect("it did not happen in time")
}
