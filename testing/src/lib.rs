//! A Kubernetes API server for tests, with faults on request.
//!
//! The server is a child process that exits when its standard input closes, so it does not outlive a test that is killed.
#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

mod fault;
mod requests;
mod server;

pub use fault::{Fault, SetFault};
pub use server::{Options, TestServer};

/// Reason why a server was not started or a fault was not set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program could not be started.
    #[error("cannot start {program}: {source}; install portico on the PATH or set PORTICO_BIN")]
    Program {
        /// Name or path of the program.
        program: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The server exited or printed unexpected output before it was ready. Its standard error has the reason.
    #[error("the server did not become ready: {0}")]
    NotReady(String),
    /// The server's kubeconfig could not be used.
    #[error("the server's kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// A request to set, read or remove a fault failed.
    #[error(transparent)]
    Client(#[from] kube::Error),
    /// A fault could not be encoded.
    #[error("cannot encode the fault: {0}")]
    Fault(#[from] serde_json::Error),
}
