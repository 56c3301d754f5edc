//! All controllers, as the assembly starts them, but without listeners.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use portico_admission::{AdmissionChain, AdmissionSettings};
use portico_auth::authz::AlwaysAllow;
use portico_controllers::auto_register::{AutoRegister, DesiredApiService, ManagedMode};
use portico_controllers::availability::{Availability, HttpProber, ProbeSettings, RegistrySink};
use portico_controllers::crd::CustomResources;
use portico_controllers::garbage::GarbageCollector;
use portico_controllers::garbage::decision::OwnerState;
use portico_controllers::garbage::foreign_objects::{
    DependentAction, ForeignDependentList, ForeignObject, ForeignObjectClient, ForeignOwner, OwnerOutcomes,
};
use portico_controllers::identity::{Identity, IdentityLease};
use portico_controllers::log::LogReader;
use portico_controllers::namespace::conditions::RemainingContent;
use portico_controllers::namespace::{ForeignContent, NamespaceDeletion};
use portico_controllers::storage_migration::StorageMigration;
use portico_controllers::system_namespaces::SystemNamespaces;
use portico_kinds::Kinds;
use portico_kit::dial::{Connector, ConnectorOptions};
use portico_kit::fetch::Fetcher;
use portico_kit::pki::{Authority, CertProfile};
use portico_kit::tasks::TaskSet;
use portico_kit::tls::{ServerTls, ServerTlsOptions};
use portico_kit::workqueue::QueueMetrics;
use portico_machinery::gvk::GroupVersionKind;
use portico_machinery::route::Route;
use portico_machinery::{GroupResource, GroupVersion, Object};
use portico_registry::{Context, CreateOptions, DeleteOptions, ObjectRef, Registry, Settings};
use portico_routes::informers::Informers;
use portico_routes::{LocalGroupVersion, Routes};
use portico_store::{Metrics, SqliteStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Timeout of waits, long enough for slow machines.
pub const TIMEOUT: Duration = Duration::from_secs(90);

/// A registry with all controllers running.
pub struct Harness {
    pub registry: Registry,
    pub routes: Routes,
    pub auto_register: AutoRegister,
    pub namespaces: SystemNamespaces,
    pub lease: IdentityLease,
    pub identity: Identity,
    pub tasks: TaskSet,
    pub metrics: portico_kit::metrics::Registry,
    _dir: TempDir,
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

impl Harness {
    pub async fn open() -> Self {
        let (dir, tasks) = (TempDir::new().unwrap(), TaskSet::new());
        let metrics = portico_kit::metrics::Registry::new();
        let registry = registry(&dir, &tasks, &metrics).await;
        let built_in = [("", "v1", 18_000, 1), ("apps", "v1", 17_800, 15)];
        let gv = |(group, version, ..): &(&str, &str, i32, i32)| GroupVersion::new(*group, *version);
        let installed = built_in.iter().map(|b| LocalGroupVersion {
            group_version: gv(b),
            group_priority_minimum: b.2,
            version_priority: b.3,
        });
        let informers = Informers::default();
        let routes = Routes::new(portico_routes::Settings::default(), &informers, installed);
        tasks.spawn_until_cancelled("routes", routes.clone().run());

        let fetcher = Fetcher::new(Connector::new(ConnectorOptions::default()), tasks.clone());
        let prober = HttpProber::new(fetcher, ProbeSettings::default(), None);
        let availability = Availability::new(&informers, prober, Default::default(), &metrics);
        availability.run_local(&tasks);
        availability.run_remote(&tasks);
        availability.run_writer(RegistrySink::new(registry.clone()), &tasks);
        let desired = built_in.iter().map(|b| DesiredApiService {
            group_version: gv(b),
            group_priority_minimum: b.2,
            version_priority: b.3,
            mode: ManagedMode::OnStart,
        });
        let auto_register = AutoRegister::new(&informers, desired, &metrics);
        let served = registry.serve_custom_resources().await.unwrap();
        tasks.spawn_until_cancelled("served-definitions", served);
        let custom = CustomResources::new(auto_register.clone(), &QueueMetrics::new(&metrics));
        let registered = Some(custom.synced());
        tasks.spawn("autoregister", auto_register.clone().run(registry.clone(), registered, tasks.clone()));
        custom.run_workers(&registry, &tasks);
        let migration = StorageMigration::new(&QueueMetrics::new(&metrics));
        migration.run_workers(&registry, &tasks);
        let namespace_deletion =
            NamespaceDeletion::new(Arc::new(NoForeignServers), &QueueMetrics::new(&metrics));
        namespace_deletion.run_workers(&registry, &tasks);
        let garbage = GarbageCollector::new(Arc::new(NoForeignServers), &QueueMetrics::new(&metrics));
        garbage.run_workers(&registry, &tasks);
        let log_reader = LogReader::new(vec![
            Arc::new(custom.finalizer()),
            Arc::new(migration),
            Arc::new(namespace_deletion),
            Arc::new(garbage),
        ]);
        tasks.spawn("listening", log_reader.run(registry.clone(), tasks.clone()));
        tasks.spawn_critical("definitions", custom.run_informer(registry.clone(), tasks.clone()));
        tasks.spawn_critical("informers", informers.run(registry.clone(), tasks.clone()));
        let namespaces = SystemNamespaces::new();
        tasks.spawn("namespaces", namespaces.clone().run(registry.clone(), tasks.clone()));
        let identity = Identity::new("host", "1");
        let lease = IdentityLease::new(identity.clone(), tokio::sync::watch::channel(None).1);
        tasks.spawn("lease", lease.clone().run(registry.clone(), tasks.clone()));
        Self { registry, routes, auto_register, namespaces, lease, identity, tasks, metrics, _dir: dir }
    }

    pub async fn create(&self, resource: &GroupResource, object: Object) {
        self.registry
            .create(&Context::system("test"), resource, object, &CreateOptions::default())
            .await
            .unwrap();
    }

    pub async fn delete(&self, resource: &GroupResource, namespace: &str, name: &str) {
        self.registry
            .delete(&Context::system("test"), resource, namespace, name, &DeleteOptions::default())
            .await
            .unwrap();
    }

    pub async fn get(&self, resource: &GroupResource, namespace: &str, name: &str) -> Object {
        self.registry.get(resource, namespace, name).await.unwrap().object().clone()
    }

    /// Returns the object, if it exists.
    pub async fn find(&self, resource: &GroupResource, name: &str) -> Option<Object> {
        let object_ref =
            ObjectRef { resource: resource.clone(), namespace: String::new(), name: name.to_owned() };
        self.registry.get_stored(&object_ref).await.unwrap().map(|stored| stored.object().clone())
    }

    /// Waits until `check` returns a value for a cluster-scoped object, or for its absence.
    pub async fn wait_for_object<T>(
        &self,
        resource: &GroupResource,
        name: &str,
        check: impl Fn(Option<Object>) -> Option<T>,
    ) -> T {
        let wait = async {
            loop {
                if let Some(value) = check(self.find(resource, name).await) {
                    return value;
                }
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(TIMEOUT, wait).await;
        waited.unwrap_or_else(|_| panic!("{name} has not reached the expected state within the timeout"))
    }

    /// Waits until the condition of an APIService has this status and reason.
    pub async fn wait_for_condition(&self, name: &str, want: &str) -> Object {
        self.wait_for_object(&super::groups(), name, |object| {
            object.filter(|o| super::condition_summary(o) == want)
        })
        .await
    }

    /// Waits until a route passes a check.
    pub async fn wait_for_route(&self, name: &str, check: impl Fn(&Route) -> bool) {
        let wait = async {
            while !self.routes.get(name).is_some_and(|c| check(&c.route)) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TIMEOUT, wait).await.unwrap();
    }
}

/// Access to other servers in tests without other servers.
struct NoForeignServers;

impl ForeignContent for NoForeignServers {
    fn delete_content<'a>(
        &'a self,
        _namespace: &'a str,
        _remaining: &'a mut RemainingContent,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

impl ForeignObjectClient for NoForeignServers {
    fn owner<'a>(&'a self, _owner: &'a ForeignOwner) -> BoxFuture<'a, OwnerState> {
        Box::pin(async { OwnerState::Unknown })
    }

    fn dependents<'a>(&'a self, _outcomes: &'a OwnerOutcomes) -> BoxFuture<'a, ForeignDependentList> {
        Box::pin(async { ForeignDependentList::default() })
    }

    fn execute<'a>(
        &'a self,
        _object: &'a ForeignObject,
        _action: &'a DependentAction,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}

async fn registry(dir: &TempDir, tasks: &TaskSet, metrics: &portico_kit::metrics::Registry) -> Registry {
    let kinds = Kinds::all().unwrap();
    let settings = portico_store::Settings::new(dir.path().join("test.db"));
    let table = portico_resources::table();
    let indexer = Arc::new(table.indexer(&kinds));
    let store = SqliteStore::open(settings, indexer, Metrics::new(metrics), tasks).await.unwrap();
    let clock = Arc::new(jiff::Timestamp::now);
    Registry::new(
        Arc::new(store),
        &kinds,
        &table,
        Arc::new(AdmissionChain::new(&AdmissionSettings::default(), &portico_kit::metrics::Registry::new())),
        Arc::new(AlwaysAllow),
        Settings::default(),
        clock,
    )
}

pub fn object(api_version: &str, kind: &str, name: &str, namespace: &str) -> Object {
    let gv: GroupVersion = api_version.parse().unwrap();
    let kind = GroupVersionKind { group: gv.group, version: gv.version, kind: kind.to_owned() };
    let mut object = Object::new(&kind);
    object.set(&["metadata", "name"], name);
    if !namespace.is_empty() {
        object.set(&["metadata", "namespace"], namespace);
    }
    object
}

pub fn api_service(group: &str, service: &str, backend: &Backend) -> Object {
    let mut object = object("apiregistration.k8s.io/v1", "APIService", &format!("v1.{group}"), "");
    object.set(&["spec", "group"], group);
    object.set(&["spec", "version"], "v1");
    object.set(&["spec", "groupPriorityMinimum"], 1000);
    object.set(&["spec", "versionPriority"], 10);
    object.set(&["spec", "caBundle"], &backend.ca);
    object.set(&["spec", "service", "namespace"], "wardle");
    object.set(&["spec", "service", "name"], service);
    object.set(&["spec", "service", "port"], backend.addr.port());
    object
}

/// Backend that responds with `{}` to every request.
pub struct Backend {
    pub addr: SocketAddr,
    /// CA bundle, base64.
    pub ca: String,
    pub tasks: TaskSet,
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

impl Backend {
    pub async fn start(name: &str) -> Self {
        let authority = Authority::create("backend-ca").unwrap();
        let profile = CertProfile::server("backend", &[name.to_owned()], Duration::from_secs(3600));
        let pair = authority.issue(&profile).unwrap().cert_pair("backend").unwrap();
        let acceptor = ServerTls::new(pair, &[], &ServerTlsOptions::default()).unwrap().acceptor();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, tasks) = (listener.local_addr().unwrap(), TaskSet::new());
        let spawner = tasks.clone();
        tasks.spawn_until_cancelled("backend", async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let acceptor = acceptor.clone();
                spawner.spawn_until_cancelled("backend-connection", async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut tail = [0; 4];
                    while let Ok(byte) = stream.read_u8().await {
                        tail = [tail[1], tail[2], tail[3], byte];
                        if tail == *b"\r\n\r\n" {
                            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                            if stream.write_all(answer).await.is_err() || stream.flush().await.is_err() {
                                return;
                            }
                        }
                    }
                });
            }
        });
        let ca = STANDARD.encode(authority.cert_pem());
        Self { addr, ca, tasks }
    }
}
