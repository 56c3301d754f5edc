//! One connection to a control service: TLS, credentials, keepalive, deadline.

use std::time::Duration;

use tonic::Status;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::dialled::Dialled;
use crate::MAX_MESSAGE_BYTES;
use crate::admin::admin_client::AdminClient;
use crate::apiextensions::definitions_client::DefinitionsClient;
use crate::apiregistration::api_services_client::ApiServicesClient;
use crate::catalog::catalog_client::CatalogClient;
use crate::config::config_client::ConfigClient;
use crate::history::history_client::HistoryClient;
use crate::objects::objects_client::ObjectsClient;
use crate::routes::routes_client::RoutesClient;

/// How long a call may take unless it is a stream.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);
/// How long a connection may take to stand, and then its handshake: whoever is never answered there would wait for ever, because what
/// asks whether a connection lives begins only behind it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a quiet connection is asked whether it lives.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// How long the answer may take before the connection counts as dead.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Who to be.
#[derive(Clone, Default)]
pub enum Credentials {
    /// Nobody: only health can be asked.
    #[default]
    None,
    /// A client certificate and its key, PEM.
    Certificate {
        /// The certificate chain.
        cert_pem: Vec<u8>,
        /// The private key.
        key_pem: Vec<u8>,
    },
    /// A bearer token.
    Token(String),
}

/// Where a control service is, what to trust, who to be.
#[derive(Clone)]
pub struct Connection {
    /// `https://host:port`
    pub server: String,
    /// PEM roots; absent means that no server is trusted.
    pub ca_pem: Option<Vec<u8>>,
    /// The name that the server's certificate must carry, when it is not the host.
    pub server_name: Option<String>,
    /// Who to be.
    pub credentials: Credentials,
    /// The identity of the store behind it, where the kubeconfig says so.
    pub store_id: Option<String>,
    /// How long a call may take; streams are not bound by it.
    pub deadline: Duration,
}

/// A connection that cannot be made up; dialling itself happens at the first call.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is no URL, or the certificates cannot be used.
    #[error("control service {server}: {source}")]
    Transport {
        /// The address.
        server: String,
        /// What is wrong with it.
        source: tonic::transport::Error,
    },
    /// A token with characters that no header may carry.
    #[error("the bearer token cannot be sent in a header")]
    Token,
}

impl Connection {
    /// A connection to this server with nothing but defaults.
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

    /// The same with another deadline for calls.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Where and how to dial, for those who keep several channels.
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

    /// A channel that dials at the first call and again whenever the connection is lost.
    ///
    /// # Errors
    /// [`ConnectError::Transport`].
    pub fn channel(&self) -> Result<Channel, ConnectError> {
        Ok(self.endpoint()?.connect_lazy())
    }
}

/// Adds the bearer token and, to unary calls without one, the deadline.
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

type Transport = InterceptedService<Dialled, Intercept>;

/// Clients of every service over one connection. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    channel: Dialled,
    intercept: Intercept,
}

/// A client of a service whose calls end; `$unbounded` ones are streams without a deadline.
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
    /// Makes the clients; the first call dials.
    ///
    /// # Errors
    /// [`ConnectError`] when the settings cannot be used.
    pub fn connect(connection: &Connection) -> Result<Self, ConnectError> {
        let authorization = match &connection.credentials {
            Credentials::Token(token) => {
                Some(format!("Bearer {token}").parse().map_err(|_| ConnectError::Token)?)
            }
            Credentials::None | Credentials::Certificate { .. } => None,
        };
        let intercept = Intercept { authorization, deadline: Some(connection.deadline) };
        Ok(Self { channel: Dialled::new(connection.channel()?, &connection.server), intercept })
    }

    service!(
        /// APIServices; calls and lists carry the deadline.
        api_services, ApiServicesClient, true
    );
    service!(
        /// APIServices without a deadline, for watches.
        api_services_watch, ApiServicesClient, false
    );
    service!(
        /// Objects of any kind; calls and lists carry the deadline.
        objects, ObjectsClient, true
    );
    service!(
        /// Objects of any kind without a deadline, for watches.
        objects_watch, ObjectsClient, false
    );
    service!(
        /// The configuration stream of facades, without a deadline.
        config, ConfigClient, false
    );
    service!(
        /// Documents by content.
        catalog, CatalogClient, true
    );
    service!(
        /// What may be reached, and why not.
        routes, RoutesClient, true
    );
    service!(
        /// What objects were.
        history, HistoryClient, true
    );
    service!(
        /// Definitions before they are written.
        definitions, DefinitionsClient, true
    );
    service!(
        /// Operating the control service.
        admin, AdminClient, true
    );
}
