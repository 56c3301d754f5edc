//! Connections to backends from the control service: egress, address policy and client certificate. Probes, catalog and webhooks
//! share them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use portico_controllers::availability::{HttpProber, ProbeSettings};
use portico_kit::certs::FileWatch;
use portico_kit::dial::{AddressPolicy, Connector, ConnectorOptions};
use portico_kit::egress::{EgressConfig, EgressDialer, EgressMetrics};
use portico_kit::fetch::Fetcher;
use portico_kit::hooks::{HookContext, Hooks};
use portico_kit::tasks::TaskSet;
use portico_kit::tls::CertPair;
use portico_registry::{Resolver, WebhookConnectors, Webhooks};

use super::error::StartError;
use super::explain_sources::AvailabilityController;
use super::process::Process;
use crate::settings::ServerSettings;

/// Timeout of one step of a connection. It is shorter than the 5 s of a probe, so that the probe can report the failed step.
const STEP_TIMEOUT: Duration = Duration::from_secs(4);

/// Connections to backends.
pub(super) struct BackendConnections {
    pub(super) fetcher: Fetcher,
    client_cert: Option<FileWatch<CertPair>>,
}

impl BackendConnections {
    /// Reads the egress selector and the client certificate.
    pub(super) fn new(
        settings: &ServerSettings,
        process: &Process,
        tasks: &TaskSet,
        own_address: SocketAddr,
    ) -> Result<Self, StartError> {
        let policy = AddressPolicy::new(settings.backend_allow_cidr.clone());
        policy.add_own_listener(own_address);
        let options = ConnectorOptions {
            dial_timeout: settings.backend_dial_timeout.min(STEP_TIMEOUT),
            tls_timeout: STEP_TIMEOUT,
            policy,
            ..ConnectorOptions::default()
        };
        let connector = Connector::with_egress(options, egress(settings, "cluster", process)?);
        let client_cert = settings
            .proxy_client
            .as_ref()
            .map(|(cert, key)| FileWatch::cert_pair("aggregator-proxy-cert", cert.clone(), key.clone()))
            .transpose()?;
        Ok(Self { fetcher: Fetcher::new(connector, tasks.clone()), client_cert })
    }

    /// Returns the client for webhooks. Webhooks behind Services are reached like backends, those with URLs by upstream's
    /// `controlplane` egress selection.
    pub(super) fn webhooks(
        &self,
        settings: &ServerSettings,
        process: &Process,
        tasks: &TaskSet,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Webhooks, StartError> {
        let limits = settings.webhooks;
        let fetcher =
            |connector| Fetcher::new(connector, tasks.clone()).with_idle_per_target(limits.requests);
        let services = self.fetcher.connector().clone();
        let urls = services.clone_with_egress(egress(settings, "controlplane", process)?);
        let (urls, services) = (fetcher(urls), fetcher(services));
        Ok(Webhooks::new(WebhookConnectors { urls, services, resolver }, limits))
    }

    /// Returns the certificate that backends receive, with its changes.
    pub(super) fn client_cert_watch(&self) -> Option<FileWatch<CertPair>> {
        self.client_cert.clone()
    }

    /// Returns a prober that presents the client certificate.
    pub(super) fn prober(&self, settings: ProbeSettings) -> HttpProber {
        let client_cert = self.client_cert.as_ref().map(|w| CertPair::clone(&w.current()));
        HttpProber::new(self.fetcher.clone(), settings, client_cert)
    }

    /// Reports lost connections to the availability controller.
    pub(super) fn report_lost_connections(&self, availability: &AvailabilityController) {
        let on_lost = availability.on_connection_lost();
        self.fetcher.on_lost(Box::new(move |target| {
            on_lost(&portico_machinery::route::Target { host: target.host.clone(), port: target.port });
        }));
    }

    /// Adds the hook that applies a changed client certificate; does nothing without a certificate.
    pub(super) fn add_hook(
        &self,
        prober: HttpProber,
        availability: &AvailabilityController,
        hooks: &Hooks,
    ) -> Result<(), StartError> {
        let Some(watch) = self.client_cert.clone() else { return Ok(()) };
        let availability = availability.clone();
        hooks.add_post_start("aggregator-reload-proxy-client-cert", move |cx: HookContext| async move {
            watch.watch(&cx.tasks, "proxy-client-cert");
            let mut changes = watch.subscribe();
            cx.tasks.spawn_until_cancelled("proxy-client-cert-reload", async move {
                while changes.changed().await.is_ok() {
                    prober.set_client_cert(Some(CertPair::clone(&changes.borrow_and_update())));
                    availability.reprobe_all();
                }
            });
            Ok(())
        })?;
        Ok(())
    }
}

/// Returns the dialer for one of upstream's egress selections; `None` without a file, or if the selection is direct.
pub(super) fn egress(
    settings: &ServerSettings,
    selection: &str,
    process: &Process,
) -> Result<Option<EgressDialer>, StartError> {
    let Some(file) = &settings.egress_selector_config_file else { return Ok(None) };
    let config = EgressConfig::load(file)?;
    let metrics = EgressMetrics::new(&process.metrics);
    let dialer = config.selection(selection).map(|s| EgressDialer::new(s, Some(metrics))).transpose()?;
    Ok(dialer.flatten())
}
