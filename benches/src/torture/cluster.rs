//! The clusters under test: their processes, and the wires between them.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use portico_proto::client::{Client, Connection};
use portico_tests::disk::Shim;
use portico_tests::{ETCD_MEMBERS, EtcdCluster, PostgresServer};

use super::node::Node;
use super::transport::RESPONSE_TIMEOUT;
use super::wire::Wire;
use crate::https::Endpoint;
use crate::{BenchContext, Failure};

/// Interval at which ended processes are restarted.
const SUPERVISE_INTERVAL: Duration = Duration::from_millis(20);

/// Processes of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Topology {
    /// One process on SQLite.
    AllInOne,
    /// A control service on SQLite and a facade.
    Split,
    /// Two control services on PostgreSQL and a facade that reaches either.
    Postgres,
    /// Two control services on an etcd of three members and a facade that reaches either.
    Etcd,
}

/// Processes of a run, and the wires between them.
#[derive(Default)]
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    pub(crate) wires: Vec<Wire>,
    pub(crate) postgres: Option<PostgresServer>,
    pub(crate) etcd: Option<EtcdCluster>,
    /// Wires to etcd of each control service, as ranges of `wires`.
    pub(crate) etcd_wires: Vec<Range<usize>>,
    /// Value of [`Cluster::unexpected_ends`] when everything was healed.
    pub(crate) ended_before: u64,
}

impl Cluster {
    /// Starts all processes; `None` if a program is missing.
    pub(crate) async fn start(
        setting: &BenchContext,
        topology: Topology,
        binary: &Path,
        shim: Option<&Shim>,
    ) -> Result<Option<Self>, Failure> {
        let mut cluster = Self::default();
        match topology {
            Topology::AllInOne => {
                let node = Node::new(setting, binary, "all-in-one", None, &[])?;
                cluster.add(node, shim).await?;
            }
            Topology::Split => {
                let node = Node::new(setting, binary, "control-service", Some("server"), &[])?;
                cluster.add(node, shim).await?;
                cluster.facade(setting, binary, shim).await?;
            }
            Topology::Postgres => {
                let Some(server) = PostgresServer::start() else { return Ok(None) };
                let database = server.create_database();
                for name in ["control-service-1", "control-service-2"] {
                    let socket = setting.new_folder("socket-")?;
                    let file = ".s.PGSQL.5432";
                    cluster.wires.push(Wire::unix(&socket.join(file), server.socket())?);
                    let host = socket.to_string_lossy().replace('/', "%2F");
                    let url = format!("postgres://portico@{host}/{database}");
                    let flags = ["--database-url".to_owned(), url];
                    let node = Node::new(setting, binary, name, Some("server"), &flags)?;
                    cluster.add(node, shim).await?;
                }
                cluster.postgres = Some(server);
                cluster.facade(setting, binary, shim).await?;
            }
            Topology::Etcd => {
                let Some(etcd) = tokio::task::block_in_place(EtcdCluster::start) else { return Ok(None) };
                for name in ["control-service-1", "control-service-2"] {
                    let urls = cluster.wire_etcd(&etcd).await?;
                    let flags = ["--etcd-servers".to_owned(), urls.join(",")];
                    let node = Node::new(setting, binary, name, Some("server"), &flags)?;
                    cluster.add(node, shim).await?;
                }
                cluster.etcd = Some(etcd);
                cluster.facade(setting, binary, shim).await?;
            }
        }
        Ok(Some(cluster))
    }

    /// Creates a wire to each etcd member for one control service; returns their URLs.
    async fn wire_etcd(&mut self, etcd: &EtcdCluster) -> Result<Vec<String>, Failure> {
        let (first, mut urls) = (self.wires.len(), Vec::new());
        for member in 0..ETCD_MEMBERS {
            let (wire, address) = Wire::tcp(vec![etcd.address(member)]).await?;
            urls.push(format!("http://{address}"));
            self.wires.push(wire);
        }
        self.etcd_wires.push(first..self.wires.len());
        Ok(urls)
    }

    async fn add(&mut self, mut node: Node, shim: Option<&Shim>) -> Result<(), Failure> {
        node.shim = shim.map(|shim| shim.for_folder(&node.folder)).transpose()?;
        node.spawn()?;
        node.wait_ready().await?;
        self.nodes.push(node);
        Ok(())
    }

    /// Starts a facade that reaches the control services over a wire.
    async fn facade(
        &mut self,
        setting: &BenchContext,
        binary: &Path,
        shim: Option<&Shim>,
    ) -> Result<(), Failure> {
        let addresses: Vec<_> = self.nodes.iter().filter_map(|node| node.grpc).collect();
        let first = self.nodes.first().ok_or("the cluster has no control service")?;
        let kubeconfig = std::fs::read_to_string(first.data().join("facade.kubeconfig"))?;
        let named = first.grpc.ok_or("the cluster has no control service")?.to_string();
        let (wire, address) = Wire::tcp(addresses).await?;
        let file = setting.new_folder("kubeconfig-")?.join("facade.kubeconfig");
        if !kubeconfig.contains(&named) {
            return Err(format!("facade.kubeconfig does not name {named}").into());
        }
        std::fs::write(&file, kubeconfig.replace(&named, &address.to_string()))?;
        self.wires.push(wire);
        let flags = ["--control-kubeconfig".to_owned(), file.to_string_lossy().into_owned()];
        let node = Node::new(setting, binary, "facade", Some("facade"), &flags)?;
        self.add(node, shim).await
    }

    /// Returns the facade's endpoint.
    pub(crate) fn endpoint(&self, setting: &BenchContext) -> Result<Endpoint, Failure> {
        let address = self.nodes.iter().find_map(|node| node.https).ok_or("the cluster has no facade")?;
        Ok(Endpoint { address, name: "localhost", tls: setting.certificates.client_tls()? })
    }

    /// Opens a connection to each control service.
    pub(crate) fn controls(&self) -> Result<Vec<Client>, Failure> {
        let services = self.nodes.iter().filter(|node| node.grpc.is_some());
        services
            .map(|node| {
                let file = node.data().join("admin.kubeconfig");
                let connection = Connection::from_kubeconfig(&file, Some("control"))?;
                Ok(Client::connect(&connection.with_deadline(RESPONSE_TIMEOUT))?)
            })
            .collect()
    }

    /// Restarts ended processes.
    pub(crate) fn supervise(&mut self) -> Result<(), Failure> {
        self.nodes.iter_mut().try_for_each(Node::supervise)
    }

    /// Runs `work` while ended processes are restarted: a process may be about to end when its last fault is over.
    pub(crate) async fn run_supervised<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(SUPERVISE_INTERVAL) => self.supervise()?,
            }
        }
    }

    /// Ends every lasting fault, and waits until all processes are ready.
    pub(crate) async fn heal(&mut self) -> Result<(), Failure> {
        for wire in &self.wires {
            wire.set_mode(Duration::ZERO, false);
        }
        if let Some(etcd) = &mut self.etcd {
            etcd.heal();
        }
        for node in &mut self.nodes {
            node.signal(rustix::process::Signal::CONT)?;
            if let Some(shim) = &mut node.shim {
                shim.heal()?;
            }
        }
        for node in &mut self.nodes {
            node.wait_ready().await?;
        }
        self.ended_before = self.unexpected_ends();
        Ok(())
    }

    /// Returns how many times processes have ended unexpectedly.
    pub(crate) fn unexpected_ends(&self) -> u64 {
        self.nodes.iter().map(|node| node.ended).sum()
    }

    /// Ends all processes, by SIGTERM or by `kill -9`, and starts them again.
    pub(crate) async fn restart(&mut self, gracefully: bool) -> Result<(), Failure> {
        for node in self.nodes.iter_mut().rev() {
            if gracefully {
                node.stop().await?;
            } else {
                node.kill();
            }
        }
        if let Some(postgres) = &self.postgres {
            postgres.kill();
            postgres.restart();
        }
        if let Some(etcd) = &mut self.etcd {
            (0..ETCD_MEMBERS).for_each(|member| etcd.kill(member));
            etcd.heal();
        }
        for node in &mut self.nodes {
            node.spawn()?;
            node.wait_ready().await?;
        }
        Ok(())
    }
}
