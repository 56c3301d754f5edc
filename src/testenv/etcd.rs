//! Program `etcd` of `portico testenv`: answers the health checks of envtest, and reports to the program `kube-apiserver` where
//! to store its state. This program stores nothing and does not implement etcd's protocol.
//!
//! One thread serves all connections. Signals end the process at once.

mod flags;
mod responses;

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use portico_gostd::os::error_text;
use portico_kit::platform::DirBuilderExt;
use portico_kit::tasks::TaskSet;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::state_location::StateLocation;
use crate::exit::{fail_with, print_text};
use crate::exit_codes;
use flags::{Flags, Request};
use responses::Responses;

/// Name of the folder that a real etcd creates in its data folder.
const ETCD_FOLDER: &str = "member";
/// Name of the folder for the state of servers in the data folder.
const STATE_FOLDER: &str = "portico";

/// Maximum number of open connections, each with one request. Further connections are closed.
const MAX_CONNECTIONS: usize = 64;

/// Serves until the process is killed.
pub(super) fn main(arguments: &[OsString]) -> ExitCode {
    match flags::parse(arguments) {
        Ok(Request::Print(text)) => print_text(&text, exit_codes::FAILED),
        Ok(Request::Serve(flags)) => match serve(&flags) {
            Ok(never) => match never {},
            Err(error) => fail_with(&format!("etcd (of portico testenv): {error}"), exit_codes::FAILED),
        },
        Err(error) => fail_with(&format!("etcd (of portico testenv): {error}"), exit_codes::USAGE),
    }
}

fn serve(flags: &Flags) -> Result<Infallible, String> {
    let location =
        StateLocation { folder: create_folder(&flags.data_dir)?, unsafe_no_fsync: flags.unsafe_no_fsync };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start: {}", error_text(&error)))?;
    runtime.block_on(async {
        let responses = Arc::new(Responses::new(&location));
        let tasks = TaskSet::new();
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        for address in &flags.listen {
            let bound = TcpListener::bind(address).await;
            let listener = bound.map_err(|error| format!("listen tcp {address}: {}", error_text(&error)))?;
            let accepts = accept(listener, Arc::clone(&responses), Arc::clone(&permits), tasks.clone());
            tasks.spawn_critical("listener", accepts);
        }
        Err(tasks.failed().await.reason)
    })
}

/// Accepts and answers connections until the listener fails.
async fn accept(
    listener: TcpListener,
    responses: Arc<Responses>,
    permits: Arc<Semaphore>,
    tasks: TaskSet,
) -> Result<(), String> {
    loop {
        let accepted = listener.accept().await;
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // The client has already closed the connection.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => return Err(format!("accept: {}", error_text(&error))),
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else { continue };
        let responses = Arc::clone(&responses);
        tasks.spawn("connection", async move {
            let _permit = permit;
            // A client that closes the connection early is not an error.
            let _result = responses.serve(stream).await;
        });
    }
}

/// Creates the data folder of etcd, and returns the folder for the state of servers in it.
fn create_folder(data_dir: &Path) -> Result<PathBuf, String> {
    let failed = |error: io::Error| format!("--data-dir: {}: {}", data_dir.display(), error_text(&error));
    let data_dir = std::path::absolute(data_dir).map_err(failed)?;
    if data_dir.join(ETCD_FOLDER).exists() {
        return Err(format!(
            "--data-dir: {} holds the data of a real etcd, which this program cannot read; name that etcd in TEST_ASSET_ETCD",
            data_dir.display()
        ));
    }
    DirBuilder::new().recursive(true).mode(0o700).create(&data_dir).map_err(failed)?;
    Ok(data_dir.join(STATE_FOLDER))
}
