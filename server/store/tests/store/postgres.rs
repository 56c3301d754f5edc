//! Tests of PostgreSQL: a database for each test, directly and behind a pooler.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use portico_kit::metrics::{Format, Registry};
use portico_kit::tasks::TaskSet;
use portico_store::{Metrics, PostgresError, PostgresSettings, PostgresStore, Seal, Settings, Store};
use portico_tests::{PostgresServer, Wire};

use crate::harness::{Backend, WithNodeName, settings_at};

/// Database of the shared server.
pub struct Postgres<'s> {
    server: &'s PostgresServer,
    name: String,
    url: String,
    pooled: bool,
}

impl Postgres<'static> {
    /// Creates a database; `None` if PostgreSQL is not installed.
    pub fn direct() -> Option<Self> {
        PostgresServer::shared().map(Postgres::create)
    }

    /// Creates a database with tables behind a pooler.
    pub async fn pooled() -> Option<Self> {
        let database = Self::direct()?;
        let url = PostgresServer::pooled_url(&database.name)?;
        database.process(&|_| ()).await.store.close().await;
        Some(Self { url, pooled: true, ..database })
    }
}

impl<'s> Postgres<'s> {
    /// Creates a database of this server.
    pub fn create(server: &'s PostgresServer) -> Self {
        let name = server.create_database();
        Self { url: server.url(&name), server, name, pooled: false }
    }

    /// Opens the database as one of several processes.
    pub async fn process(&self, tune: &(dyn Fn(&mut Settings) + Sync)) -> Process {
        let mut settings = settings_at("");
        tune(&mut settings);
        self.try_open(self.settings(), settings, Seal::none()).await.unwrap()
    }

    /// Opens the database with other connection settings.
    pub async fn process_with(&self, settings: PostgresSettings) -> Process {
        self.try_open(settings, settings_at(""), Seal::none()).await.unwrap()
    }

    /// Returns the connection settings.
    pub fn settings(&self) -> PostgresSettings {
        let mut settings = PostgresSettings::new(&self.url).unwrap();
        settings.transaction_pooler = self.pooled;
        settings
    }

    /// Returns the connection settings over a wire, with a short timeout.
    pub fn settings_via(&self, wire: &Wire) -> PostgresSettings {
        let url = format!("postgres://portico@{}/{}", wire.address, self.name);
        let mut settings = PostgresSettings::new(&url).unwrap();
        settings.statement_timeout = Duration::from_secs(1);
        settings
    }

    /// Tries to open the database.
    pub async fn try_open(
        &self,
        postgres: PostgresSettings,
        settings: Settings,
        seal: Arc<Seal>,
    ) -> Result<Process, PostgresError> {
        let (registry, tasks) = (Registry::new(), TaskSet::new());
        let (metrics, indexer) = (Metrics::new(&registry), Arc::new(WithNodeName));
        let store = PostgresStore::open(postgres, settings, indexer, seal, metrics, &tasks).await?;
        Ok(Process { store: Arc::new(store), tasks, registry })
    }

    /// Returns the server.
    pub fn server(&self) -> &PostgresServer {
        self.server
    }

    /// Runs a statement outside of all processes.
    pub fn psql(&self, statement: &str) -> String {
        self.server.psql(&self.name, statement).trim().to_owned()
    }

    /// Sets a parameter for new connections.
    pub fn set(&self, parameter: &str, value: &str) {
        self.psql(&format!("ALTER DATABASE {} SET {parameter} = {value}", self.name));
    }

    /// Ends every connection to the database.
    pub fn terminate_connections(&self) {
        self.server.terminate_connections(&self.name);
    }
}

/// Process that writes to the database.
pub struct Process {
    pub store: Arc<dyn Store>,
    pub tasks: TaskSet,
    registry: Registry,
}

impl Process {
    /// Returns the first sample of a metric.
    pub fn metric(&self, name: &str) -> String {
        let text = self.registry.encode(Format::Text);
        let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
        let line = text.lines().find(of_name).unwrap_or_default();
        line.rsplit(' ').next().unwrap_or_default().to_owned()
    }
}

impl Backend for Postgres<'_> {
    fn open_with<'a>(&'a self, tune: &'a (dyn Fn(&mut Settings) + Sync)) -> BoxFuture<'a, Arc<dyn Store>> {
        Box::pin(async { self.process(tune).await.store })
    }
}
