//! A way to a server's socket on which a test can stop all bytes without closing anything: as when a host
//! vanishes, or what lies between drops packets.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use portico_kit::tasks::TaskSet;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

/// See the module. Dropping it ends it.
pub struct Wire {
    /// Where it is listened for clients.
    pub address: SocketAddr,
    to: Arc<Mutex<PathBuf>>,
    carries: watch::Sender<bool>,
    tasks: TaskSet,
}

impl Wire {
    /// To a Unix socket.
    pub async fn to(socket: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (to, carries) = (Arc::new(Mutex::new(socket.to_owned())), watch::Sender::new(true));
        let wire = Self { address, to: to.clone(), carries, tasks: TaskSet::new() };
        let (tasks, carries) = (wire.tasks.clone(), wire.carries.clone());
        wire.tasks.spawn_until_cancelled("wire", async move {
            while let Ok((client, _)) = listener.accept().await {
                let to = to.lock().clone();
                tasks.spawn_until_cancelled("connection", carry(client, to, carries.subscribe()));
            }
        });
        wire
    }

    /// Carries nothing any more: what is connected stays so and receives nothing, and so does what connects.
    pub fn hold(&self) {
        self.carries.send_replace(false);
    }

    /// Carries what connects from now on. What was connected before is as dead as it was.
    pub fn mend(&self) {
        self.carries.send_replace(true);
    }

    /// Leads what connects from now on to another socket.
    pub fn lead_to(&self, socket: &Path) {
        *self.to.lock() = socket.to_owned();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

async fn carry(mut client: TcpStream, to: PathBuf, mut carries: watch::Receiver<bool>) {
    let mut server = None;
    if *carries.borrow_and_update() {
        let Ok(connected) = UnixStream::connect(to).await else { return };
        let server = server.insert(connected);
        tokio::select! {
            // Either side has ended.
            _ended = copy_bidirectional(&mut client, server) => return,
            held = carries.wait_for(|carries| !carries) => if held.is_err() { return },
        }
    }
    std::future::pending::<()>().await;
    drop((client, server));
}
