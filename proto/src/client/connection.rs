//! Connection to a control service: TLS, credentials, keepalive, deadline.

use std::time::Duration;

use tonic::Status;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::control_channel::ControlChannel;
use crate::MAX_MESSAGE_BYTES;
use crate::admin::admin_client::AdminClient;
use crate::apiextensions::definitions_client::DefinitionsClient;
use crate::apiregistration::api_services_client::ApiServicesClient;
use crate::catalog::catalog_client::CatalogClient;
use crate::config::config_client::ConfigClient;
use crate::history::history_client::HistoryClient;
use crate::objects::objects_client::ObjectsClient;
use crate::routes::routes_client::RoutesClient;

/// Default deadline of calls other than streams.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);
/// Timeout for connecting, and for the TLS handshake. Keepalive starts only after the handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of keepalive pings.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// Timeout for the response to a keepalive ping, after which the connection is closed.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Client credentials.
#[derive(Clone, Default)]
#[cfg_attr(not(feature = "conversions"), non_exhaustive)]
pub enum Credentials {
    /// No credentials: only the health service is available.
    #[default]
    None,
    /// Client certificate and key, in PEM.
    Certificate {
        /// Certificate chain.
        cert_pem: Vec<u8>,
        /// Private key.
        key_pem: Vec<u8>,
    },
    /// Bearer token.
    Token(String),
}

/// Settings of a connection: address, trusted roots and credentials.
#[derive(Clone)]
#[non_exhaustive]
pub struct Connection {
    /// Address: `https://host:port`.
    pub server: String,
    /// Trusted root certificates, in PEM. With `None`, no server is trusted.
    pub ca_pem: Option<Vec<u8>>,
    /// Name in the server's certificate, if it differs from the host.
    pub server_name: Option<String>,
    /// Client credentials.
    pub credentials: Credentials,
    /// Identity of the store, if the kubeconfig has it.
    pub store_id: Option<String>,
    /// Deadline of calls. Does not apply to streams. Default: 30 s.
    pub deadline: Duration,
}

/// Error: the settings of a connection are invalid. (Errors of connecting are returned by the first call.)
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address is not a URL, or a certificate or key is invalid.
    #[error("control service {server}: {source}")]
    Transport {
        /// Address of the control service.
        server: String,
        /// Underlying error.
        source: tonic::transport::Error,
    },
    /// The token has characters that are not allowed in a header.
    #[error("the bearer token cannot be sent in a header")]
    Token,
}

impl Connection {
    /// Returns settings for a server address, without trusted roots and credentials.
    #[must_use]
    pub fn new(server: String) -> Self {
        Self {
            server,
            ca_pem: None,
            server_name: None,
            credentials: Credentials::None,
            store_id: None,
            deadline: DEFAULT_DEADLINE,
        }
    }

    /// Sets the client credentials.
    #[must_use]
    pub fn with_credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// Sets the deadline of calls.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Returns the tonic endpoint, for callers that manage channels themselves.
    ///
    /// # Errors
    /// [`ConnectError::Transport`].
    pub fn endpoint(&self) -> Result<Endpoint, ConnectError> {
        self.checked_endpoint()
            .map_err(|source| ConnectError::Transport { server: self.server.clone(), source })
    }

    fn checked_endpoint(&self) -> Result<Endpoint, tonic::transport::Error> {
        let mut tls = ClientTlsConfig::new().timeout(CONNECT_TIMEOUT);
        if let Some(ca) = &self.ca_pem {
            tls = tls.ca_certificate(Certificate::from_pem(ca));
        }
        if let Some(name) = &self.server_name {
            tls = tls.domain_name(name);
        }
        if let Credentials::Certificate { cert_pem, key_pem } = &self.credentials {
            tls = tls.identity(Identity::from_pem(cert_pem, key_pem));
        }
        Endpoint::from_shared(self.server.clone())?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .tls_config(tls)
    }

    /// Returns a channel that connects at the first call, and reconnects when the connection is lost.
    ///
    /// # Errors
    /// [`ConnectError::Transport`].
    pub fn channel(&self) -> Result<Channel, ConnectError> {
        Ok(self.endpoint()?.connect_lazy())
    }
}

/// Interceptor that adds the bearer token, and the deadline to calls without one.
#[derive(Clone)]
pub struct Intercept {
    authorization: Option<MetadataValue<Ascii>>,
    deadline: Option<Duration>,
}

impl Interceptor for Intercept {
    fn call(&mut self, mut request: tonic::Request<()>) -> Result<tonic::Request<()>, Status> {
        if let Some(value) = &self.authorization {
            request.metadata_mut().insert("authorization", value.clone());
        }
        if let Some(deadline) = self.deadline.filter(|_| request.metadata().get("grpc-timeout").is_none()) {
            request.set_timeout(deadline);
        }
        Ok(request)
    }
}

type Transport = InterceptedService<ControlChannel, Intercept>;

/// Clients of all services over one connection. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    channel: ControlChannel,
    intercept: Intercept,
}

/// Defines a method that returns the client of a service. With `$bounded` false, its calls are streams without a deadline.
macro_rules! service {
    ($(#[$doc:meta])* $name:ident, $client:ident, $bounded:expr) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(&self) -> $client<Transport> {
            let mut intercept = self.intercept.clone();
            intercept.deadline = intercept.deadline.filter(|_| $bounded);
            $client::with_interceptor(self.channel.clone(), intercept)
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES)
        }
    };
}

impl Client {
    /// Creates the clients. The first call connects.
    ///
    /// # Errors
    /// [`ConnectError`] if the settings are invalid.
    pub fn connect(connection: &Connection) -> Result<Self, ConnectError> {
        let authorization = match &connection.credentials {
            Credentials::Token(token) => {
                Some(format!("Bearer {token}").parse().map_err(|_| ConnectError::Token)?)
            }
            Credentials::None | Credentials::Certificate { .. } => None,
        };
        let intercept = Intercept { authorization, deadline: Some(connection.deadline) };
        Ok(Self { channel: ControlChannel::new(connection.channel()?, &connection.server), intercept })
    }

    service!(
        /// Client of `APIServices`, with the deadline for calls and lists.
        api_services, ApiServicesClient, true
    );
    service!(
        /// Client of `APIServices` without a deadline, for watches.
        api_services_watch, ApiServicesClient, false
    );
    service!(
        /// Client of `Objects`, with the deadline for calls and lists. See also [`Client::resource`].
        objects, ObjectsClient, true
    );
    service!(
        /// Client of `Objects` without a deadline, for watches.
        objects_watch, ObjectsClient, false
    );
    service!(
        /// Client of `Config`, the configuration stream of facades, without a deadline.
        config, ConfigClient, false
    );
    service!(
        /// Client of `Catalog`: documents by content hash.
        catalog, CatalogClient, true
    );
    service!(
        /// Client of `Routes`: reachability of APIs.
        routes, RoutesClient, true
    );
    service!(
        /// Client of `History`: past states of objects.
        history, HistoryClient, true
    );
    service!(
        /// Client of `Definitions`: checks of CustomResourceDefinitions before they are written.
        definitions, DefinitionsClient, true
    );
    service!(
        /// Client of `Admin`: operation of the control service.
        admin, AdminClient, true
    );
}
