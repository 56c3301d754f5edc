//! A wire to a server's socket that a test can stall without closing anything: as if a host vanished, or a network
//! dropped packets.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use portico_kit::tasks::TaskSet;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

/// A wire to a socket. Dropping it ends it.
pub struct Wire {
    /// Address on which it listens for clients.
    pub address: SocketAddr,
    to: Arc<Mutex<PathBuf>>,
    carries: watch::Sender<bool>,
    tasks: TaskSet,
}

impl Wire {
    /// Starts a wire to a Unix socket.
    pub async fn start(socket: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (to, carries) = (Arc::new(Mutex::new(socket.to_owned())), watch::Sender::new(true));
        let wire = Self { address, to: to.clone(), carries, tasks: TaskSet::new() };
        let (tasks, carries) = (wire.tasks.clone(), wire.carries.clone());
        wire.tasks.spawn_until_cancelled("wire", async move {
            while let Ok((client, _)) = listener.accept().await {
                let to = to.lock().clone();
                tasks.spawn_until_cancelled("connection", forward(client, to, carries.subscribe()));
            }
        });
        wire
    }

    /// Stalls the wire: present connections stay open without data, and so do new ones.
    pub fn stall(&self) {
        self.carries.send_replace(false);
    }

    /// Forwards new connections from now on. Connections that were stalled stay stalled.
    pub fn resume_new(&self) {
        self.carries.send_replace(true);
    }

    /// Forwards new connections to another socket from now on.
    pub fn retarget(&self, socket: &Path) {
        *self.to.lock() = socket.to_owned();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

async fn forward(mut client: TcpStream, to: PathBuf, mut carries: watch::Receiver<bool>) {
    let mut server = None;
    if *carries.borrow_and_update() {
        let Ok(connected) = UnixStream::connect(to).await else { return };
        let server = server.insert(connected);
        tokio::select! {
            // One side has ended.
            _ended = copy_bidirectional(&mut client, server) => return,
            held = carries.wait_for(|carries| !carries) => if held.is_err() { return },
        }
    }
    std::future::pending::<()>().await;
    drop((client, server));
}
