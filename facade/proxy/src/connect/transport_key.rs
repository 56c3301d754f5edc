//! Key of the transport for a connection that the control service approved. Only this process has the kubelets' certificates.

use std::net::IpAddr;

use bytes::Bytes;
use portico_gostd::netip::is_global_unicast;
use portico_kit::dial::Target as Host;
use portico_machinery::Status;
use portico_machinery::connect::{DialTarget, Security};
use portico_machinery::digest::sha256_hex;
use portico_machinery::route::{BackendPolicy, Target, Trust};
use tokio::time::{Instant, timeout};

use crate::Proxy;
use crate::transport::{ClientCertificate, TransportKey};

impl Proxy {
    /// Returns the key of the transport to use, and the CA bundle that the key refers to.
    pub(super) async fn transport_key(
        &self,
        dial: &DialTarget,
    ) -> Result<(TransportKey, Option<Bytes>), Box<Status>> {
        let (trust, client_certificate, server_name, ca) = self.trust(&dial.security);
        let kubelet = client_certificate == ClientCertificate::Kubelet;
        let kubelets = &self.shared.kubelets;
        let dial_timeout = if kubelet { kubelets.dial_timeout } else { self.shared.limits.dial_timeout };
        let mut key = TransportKey {
            service: None,
            targets: dial.targets.clone(),
            trust,
            client_certificate,
            server_name,
            http2: false,
            policy: BackendPolicy::default(),
            mirror_of: None,
            dial_timeout,
        };
        if dial.global_unicast {
            self.resolve_targets(&mut key).await?;
        }
        Ok((key, ca))
    }

    fn trust(&self, security: &Security) -> (Option<Trust>, ClientCertificate, String, Option<Bytes>) {
        let authority = self.shared.kubelets.authority.as_ref().map(|authority| authority.borrow().clone());
        match (security, authority) {
            (Security::Plain, _) => (None, ClientCertificate::None, String::new(), None),
            (Security::Kubelet { verify: true }, Some(bundle)) => {
                let (trust, pem) = (Trust::Bundle(bundle.hash.to_string()), bundle.pem.to_vec());
                (Some(trust), ClientCertificate::Kubelet, String::new(), Some(pem.into()))
            }
            (Security::Kubelet { .. }, _) => {
                (Some(Trust::Insecure), ClientCertificate::Kubelet, String::new(), None)
            }
            (Security::Unverified, _) => {
                (Some(Trust::Insecure), ClientCertificate::None, String::new(), None)
            }
            (Security::Verified { roots, server_name }, _) if roots.is_empty() => {
                (Some(Trust::System), ClientCertificate::None, server_name.clone(), None)
            }
            (Security::Verified { roots, server_name }, _) => {
                let trust = Trust::Bundle(sha256_hex(roots));
                (Some(trust), ClientCertificate::None, server_name.clone(), Some(roots.clone()))
            }
        }
    }

    /// Resolves names to addresses, which must all be global: the addresses that were checked are the ones that are dialed. The
    /// certificate must still be valid for the name.
    async fn resolve_targets(&self, key: &mut TransportKey) -> Result<(), Box<Status>> {
        let refused = |why: String| Box::new(Status::bad_request(why));
        let until = Instant::now() + key.dial_timeout;
        let mut found = Vec::new();
        for Target { host, port } in &key.targets {
            let name = Host::new(host.clone(), *port);
            let looking = self.shared.connector.resolve(&name, until);
            let addresses = timeout(key.dial_timeout, looking).await;
            let addresses = addresses
                .map_err(|_| refused(format!("lookup {host}: timed out")))?
                .map_err(|error| refused(error.to_string()))?;
            if !addresses.iter().all(|address| is_global_unicast(address.ip())) {
                return Err(refused("address not allowed".to_owned()));
            }
            if host.parse::<IpAddr>().is_err() {
                key.server_name.clone_from(host);
            }
            found.extend(addresses.iter().map(|a| Target { host: a.ip().to_string(), port: a.port() }));
        }
        key.targets = found;
        Ok(())
    }
}
