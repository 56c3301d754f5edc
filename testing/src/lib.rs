//! A Kubernetes API for tests, without a cluster, that fails on request.
//!
//! The server is a child process that lives as long as the other end of its standard input: nothing is left when a test is killed.
#![doc = include_str!("../README.md")]

mod asking;
mod fault;
mod server;

pub use fault::{Fault, SetFault};
pub use server::{Options, TestServer};

/// Why there is no server, or no fault.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program cannot be started.
    #[error("{program}: {source}: put portico on the PATH, or name it in PORTICO_BIN")]
    Program {
        /// Which one.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// It has ended, or printed something else, before it was ready; standard error has the reason.
    #[error("the server did not become ready: {0}")]
    NotReady(String),
    /// Its kubeconfig is of no use.
    #[error("the server's kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// A request for a fault failed, or was refused.
    #[error(transparent)]
    Client(#[from] kube::Error),
    /// A request for a fault cannot be written.
    #[error("a fault cannot be written: {0}")]
    Fault(#[from] serde_json::Error),
}
