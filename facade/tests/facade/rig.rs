//! A facade with its scripted control service and a client.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Version;
use portico_facade::{ControlServices, Facade, FacadeSettings, Process, RunningFacade, ServingCertificate};
use portico_machinery::GroupVersion;
use portico_machinery::digest::sha256_hex;
use portico_machinery::discovery::{Served, Source};
use portico_machinery::route::{Availability, Backend, Route, ServiceReference, Target, Trust};
use portico_proto::convert::{Check, Entry, Payload, PayloadKind};
use tokio::sync::watch;

use super::backend::{self, issued};
use super::client::Client;
use super::control::Scripted;

/// Timeout of a wait. It is longer than any wait of a passing test, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(90);

pub struct Rig {
    pub facade: RunningFacade,
    pub control: Scripted,
    pub client: Client,
    pub ca: Vec<u8>,
    pub certificate: watch::Sender<portico_kit::tls::CertPair>,
    pub tokens: tempfile::NamedTempFile,
}

impl Rig {
    pub async fn start(snapshot: Vec<Entry>) -> Self {
        Self::with(Scripted::new(snapshot), |_| {}).await
    }

    /// Starts a facade with other settings. Does not wait for a configuration.
    pub async fn with(control: Scripted, set: impl FnOnce(&mut FacadeSettings)) -> Self {
        let only = control.transport().into();
        Self::of(control, only, Process::default(), set)
    }

    /// Starts a facade with these control services.
    pub fn of(
        control: Scripted,
        services: ControlServices,
        process: Process,
        set: impl FnOnce(&mut FacadeSettings),
    ) -> Self {
        let (ca, pair) = issued("localhost");
        let (sender, given) = watch::channel(pair);
        let mut tokens = tempfile::NamedTempFile::new().unwrap();
        writeln!(tokens, "master,root,1,system:masters\nalice,alice,2").unwrap();
        let mut settings = FacadeSettings::new(ServingCertificate::Given(given));
        settings.address = ([127, 0, 0, 1], 0).into();
        settings.authentication.token_auth_file = Some(tokens.path().to_owned());
        set(&mut settings);
        let facade = Facade::start(settings, process, services).unwrap();
        let client = Client::new(facade.addr(), &ca, Version::HTTP_11);
        Self { facade, control, client, ca, certificate: sender, tokens }
    }

    pub async fn configured(self) -> Self {
        self.facade.lifecycle().mux_and_discovery_complete.signaled().await;
        self
    }

    pub fn http2(&self) -> Client {
        Client::new(self.facade.addr(), &self.ca, Version::HTTP_2)
    }
}

pub fn served(group: &str, version: &str) -> Entry {
    let served =
        Served { group: group.into(), version: version.into(), source: Source::Builtin, ..Served::default() };
    entry(PayloadKind::Served, &format!("builtin/{group}/{version}"), Some(Payload::Served(Arc::new(served))))
}

pub fn check(name: &str, ok: bool) -> Entry {
    let message = if ok { String::new() } else { "it hurts".to_owned() };
    let check = Check { endpoints: vec!["readyz".into()], ok, message };
    entry(PayloadKind::Check, name, Some(Payload::Check(check)))
}

pub fn gone(kind: PayloadKind, key: &str) -> Entry {
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

/// Repeats `ask` until it returns a value, within the timeout: for effects that happen in the background.
pub async fn eventually<T, F>(mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let limit = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Some(found) = ask().await {
                return found;
            }
            tokio::task::yield_now().await;
        }
    });
    limit.await.expect("it did not happen in time")
}
