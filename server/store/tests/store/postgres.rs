//! PostgreSQL under test: a database for each test, directly and behind a pooler.

use std::sync::Arc;

use futures::future::BoxFuture;
use portico_kit::metrics::Registry;
use portico_kit::tasks::TaskSet;
use portico_store::{MetadataIndexer, Metrics, PostgresSettings, PostgresStore, Seal, Settings, Store};
use portico_tests::PostgresServer;

use crate::harness::Backend;

/// A database of the shared server.
pub struct Postgres {
    server: &'static PostgresServer,
    name: String,
    url: String,
    pooled: bool,
}

impl Postgres {
    /// A new database; nothing where PostgreSQL is not installed.
    pub fn direct() -> Option<Self> {
        let server = PostgresServer::shared()?;
        let name = server.database();
        Some(Self { url: server.url(&name), server, name, pooled: false })
    }

    /// The same behind a pooler, with tables.
    pub async fn pooled() -> Option<Self> {
        let database = Self::direct()?;
        let url = PostgresServer::pooled_url(&database.name)?;
        database.process(&|_| ()).await.store.close().await;
        Some(Self { url, pooled: true, ..database })
    }

    /// Opens the database as one of several processes would.
    pub async fn process(&self, tune: &(dyn Fn(&mut Settings) + Sync)) -> Process {
        let mut settings = Settings::new("");
        tune(&mut settings);
        let mut postgres = PostgresSettings::new(&self.url).unwrap();
        postgres.transaction_pooler = self.pooled;
        let (metrics, tasks) = (Metrics::new(&Registry::new()), TaskSet::new());
        let indexer = Arc::new(MetadataIndexer);
        let store = PostgresStore::open(postgres, settings, indexer, Seal::none(), metrics, &tasks).await;
        Process { store: Arc::new(store.unwrap()), tasks }
    }

    /// Runs a statement beside all processes.
    pub fn psql(&self, statement: &str) {
        self.server.psql(&self.name, statement);
    }

    /// Ends every connection to it.
    pub fn cut(&self) {
        self.server.cut(&self.name);
    }
}

/// One of those who write to a database.
pub struct Process {
    pub store: Arc<dyn Store>,
    pub tasks: TaskSet,
}

impl Backend for Postgres {
    fn open_with<'a>(&'a self, tune: &'a (dyn Fn(&mut Settings) + Sync)) -> BoxFuture<'a, Arc<dyn Store>> {
        Box::pin(async { self.process(tune).await.store })
    }
}
