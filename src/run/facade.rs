//! Starts the facade, with a control service in the same process or alone.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portico_facade::{
    AuthenticationSettings, ControlServices, ControlTransport, Facade, FacadeSettings, FailStaticSettings,
    ProxyClientCertificate, ProxyingSettings, RunningFacade, ServingCertificate, ZPages,
};
use portico_gostd::os::error_text;
use portico_kit::tasks::TaskSet;
use portico_proto::client::Connection;
use portico_server::Server;

use super::failure::Failure;
use super::process::Process;
use crate::settings::{SettingError, Settings};

/// Starts a facade that calls the control service of the same process.
pub(super) fn start_with_server(
    settings: &Settings,
    process: &Process,
    server: &Server,
) -> Result<RunningFacade, Failure> {
    let certificate =
        certificate_files(settings).unwrap_or_else(|| ServingCertificate::Channel(server.facade_serving()));
    let mut facade = facade_settings(settings, certificate)?;
    facade.passed_socket.clone_from(&process.sockets.https);
    facade.authentication.internal_ca = Some(server.internal_ca().into_bytes());
    let presented_cert = server.proxy_client().map(|(cert, key)| ProxyClientCertificate::Files { cert, key });
    facade.proxying.client_cert = facade.proxying.client_cert.or(presented_cert);
    "in-process".clone_into(&mut facade.name);
    let (services, trust) = server.local_services();
    let control = ControlTransport::local(services, trust);
    Ok(Facade::start(facade, process_resources(process), control)?)
}

/// Starts a facade that calls control services of other processes.
pub(super) async fn start_alone(
    settings: &Settings,
    process: &Process,
    tasks: &TaskSet,
) -> Result<RunningFacade, Failure> {
    let connections = connections(&settings.control.control_kubeconfig)?;
    let invalid = |e: &dyn std::fmt::Display| SettingError::new("--control-kubeconfig", e.to_string());
    let store_id = connections.iter().find_map(|connection| connection.store_id.clone());
    let mut transports = Vec::new();
    for connection in &connections {
        let transport = ControlTransport::remote(connection, process.runtimes.count());
        transports.push((connection.server.clone(), transport.map_err(|e| invalid(&e))?));
    }
    let control =
        ControlServices::new(transports, settings.control.control_failover_timeout, store_id.clone());
    control.start(&process.registry, tasks);
    portico_kit::atomic_file::create_private_dir(&settings.process.data_dir).map_err(|e| {
        SettingError::new(
            "--data-dir",
            format!("{}: {}", settings.process.data_dir.display(), error_text(&e)),
        )
    })?;
    portico_facade::maintain_client_certificate(&settings.cert_dir(), &connections, &control, tasks)
        .map_err(|e| invalid(&e))?;
    let (certificate, presented_cert) = tokio::join!(
        serving_certificate(settings, &control, tasks),
        proxy_client_certificate(settings, &control, tasks)
    );
    let mut facade = facade_settings(settings, certificate?)?;
    facade.proxying.client_cert = facade.proxying.client_cert.or(presented_cert?);
    facade.passed_socket.clone_from(&process.sockets.https);
    // Control services of one database share their CA.
    facade.authentication.internal_ca = connections.iter().find_map(|connection| connection.ca_pem.clone());
    facade.fail_static = Some(FailStaticSettings {
        data_dir: settings.process.data_dir.clone(),
        max_age: settings.control.fail_static_max_age,
        store_id,
    });
    Ok(Facade::start(facade, process_resources(process), control)?)
}

/// Returns the serving certificate: from files, or signed by the control service.
async fn serving_certificate(
    settings: &Settings,
    control: &ControlServices,
    tasks: &TaskSet,
) -> Result<ServingCertificate, SettingError> {
    match certificate_files(settings) {
        Some(files) => Ok(files),
        None => portico_facade::serving_certificate(
            &settings.cert_dir(),
            &certificate_names(settings),
            control,
            tasks,
        )
        .await
        .map_err(|e| SettingError::new("--cert-dir", e)),
    }
}

/// Returns the client certificate for backends that the control service signs, or `None` if flags replace or disable it.
async fn proxy_client_certificate(
    settings: &Settings,
    control: &ControlServices,
    tasks: &TaskSet,
) -> Result<Option<ProxyClientCertificate>, SettingError> {
    if !settings.is_front_proxy_signed() {
        return Ok(None);
    }
    let signed = portico_facade::front_proxy_certificate(&settings.cert_dir(), control, tasks).await;
    let signed = signed.map_err(|e| SettingError::new("--cert-dir", e))?;
    Ok(Some(ProxyClientCertificate::Channel(signed)))
}

/// Returns the control services in the kubeconfig files, in order and without duplicates.
fn connections(files: &[PathBuf]) -> Result<Vec<Connection>, SettingError> {
    let invalid = |file: &Path, e: &dyn std::fmt::Display| {
        SettingError::new("--control-kubeconfig", format!("{}: {e}", file.display()))
    };
    let mut connections: Vec<Connection> = Vec::new();
    for file in files {
        for connection in Connection::all_from_kubeconfig(file).map_err(|e| invalid(file, &e))? {
            let other_store = connections.iter().find_map(|other| other.store_id.as_ref());
            if let (Some(own), Some(other)) = (&connection.store_id, other_store)
                && own != other
            {
                let text =
                    format!("store {own}, but others serve store {other}: all must serve one database");
                return Err(invalid(file, &text));
            }
            if !connections.iter().any(|other| other.server == connection.server) {
                connections.push(connection);
            }
        }
    }
    Ok(connections)
}

/// Returns the CA certificate (PEM) with which clients verify a facade that runs together with a control service.
pub(super) fn serving_ca(settings: &Settings, server: &Server) -> Result<String, Failure> {
    match &settings.serving.tls_cert_file {
        None => Ok(server.facade_trust()?),
        // The CA of a configured certificate is not known: kubeconfigs pin the certificate itself.
        Some(file) => portico_kit::config_file::read_text(file)
            .map_err(|e| SettingError::new("--tls-cert-file", format!("{}: {e}", file.display())).into()),
    }
}

/// Returns the URL at which clients reach the facade.
pub(super) fn facade_url(settings: &Settings, bound: SocketAddr) -> String {
    match &settings.serving.external_hostname {
        Some(host) => format!("https://{host}:{}", bound.port()),
        None if bound.ip().is_unspecified() => format!("https://127.0.0.1:{}", bound.port()),
        None => format!("https://{bound}"),
    }
}

fn process_resources(process: &Process) -> portico_facade::ProcessResources {
    portico_facade::ProcessResources {
        registry: process.registry.clone(),
        telemetry: Some(process.telemetry.clone()),
        runtimes: Some(Arc::clone(&process.runtimes)),
        offload: Some(Arc::clone(&process.offload)),
        auditor: process.auditor.clone(),
    }
}

fn certificate_files(settings: &Settings) -> Option<ServingCertificate> {
    let files = settings.serving.tls_cert_file.clone().zip(settings.serving.tls_private_key_file.clone());
    files.map(|(cert, key)| ServingCertificate::Files { cert, key })
}

fn certificate_names(settings: &Settings) -> Vec<String> {
    settings
        .serving
        .external_hostname
        .iter()
        .cloned()
        .chain([settings.serving.bind_address.to_string()])
        .collect()
}

fn facade_settings(settings: &Settings, certificate: ServingCertificate) -> Result<FacadeSettings, Failure> {
    let s = &settings.serving;
    Ok(FacadeSettings {
        address: SocketAddr::new(s.bind_address, s.secure_port),
        sni: s.sni_pairs()?,
        tls_min_version: s.tls_min_version,
        tls_cipher_suites: s.tls_cipher_suites.clone(),
        tls_key_exchanges: s.tls_curve_preferences.clone(),
        disable_http2_serving: s.disable_http2_serving,
        permit_port_sharing: s.permit_port_sharing,
        external_hostname: s.external_hostname.clone().unwrap_or_default(),
        advertise_address: s.advertise_address,
        authentication: authentication(settings),
        authorization: settings.authorization.modes(),
        proxying: proxying(settings),
        kubelets: settings.kubelets.facade(),
        peer_ca_file: settings.peers.peer_ca_file.clone(),
        request_timeout: s.request_timeout,
        stalled_write_timeout: s.stalled_write_timeout,
        stalled_read_timeout: s.stalled_read_timeout,
        control_request_timeout: settings.control.control_request_timeout,
        enable_priority_and_fairness: s.enable_priority_and_fairness,
        max_requests_inflight: s.max_requests_inflight,
        max_mutating_requests_inflight: s.max_mutating_requests_inflight,
        max_request_body_bytes: s.max_request_body_bytes,
        max_watch_buffer_bytes: s.max_watch_buffer_bytes,
        max_connections: s.max_connections,
        http2_max_streams_per_connection: s.http2_max_streams_per_connection,
        max_request_header_bytes: s.max_request_header_bytes,
        request_header_timeout: s.request_header_timeout,
        tls_handshake_timeout: s.tls_handshake_timeout,
        cors_allowed_origins: s.cors_allowed_origins.clone(),
        strict_transport_security_directives: s.strict_transport_security_directives.clone(),
        goaway_chance: s.goaway_chance,
        livez_grace_period: s.livez_grace_period,
        serve_when_ready: s.serve_when_ready,
        shutdown_delay_duration: s.shutdown_delay_duration,
        shutdown_send_retry_after: s.shutdown_send_retry_after,
        shutdown_watch_termination_grace_period: s.shutdown_watch_termination_grace_period,
        profiling: settings.process.profiling,
        console: settings.process.console,
        test_faults: settings.process.test_faults,
        debug_socket: settings.process.debug_socket_path.clone(),
        zpages: zpages(settings)?,
        ..FacadeSettings::new(certificate)
    })
}

/// Returns the debugging pages that feature gates enable.
fn zpages(settings: &Settings) -> Result<ZPages, Failure> {
    let features = settings.core_api.features()?;
    Ok(ZPages {
        flags: features.enabled("ComponentFlagz").then(|| settings.flag_values.clone()),
        status: features.enabled("ComponentStatusz"),
    })
}

fn authentication(settings: &Settings) -> AuthenticationSettings {
    let a = &settings.authentication;
    AuthenticationSettings {
        internal_ca: None,
        client_ca_file: a.client_ca_file.clone(),
        token_auth_file: a.token_auth_file.clone(),
        anonymous: a.anonymous_auth,
        request_header: a.front_proxy(),
    }
}

fn proxying(settings: &Settings) -> ProxyingSettings {
    let p = &settings.proxying;
    ProxyingSettings {
        client_cert: p
            .proxy_client_cert_file
            .clone()
            .zip(p.proxy_client_key_file.clone())
            .map(|(cert, key)| ProxyClientCertificate::Files { cert, key }),
        egress_selector_config_file: p.egress_selector_config_file.clone(),
        backend_allow_cidr: p.backend_allow_cidr.clone(),
        dial_timeout: p.backend_dial_timeout,
        max_requests_per_backend: p.backend_max_requests,
        max_idle_connections: p.backend_max_idle_connections,
        max_mirrored_requests: p.backend_max_mirrored_requests,
        mirror_timeout: p.backend_mirror_timeout,
        reject_redirects: p.aggregator_reject_forwarding_redirect,
    }
}
