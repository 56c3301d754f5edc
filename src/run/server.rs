//! Starts the control service.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use portico_server::{
    ConnectionSettings, RegistrySettings, Server, ServerSettings, ServiceAccountSettings, StoreSettings,
    TranslationSettings, WebhookLimits, controllers,
};

use super::failure::Failure;
use super::process::Process;
use crate::settings::Settings;

/// Feature gate: GET requests for exec, attach and portforward require permission for the verb `create`.
const CREATE_PERMISSION: &str = "AuthorizePodWebsocketUpgradeCreatePermission";
/// Feature gate: WebSocket connections of exec and attach are translated to SPDY for kubelets.
const TRANSLATE_COMMANDS: &str = "TranslateStreamCloseWebsocketRequests";
/// Feature gate: WebSocket connections of portforward are translated to SPDY for kubelets.
const TRANSLATE_PORTS: &str = "PortForwardWebsockets";
/// Feature gate: unreadable objects can be deleted.
const UNSAFE_DELETION: &str = "AllowUnsafeMalformedObjectDeletion";

/// Starts the control service with these settings.
pub(super) async fn start(settings: &Settings, process: &Process) -> Result<Server, Failure> {
    let passed_socket = process.sockets.grpc.clone();
    let process = portico_server::Process {
        metrics: process.registry.clone(),
        telemetry: process.telemetry.clone(),
        runtimes: Arc::clone(&process.runtimes),
        offload: Arc::clone(&process.offload),
        auditor: process.auditor.clone(),
    };
    for controller in controllers::not_implemented_in(&settings.controllers.controllers) {
        tracing::warn!(controller, "controller in --controllers is not implemented, ignored");
    }
    Ok(Server::start(server_settings(settings, passed_socket)?, process).await?)
}

fn server_settings(
    s: &Settings,
    inherited_socket: Option<Arc<TcpListener>>,
) -> Result<ServerSettings, Failure> {
    let proxy_client =
        s.proxying.proxy_client_cert_file.clone().zip(s.proxying.proxy_client_key_file.clone());
    Ok(ServerSettings {
        data_dir: s.process.data_dir.clone(),
        cert_dir: s.cert_dir(),
        control_address: s.control.control_address,
        inherited_socket,
        control_external_address: s.control.control_external_address.clone(),
        external_hostname: s.serving.external_hostname.clone(),
        bind_address: s.serving.bind_address,
        client_ca_file: s.authentication.client_ca_file.clone(),
        request_header: s.authentication.front_proxy(),
        token_auth_file: s.authentication.token_auth_file.clone(),
        token_webhook: s.authentication.token_webhook()?,
        authentication: s.authentication.issuers(),
        authorization: s.authorization.server()?,
        service_accounts: service_accounts(s),
        proxy_client,
        own_front_proxy: s.has_own_front_proxy(),
        egress_selector_config_file: s.proxying.egress_selector_config_file.clone(),
        backend_allow_cidr: s.proxying.backend_allow_cidr.clone(),
        backend_dial_timeout: s.proxying.backend_dial_timeout,
        webhooks: WebhookLimits {
            requests: s.proxying.webhook_max_requests,
            max_response_bytes: s.proxying.webhook_max_answer_bytes,
            max_review_bytes: s.proxying.admission_webhook_max_answer_bytes,
        },
        enable_aggregator_routing: s.proxying.enable_aggregator_routing,
        expiration: s.core_api.api_expiration()?,
        version: s.core_api.version()?,
        advertise_address: s.serving.advertise_address.map(|ip| SocketAddr::new(ip, s.serving.secure_port)),
        peer_advertise_address: s.peers.address(),
        runtime_config: s.core_api.runtime_config()?,
        features: s.core_api.features()?,
        controllers: controllers::enabled(&s.controllers.controllers),
        controller_settings: s.controllers.settings(),
        leader_election: s.store.is_shared().then(|| s.controllers.leader_election()).flatten(),
        coordinated_leadership: s.controllers.leadership(),
        signing: s.signing.server(),
        event_ttl: s.store.event_ttl,
        encryption: s.encryption.settings(),
        store: store(s),
        postgres: s.store.postgres()?,
        etcd: s.store.etcd()?,
        registry: RegistrySettings {
            form_cache_bytes: s.store.form_cache_bytes,
            max_object_bytes: s.store.max_object_bytes,
            min_watch_timeout: std::time::Duration::from_secs(s.serving.min_request_timeout),
            node_ports: s.core_api.service_node_port_range.clone(),
            service_ranges: s.core_api.service_cluster_ip_range.clone(),
            allow_privileged: s.core_api.allow_privileged,
            connections: connections(s)?,
            unsafe_deletion: s.core_api.features()?.enabled(UNSAFE_DELETION),
            ..RegistrySettings::default()
        },
        admission: s.admission.settings(s.core_api.features()?)?,
        openapi_cache_bytes: s.store.openapi_cache_bytes,
        seats: s.serving.seats(),
        default_call_timeout: s.serving.request_timeout,
        max_connections: s.control.control_max_connections,
        max_streams_per_connection: s.control.control_max_streams_per_connection,
        manifests: s.manifests.settings(),
        livez_grace_period: s.serving.livez_grace_period,
    })
}

fn connections(s: &Settings) -> Result<ConnectionSettings, Failure> {
    let features = s.core_api.features()?;
    Ok(ConnectionSettings {
        preferred_address_types: s.kubelets.kubelet_preferred_address_types.clone(),
        check_creation: features.enabled(CREATE_PERMISSION),
        translation: TranslationSettings {
            commands: features.enabled(TRANSLATE_COMMANDS),
            ports: features.enabled(TRANSLATE_PORTS),
            pass_through_declared: features.enabled(TranslationSettings::DECLARED),
        },
    })
}

fn service_accounts(s: &Settings) -> ServiceAccountSettings {
    let s = &s.service_accounts;
    ServiceAccountSettings {
        issuers: s.service_account_issuer.clone(),
        key_files: s.service_account_key_file.clone(),
        signing_key_file: s.service_account_signing_key_file.clone(),
        signing_endpoint: s.service_account_signing_endpoint.clone(),
        api_audiences: s.api_audiences.clone(),
        max_token_expiration: s.service_account_max_token_expiration,
        extend_token_expiration: s.service_account_extend_token_expiration,
        lookup: s.service_account_lookup,
        jwks_uri: s.service_account_jwks_uri.clone(),
        bootstrap_tokens: s.enable_bootstrap_token_auth,
        legacy_clean_up_period: s.legacy_service_account_token_clean_up_period,
    }
}

fn store(s: &Settings) -> StoreSettings {
    StoreSettings {
        history_retention: s.store.history_retention.of_all,
        archive: s.store.history_retention.archive.clone(),
        archive_max_bytes: s.store.history_archive_max_bytes,
        mark_retention: s.store.event_ttl + s.store.compaction_interval * 2,
        history_max_bytes: s.store.history_max_bytes,
        compaction_interval: s.store.compaction_interval,
        cache_max_bytes: (s.store.cache_max_bytes > 0).then_some(s.store.cache_max_bytes),
        sync: !s.store.unsafe_no_fsync,
        reserve_bytes: s.store.database_reserve_bytes,
        max_file_bytes: (s.store.database_max_bytes > 0).then_some(s.store.database_max_bytes),
        write_queue: s.store.write_queue,
        subscription_events: s.store.watch_queue_events,
        subscription_bytes: s.store.watch_queue_bytes,
        ..StoreSettings::new(portico_server::data::database_file(&s.process.data_dir))
    }
}
