//! Clients of a process with various credentials: kube-rs and raw HTTP over HTTPS, the generated client over gRPC.

use std::path::Path;
use std::time::Duration;

use portico_proto::client::{Client, Connection, Credentials};

use crate::http::Http;
use crate::pki::{CertPair, certificates};
use crate::process::Portico;

impl Portico {
    /// Returns a raw HTTPS client of the administrator of the token file.
    pub fn admin(&self) -> Http {
        self.anonymous().as_user("admin")
    }

    /// Returns a raw HTTPS client without credentials.
    pub fn anonymous(&self) -> Http {
        Http::new(self.https(), self.ca())
    }

    /// Returns a raw HTTPS client with a client certificate.
    pub fn with_certificate(&self, pair: &CertPair) -> Http {
        Http::with_certificate(self.https(), self.ca(), Some(pair))
    }

    /// Returns a kube-rs client with `admin.kubeconfig`, as a user would create it.
    pub async fn kube(&self) -> kube::Client {
        let kubeconfig = kube::config::Kubeconfig::read_from(self.data().join("admin.kubeconfig")).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
        kube::Client::try_from(config).unwrap()
    }

    /// Returns a kube-rs client of a user of the token file.
    pub fn kube_as(&self, user: &str) -> kube::Client {
        let mut config = kube::Config::new(format!("https://{}", self.https()).parse().unwrap());
        config.root_cert = Some(certificates(self.ca()).iter().map(|c| c.to_vec()).collect());
        config.auth_info.token = Some(format!("{user}-token").into());
        kube::Client::try_from(config).unwrap()
    }

    /// Returns a gRPC client with `admin.kubeconfig`, as a user would create it.
    pub fn control(&self) -> Client {
        let path = self.data().join("admin.kubeconfig");
        Client::connect(&Connection::from_kubeconfig(Path::new(&path), Some("control")).unwrap()).unwrap()
    }

    /// Returns a gRPC client of a user of the token file.
    pub fn control_as(&self, user: &str) -> Client {
        Client::connect(&self.control_with(Credentials::Token(format!("{user}-token")))).unwrap()
    }

    /// Returns the settings of a connection to the control service with these credentials.
    pub fn control_with(&self, credentials: Credentials) -> Connection {
        let mut connection = Connection::new(format!("https://{}", self.grpc()));
        connection.ca_pem = Some(self.ca().to_vec());
        connection.credentials = credentials;
        connection.with_deadline(Duration::from_secs(20))
    }
}
