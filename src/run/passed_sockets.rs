//! Sockets passed by the parent process, such as systemd for a `.socket` unit, in LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES.

use std::net::TcpListener;
use std::sync::Arc;

use listenfd::ListenFd;

use super::failure::Failure;
use crate::settings::{Role, Settings};

/// Environment variable with the names of the sockets, separated by colons (`FileDescriptorName=` of systemd).
const NAMES: &str = "LISTEN_FDNAMES";
/// Name of the socket on which HTTPS is served.
const HTTPS: &str = "https";
/// Name of the socket on which gRPC is served.
const GRPC: &str = "grpc";

/// Sockets passed by the parent process.
#[derive(Debug, Default)]
pub(super) struct PassedSockets {
    pub(super) https: Option<Arc<TcpListener>>,
    pub(super) grpc: Option<Arc<TcpListener>>,
}

impl PassedSockets {
    /// Takes the sockets, so that child processes do not. A socket with another name is used for gRPC by a control service, and for
    /// HTTPS by the other roles.
    pub(super) fn take(role: Role) -> Result<Self, Failure> {
        let names = std::env::var(NAMES).unwrap_or_default();
        let mut names = names.split(':');
        let (mut inherited, mut sockets) = (ListenFd::from_env(), Self::default());
        for index in 0..inherited.len() {
            let name = names.next().unwrap_or_default();
            let socket = inherited.take_tcp_listener(index).map_err(Failure::PassedSocket)?;
            let slot = sockets.slot(name, role).ok_or_else(|| Failure::UnexpectedSocket(name.to_owned()))?;
            *slot = socket.map(Arc::new);
        }
        Ok(sockets)
    }

    /// Returns the slot for a socket, or `None` if the role does not use such a socket or the slot is taken.
    fn slot(&mut self, name: &str, role: Role) -> Option<&mut Option<Arc<TcpListener>>> {
        let slot = match (name, role) {
            (GRPC, Role::Facade) | (HTTPS, Role::Server) => return None,
            (GRPC, _) | (_, Role::Server) => &mut self.grpc,
            _ => &mut self.https,
        };
        slot.is_none().then_some(slot)
    }

    /// Copies the addresses of the sockets to the settings, because certificates and kubeconfigs contain the addresses.
    pub(super) fn set_addresses(&self, settings: &mut Settings) -> Result<(), Failure> {
        if let Some(https) = &self.https {
            let address = https.local_addr().map_err(Failure::PassedSocket)?;
            settings.serving.bind_address = address.ip();
            settings.serving.secure_port = address.port();
        }
        if let Some(grpc) = &self.grpc {
            settings.control.control_address = grpc.local_addr().map_err(Failure::PassedSocket)?;
        }
        Ok(())
    }
}
