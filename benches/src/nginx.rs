//! Peer of the proxy bench: nginx with two workers, TLS with verification on both sides, persistent connections to the backend.

use std::net::SocketAddr;
use std::process::Command;

use tokio::net::TcpStream;

use crate::certificates::{BACKEND_NAME, Certificates};
use crate::https::Endpoint;
use crate::process::{Process, free_address, wait_until};
use crate::{BenchContext, Failure};

/// A running nginx.
pub(crate) struct Nginx {
    address: SocketAddr,
    /// The master process; the workers are its children.
    pub(crate) process: Process,
    /// Command that stops the master, which ends the workers.
    stop: Command,
}

impl Nginx {
    /// Starts nginx in front of this backend; `None` if there is no nginx on the PATH.
    pub(crate) async fn start(setting: &BenchContext, backend: SocketAddr) -> Result<Option<Self>, Failure> {
        let Some(binary) = on_path("nginx") else { return Ok(None) };
        let (folder, address) = (setting.new_folder("nginx-")?, free_address()?);
        let file = folder.join("nginx.conf");
        let text = configuration(&setting.certificates, &folder.to_string_lossy(), address, backend);
        std::fs::write(&file, text)?;
        let command = || {
            let mut command = Command::new(&binary);
            command.arg("-p").arg(&folder).arg("-c").arg(&file);
            command
        };
        let mut process = Process::start(&mut command(), &folder.join("log"))?;
        wait_until("nginx accepts connections", async || {
            process.check_alive()?;
            Ok(TcpStream::connect(address).await.ok())
        })
        .await?;
        let mut stop = command();
        stop.args(["-s", "stop"]);
        Ok(Some(Self { address, process, stop }))
    }

    /// Returns the endpoint with the admin's certificate.
    pub(crate) fn endpoint(&self, setting: &BenchContext) -> Result<Endpoint, Failure> {
        Ok(Endpoint { address: self.address, name: "localhost", tls: setting.certificates.client_tls()? })
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.process.stop_with(&mut self.stop);
    }
}

fn on_path(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    let sbin = ["/usr/sbin".into(), "/usr/local/sbin".into()];
    std::env::split_paths(&path).chain(sbin).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn configuration(files: &Certificates, folder: &str, listen: SocketAddr, backend: SocketAddr) -> String {
    let file = |name| files.file(name);
    let (ca, front, front_key) = (file("ca.crt"), file("front.crt"), file("front.key"));
    let (proxy, proxy_key) = (file("proxy.crt"), file("proxy.key"));
    format!(
        "daemon off;
master_process on;
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  keepalive_requests 100000000;
  upstream backend {{
    server {backend};
    keepalive 64;
    keepalive_requests 100000000;
  }}
  server {{
    listen {listen} ssl;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_certificate {front};
    ssl_certificate_key {front_key};
    ssl_client_certificate {ca};
    ssl_verify_client on;
    location / {{
      proxy_pass https://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
      proxy_set_header Host {BACKEND_NAME};
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Remote-User $ssl_client_s_dn;
      proxy_ssl_protocols TLSv1.2 TLSv1.3;
      proxy_ssl_certificate {proxy};
      proxy_ssl_certificate_key {proxy_key};
      proxy_ssl_trusted_certificate {ca};
      proxy_ssl_verify on;
      proxy_ssl_name {BACKEND_NAME};
      proxy_ssl_server_name on;
    }}
  }}
}}
"
    )
}
